/* Bench rows: pulls and pushes of prepared sets of keys, as a load; and the same bytes for raw and memcpy.
 * Promise   Keys are drawn, mixed, sorted and merged before the timing, as in ps-lite's benchmark. The time
 *           is that of the client library's call, the wire, the server, and the placing of rows in the order
 *           of the sorted keys. */
#ifndef DP_BENCH_BENCH_ROWS_H
#define DP_BENCH_BENCH_ROWS_H

#include "common/client/downpour.h"
#include "deploy/bench/bench_load.h"
#include "deploy/bench/bench_raw.h"

/* Key sets of one kind; duplicates in a drawn set are merged, so a set may be shorter than drawn. */
struct dp_bench_keys {
    uint32_t sets;
    size_t rows_max;
    double rows_mean;
    uint64_t *mixed;       /* one after another */
    struct dp_keys **keys; /* [sets], lent from mixed */
};

/* zipf: 0: uniform over 0 .. rows-1; else the exponent, with ranks spread over the keys. */
enum dp_status dp_bench_keys_new(uint64_t rows, size_t n, uint32_t sets, double zipf, uint64_t seed,
                                 struct dp_bench_keys *out, struct dp_error *err);
void dp_bench_keys_clear(struct dp_bench_keys *keys);

struct dp_bench_rows {
    struct dp_client *client;
    struct dp_client_table *table;
    const struct dp_bench_keys *keys;
    bool push;
    uint32_t dim, value_bytes;
    float *rows[DP_BENCH_IN_FLIGHT_MAX]; /* weights or gradients of a slot */
    struct dp_ticket ticket[DP_BENCH_IN_FLIGHT_MAX];
    struct dp_raw_shape *shapes; /* [sets] */
    unsigned char *copied;
};

/* Client and table may be changed between runs (dp_bench_rows_set). */
enum dp_status dp_bench_rows_new(const struct dp_bench_keys *keys, uint32_t dim, uint32_t in_flight,
                                 struct dp_bench_rows *out, struct dp_error *err);
void dp_bench_rows_clear(struct dp_bench_rows *rows);
/* Sets what a request is; call before making loads. */
void dp_bench_rows_set(struct dp_bench_rows *rows, struct dp_client *client, struct dp_client_table *table,
                       bool push, bool bf16);
struct dp_load dp_bench_rows_load(struct dp_bench_rows *rows);
struct dp_load dp_bench_rows_raw(const struct dp_bench_rows *rows, struct dp_raw *raw);
struct dp_load dp_bench_rows_memcpy(struct dp_bench_rows *rows);

#endif
