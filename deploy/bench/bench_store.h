/* A seam: a yardstick for rows that a server's cache missed, read from its store by other means. `downpour
 * bench` has none; `downpour-bench store` (tests/bench/program) is the same with bare MultiGet. */
#ifndef DP_BENCH_BENCH_STORE_H
#define DP_BENCH_BENCH_STORE_H

#include "deploy/bench/bench_load.h"
#include "deploy/bench/bench_pin.h"
#include "deploy/bench/bench_rows.h"

struct dp_bench_store {
    /* directory: of a shard whose server is running. Reads what the store holds at this moment. */
    enum dp_status (*start)(const char *directory, const char *table, const struct dp_pin *pin, void **out,
                            struct dp_error *err);
    void (*stop)(void *self);
    /* A load of a share (0 .. 1) of each request's keys, spread over them; valid until the next call. */
    struct dp_load (*load)(void *self, const struct dp_bench_keys *keys, double share);
    /* Reads all rows of a shard that is not served, in order, and writes them into sorted files in `to`; adds their number. */
    enum dp_status (*scan)(const char *directory, const char *to, uint64_t *rows, struct dp_error *err);
};

/* Runs `downpour bench` and returns the exit code. store: NULL, or the yardstick for missed rows. */
int dp_bench_main(int argc, char *const *argv, const struct dp_bench_store *store);

#endif
