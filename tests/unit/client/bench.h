/* Bench: a client and the fake network under it, as the tests of this room set them up. */
#ifndef DP_TESTS_UNIT_CLIENT_BENCH_H
#define DP_TESTS_UNIT_CLIENT_BENCH_H

#include "tests/lib/test.h"

#include "common/client/client_over.h"
#include "tests/lib/fake_transport.h"

#include <stdio.h>
#include <string.h>

enum { WAIT_MS = 60000 };

static const char *const endpoints[] = {"tcp://f0", "tcp://f1", "tcp://f2", "tcp://f3",
                                        "tcp://f4", "tcp://f5", "tcp://f6", "tcp://f7"};

struct bench {
    struct dp_fake_net *net;
    struct dp_client *client;
    struct dp_client_options options;
    struct dp_error err;
};

static inline enum dp_status open_client(struct bench *b)
{
    struct dp_transport transport = dp_fake_net_transport(b->net);
    struct dp_clock clock = dp_fake_net_clock(b->net);
    return dp_client_open_over(&b->options, &transport, &clock, 41, &b->client, &b->err);
}

static inline struct bench made(uint32_t shards)
{
    struct bench b = {.net = dp_fake_net_new(7, shards)};
    b.options = (struct dp_client_options){.name = "test",
                                           .cluster = 5,
                                           .generation = 1,
                                           .shards = endpoints,
                                           .shard_count = shards,
                                           .control = "tcp://control",
                                           .retry_ms = 100,
                                           .open_timeout_ms = 1000};
    return b;
}

static inline struct bench opened(uint32_t shards, bool bf16)
{
    struct bench b = made(shards);
    b.options.bf16_values = bf16;
    assert_int_equal(open_client(&b), DP_OK);
    return b;
}

static inline void advance(struct bench *b, uint32_t ms)
{
    uint64_t until = b->net->now_ns + ms * UINT64_C(1000000);
    while (b->net->now_ns < until) {
        dp_client_progress(b->client);
        b->net->now_ns += 1000000;
    }
    dp_client_progress(b->client);
}

static inline void done(struct bench *b)
{
    dp_client_close(&b->client);
    assert_null(b->client);
    assert_true(b->net->closed);
    dp_fake_net_free(&b->net);
}

static inline struct dp_client_table *table(struct bench *b, const char *name, uint32_t dim)
{
    struct dp_table_spec spec = {.dim = dim, .optimizer = dp_optimizer_defaults(DP_OPT_SGD)};
    struct dp_client_table *out = NULL;
    (void)snprintf(spec.name, sizeof spec.name, "%s", name);
    if (dp_client_table(b->client, &spec, WAIT_MS, &out, &b->err) != DP_OK)
        fail_msg("%s", b->err.text);
    return out;
}

/* A gradient of ones for one key of a table of width 4. */
static inline enum dp_status push_one(struct bench *b, struct dp_client_table *t, uint64_t key,
                                      uint32_t timeout_ms, struct dp_ticket *out)
{
    const float g[DP_FAKE_DIM_MAX] = {1, 1, 1, 1};
    struct dp_keys *keys;
    assert_int_equal(dp_keys_new(&keys, &b->err), DP_OK);
    assert_int_equal(dp_keys_set(keys, &key, 1, &b->err), DP_OK);
    const struct dp_push_part part = {t, keys, g};
    const struct dp_push_options options = {.rate = 1};
    enum dp_status st = dp_client_push(b->client, &options, &part, 1, timeout_ms, out, &b->err);
    dp_keys_free(&keys);
    return st;
}

static inline void text_has(const struct bench *b, const char *part)
{
    if (!strstr(b->err.text, part))
        fail_msg("'%s' is not in: %s", part, b->err.text);
}

#endif
