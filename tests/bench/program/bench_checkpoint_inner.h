/* What the files of 'downpour-bench checkpoint' share. Private to them. */
#ifndef DP_TESTS_BENCH_PROGRAM_BENCH_CHECKPOINT_INNER_H
#define DP_TESTS_BENCH_PROGRAM_BENCH_CHECKPOINT_INNER_H

#include "deploy/bench/bench_rows.h"
#include "deploy/bench/bench_server.h"
#include "deploy/bench/bench_show.h"
#include "deploy/bench/bench_store.h"
#include "deploy/cli/options.h"

#include "common/wire/checkpoint.h"

#define DP_BENCH_CHECKPOINT_FLAGS 16u

struct checkpoint_run {
    const char *values[DP_BENCH_CHECKPOINT_FLAGS];
    uint64_t rows, keys, seconds, sets;
    uint32_t dim, clients, in_flight, rounds, repeats;
    bool json, uniform, zipf, quick;
    const char *only; /* NULL: all of it */
    struct dp_bench_server_options options;
    const struct dp_bench_store *store; /* or NULL */
    struct dp_pin pin;
    struct dp_local *local;
    struct dp_bench_server server;
    char directory[DP_PATH_MAX + 1]; /* of the checkpoints */
};

/* bench_checkpoint_make.c. Makes one, and keeps the last two. */
enum dp_status dp_bench_checkpoint_make(struct checkpoint_run *run, struct dp_checkpoint_made *out,
                                        struct dp_error *err);

/* bench_checkpoint_load.c: under full load. */
enum dp_status dp_bench_checkpoint_load(struct checkpoint_run *run, bool zipf, struct dp_error *err);
/* bench_checkpoint_rest.c: incremental ones, at rest. */
enum dp_status dp_bench_checkpoint_rest(struct checkpoint_run *run, struct dp_error *err);
/* bench_checkpoint_restore.c. The server is stopped, and in the end it has other shards and another store. */
enum dp_status dp_bench_checkpoint_restore(struct checkpoint_run *run, struct dp_error *err);

#endif
