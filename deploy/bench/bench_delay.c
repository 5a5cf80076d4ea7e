#include "deploy/bench/bench_inner.h"

#include <stdlib.h>

#define DELAY_KEYS 10u
#define BESIDE_MS  3000u

static struct dp_bench_delay delays_of(const struct bench_place *p, uint32_t variant, uint64_t *ns,
                                       uint32_t n, uint64_t *raw_ns, uint32_t raw_n)
{
    const struct bench *b = p->bench;
    return (struct dp_bench_delay){.durability = dp_cluster_durability_name(b->variant[variant].durability),
                                   .transport = b->variant[variant].ipc ? "ipc" : "tcp",
                                   .dim = p->dim,
                                   .keys = DELAY_KEYS,
                                   .samples = n,
                                   .p50 = dp_bench_quantile(ns, n, 0.5) / 1e3,
                                   .p99 = dp_bench_quantile(ns, n, 0.99) / 1e3,
                                   .p999 = dp_bench_quantile(ns, n, 0.999) / 1e3,
                                   .raw_p50 = dp_bench_quantile(raw_ns, raw_n, 0.5) / 1e3,
                                   .raw_p99 = dp_bench_quantile(raw_ns, raw_n, 0.99) / 1e3,
                                   .raw_p999 = dp_bench_quantile(raw_ns, raw_n, 0.999) / 1e3};
}

/* Round trips of one verb, downpour's and raw's in turns. */
static enum dp_status delay(struct bench_place *p, uint32_t variant, struct dp_bench_rows *work, bool push,
                            uint64_t *ns, struct dp_error *err)
{
    struct bench *b = p->bench;
    const uint32_t turns = 10, each = b->delays / turns;
    uint64_t *raw_ns = ns + b->delays, number = 0, raw_number = 0;
    enum dp_status st = DP_OK;
    dp_bench_rows_set(work, p->server[variant].client[0], p->server[variant].table[0], push, false);
    struct dp_load load = dp_bench_rows_load(work),
                   raw = dp_bench_rows_raw(work, b->raw[b->variant[variant].ipc]);
    for (uint32_t turn = 0; turn < turns && st == DP_OK; turn++) {
        st = dp_bench_load_round_trips(&load, each, &number, ns + turn * each, err);
        if (st == DP_OK)
            st = dp_bench_load_round_trips(&raw, each, &raw_number, raw_ns + turn * each, err);
        if (st == DP_OK)
            st = dp_bench_server_look(&p->server[variant], err);
    }
    size_t n = (size_t)turns * each;
    struct dp_bench_delay line = delays_of(p, variant, ns, (uint32_t)n, raw_ns, (uint32_t)n);
    line.what = push ? "push" : "pull";
    if (st == DP_OK)
        dp_bench_show_delay(&line, b->json);
    return st;
}

enum dp_status dp_bench_latency(struct bench_place *p, struct dp_error *err)
{
    const struct bench *b = p->bench;
    struct dp_bench_keys keys;
    struct dp_bench_rows work;
    uint64_t *ns = calloc(2 * (size_t)b->delays, sizeof *ns);
    enum dp_status st = ns ? dp_bench_keys_new(p->rows, DELAY_KEYS, b->sets, 0, SEED, &keys, err)
                           : dp_fail(err, DP_NOMEM, "no memory for round trips");
    if (st != DP_OK) {
        free(ns);
        return st;
    }
    st = dp_bench_rows_new(&keys, p->dim, 1, &work, err);
    for (uint32_t i = 0; i < 2 * b->variants && st == DP_OK; i++)
        st = delay(p, i / 2, &work, i % 2, ns, err);
    dp_bench_rows_clear(&work);
    dp_bench_keys_clear(&keys);
    free(ns);
    return st;
}

/* ---- cached rows next to misses */

/* One client pulls ten rows, the same again and again, while the other pulls uniform keys, most of which are misses; raw's
 * round trips likewise while the store alone is read. */
static enum dp_status beside(struct bench_place *p, uint32_t variant, struct dp_bench_rows *hot,
                             struct dp_bench_rows *cold, uint64_t *ns, struct dp_error *err)
{
    const struct bench *b = p->bench;
    struct dp_bench_server *server = &p->server[variant];
    uint32_t n = 0, raw_n = 0;
    uint64_t number = 0;
    dp_bench_rows_set(hot, server->client[0], server->table[0], false, false);
    dp_bench_rows_set(cold, server->client[1], server->table[1], false, true);
    struct dp_load front = dp_bench_rows_load(hot), behind = dp_bench_rows_load(cold),
                   raw = dp_bench_rows_raw(hot, b->raw[b->variant[variant].ipc]),
                   bare = b->store->load(p->store[variant], cold->keys, 1);
    uint64_t *raw_ns = ns + b->delays;
    enum dp_status st = dp_bench_load_round_trips(&front, 10, &number, ns, err);
    if (st == DP_OK)
        st = dp_bench_load_beside(&front, &behind, b->in_flight, BESIDE_MS, b->delays, ns, &n, err);
    if (st == DP_OK)
        st = dp_bench_load_beside(&raw, &bare, b->in_flight, BESIDE_MS, b->delays, raw_ns, &raw_n, err);
    if (st != DP_OK)
        return st;
    struct dp_bench_delay line = delays_of(p, variant, ns, n, raw_ns, raw_n);
    line.what = "pull of cached rows next to misses";
    dp_bench_show_delay(&line, b->json);
    return dp_bench_server_look(server, err);
}

enum dp_status dp_bench_beside(struct bench_place *p, struct dp_error *err)
{
    const struct bench *b = p->bench;
    struct dp_bench_keys keys = {0};
    struct dp_bench_rows hot = {0}, cold = {0};
    uint64_t *ns = calloc(2 * (size_t)b->delays, sizeof *ns);
    enum dp_status st = ns ? dp_bench_keys_new(p->rows, DELAY_KEYS, 1, 0, SEED, &keys, err)
                           : dp_fail(err, DP_NOMEM, "no memory for round trips");
    if (st == DP_OK)
        st = dp_bench_rows_new(&keys, p->dim, 1, &hot, err);
    if (st == DP_OK)
        st = dp_bench_rows_new(&p->keys[0], p->dim, b->in_flight, &cold, err);
    for (uint32_t i = 0; i < b->variants && st == DP_OK; i++)
        if (p->store[i])
            st = beside(p, i, &hot, &cold, ns, err);
    dp_bench_rows_clear(&hot);
    dp_bench_rows_clear(&cold);
    if (keys.keys)
        dp_bench_keys_clear(&keys);
    free(ns);
    return st;
}
