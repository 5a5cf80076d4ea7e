#include "deploy/bench/bench_rows.h"

#include "deploy/cli/draw.h"

#include <stdlib.h>
#include <string.h>

#define SPREAD UINT64_C(2654435761) /* a prime: ranks that follow each other are keys far apart */

static void draw_keys(uint64_t *to, size_t n, uint64_t rows, const struct dp_zipf *zipf, struct dp_draw *draw)
{
    for (size_t i = 0; i < n; i++)
        to[i] = zipf->n ? (dp_zipf_draw(zipf, draw) - 1) * SPREAD % rows : dp_draw_below(draw, rows);
}

static enum dp_status make_set(struct dp_bench_keys *out, struct dp_keys *sorted, const uint64_t *drawn,
                               size_t n, size_t *used, struct dp_error *err)
{
    struct dp_keys **keys = &out->keys[out->sets];
    enum dp_status st = dp_keys_set(sorted, drawn, n, err);
    if (st == DP_OK)
        st = dp_keys_new(keys, err);
    if (st != DP_OK)
        return st;
    out->sets++;
    size_t distinct = dp_keys_distinct(sorted);
    memcpy(out->mixed + *used, dp_keys_mixed(sorted), distinct * sizeof *out->mixed);
    st = dp_keys_lend(*keys, out->mixed + *used, distinct, err);
    *used += distinct;
    out->rows_max = distinct > out->rows_max ? distinct : out->rows_max;
    return st;
}

enum dp_status dp_bench_keys_new(uint64_t rows, size_t n, uint32_t sets, double exponent, uint64_t seed,
                                 struct dp_bench_keys *out, struct dp_error *err)
{
    struct dp_draw draw = {.state = seed};
    struct dp_zipf zipf = {0};
    struct dp_keys *sorted = NULL;
    size_t used = 0;
    *out = (struct dp_bench_keys){0};
    out->mixed = malloc(n * sets * sizeof *out->mixed);
    out->keys = calloc(sets, sizeof(struct dp_keys *));
    uint64_t *drawn = malloc(n * sizeof *drawn);
    enum dp_status st = out->mixed && out->keys && drawn ? dp_keys_new(&sorted, err)
                                                         : dp_fail(err, DP_NOMEM, "no memory for keys");
    if (exponent > 0)
        dp_zipf_init(&zipf, rows, exponent);
    for (uint32_t i = 0; i < sets && st == DP_OK; i++) {
        draw_keys(drawn, n, rows, &zipf, &draw);
        st = make_set(out, sorted, drawn, n, &used, err);
    }
    out->rows_mean = (double)used / (double)sets;
    dp_keys_free(&sorted);
    free(drawn);
    if (st != DP_OK)
        dp_bench_keys_clear(out);
    return st;
}

void dp_bench_keys_clear(struct dp_bench_keys *keys)
{
    for (uint32_t i = 0; i < keys->sets; i++)
        dp_keys_free(&keys->keys[i]);
    free(keys->keys);
    free(keys->mixed);
    *keys = (struct dp_bench_keys){0};
}

enum dp_status dp_bench_rows_new(const struct dp_bench_keys *keys, uint32_t dim, uint32_t in_flight,
                                 struct dp_bench_rows *out, struct dp_error *err)
{
    size_t floats = keys->rows_max * dim;
    *out = (struct dp_bench_rows){.keys = keys, .dim = dim};
    out->shapes = calloc(keys->sets, sizeof *out->shapes);
    out->copied = malloc(keys->rows_max * 8 + floats * sizeof(float));
    bool there = out->shapes && out->copied;
    for (uint32_t i = 0; i < in_flight; i++) {
        out->rows[i] = malloc(floats * sizeof *out->rows[i]);
        there = there && out->rows[i];
        for (size_t k = 0; there && k < floats; k++)
            out->rows[i][k] = (float)(k % 11 + i + 1) * 0.001f;
    }
    if (there) {
        memset(out->copied, 1, keys->rows_max * 8 + floats * sizeof(float));
        return DP_OK;
    }
    dp_bench_rows_clear(out);
    return dp_fail(err, DP_NOMEM, "no memory for the rows of %u requests", in_flight);
}

void dp_bench_rows_clear(struct dp_bench_rows *rows)
{
    for (uint32_t i = 0; i < DP_BENCH_IN_FLIGHT_MAX; i++)
        free(rows->rows[i]);
    free(rows->copied);
    free(rows->shapes);
    *rows = (struct dp_bench_rows){0};
}

void dp_bench_rows_set(struct dp_bench_rows *rows, struct dp_client *client, struct dp_client_table *table,
                       bool push, bool bf16)
{
    rows->client = client;
    rows->table = table;
    rows->push = push;
    rows->value_bytes = bf16 ? 2 : 4;
    for (uint32_t i = 0; i < rows->keys->sets; i++) {
        size_t n = dp_keys_distinct(rows->keys->keys[i]), values = n * rows->dim * rows->value_bytes;
        rows->shapes[i] = (struct dp_raw_shape){.rows = n,
                                                .keys_bytes = n * 8,
                                                .values_bytes = push ? values : 0,
                                                .reply_bytes = push ? 0 : values};
    }
}

static enum dp_status issue(void *self, uint32_t slot, uint64_t n, struct dp_error *err)
{
    struct dp_bench_rows *r = self;
    const struct dp_keys *keys = r->keys->keys[n % r->keys->sets];
    if (r->push) {
        struct dp_push_part part = {.table = r->table, .keys = keys, .gradients = r->rows[slot]};
        struct dp_push_options options = {.rate = 0.001f};
        return dp_client_push(r->client, &options, &part, 1, DP_BENCH_WAIT_MS, &r->ticket[slot], err);
    }
    struct dp_pull_part part = {.table = r->table, .keys = keys, .weights = r->rows[slot]};
    return dp_client_pull(r->client, &part, 1, NULL, DP_BENCH_WAIT_MS, &r->ticket[slot], err);
}

static enum dp_status finish(void *self, uint32_t slot, struct dp_error *err)
{
    struct dp_bench_rows *r = self;
    return dp_client_wait(r->client, &r->ticket[slot], DP_BENCH_WAIT_MS, NULL, err);
}

static uint64_t rows_of(const void *self, uint64_t n)
{
    const struct dp_bench_rows *r = self;
    return r->shapes[n % r->keys->sets].rows;
}

struct dp_load dp_bench_rows_load(struct dp_bench_rows *rows)
{
    return (struct dp_load){.issue = issue, .finish = finish, .rows = rows_of, .self = rows};
}

struct dp_load dp_bench_rows_raw(const struct dp_bench_rows *rows, struct dp_raw *raw)
{
    return dp_raw_load(raw, rows->shapes, rows->keys->sets);
}

static enum dp_status copy(void *self, uint32_t slot, uint64_t n, struct dp_error *err)
{
    struct dp_bench_rows *r = self;
    uint64_t rows = rows_of(r, n);
    size_t values = rows * r->dim * r->value_bytes;
    (void)err;
    memcpy(r->copied, r->keys->mixed, rows * 8);
    memcpy(r->copied + rows * 8, r->rows[slot], values);
    __asm__ volatile("" ::"r"(r->copied) : "memory"); /* or the copies could be left out: they are not read */
    return DP_OK;
}

static enum dp_status copied(void *self, uint32_t slot, struct dp_error *err)
{
    (void)self;
    (void)slot;
    (void)err;
    return DP_OK;
}

struct dp_load dp_bench_rows_memcpy(struct dp_bench_rows *rows)
{
    return (struct dp_load){.issue = copy, .finish = copied, .rows = rows_of, .self = rows};
}
