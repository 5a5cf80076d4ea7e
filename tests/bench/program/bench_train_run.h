/* Bench train, run: one training by one real server and one real worker on this machine, and its times.
 *     data -> cluster file -> server -> (it answers) -> worker -> (it ends) -> server killed -> report read
 * Promise   It uses a directory of the caller, which it clears first, and leaves no process. The server is
 *           killed, since its rows are not needed.
 * Thread    One.
 * Failure   DP_STOPPING: a signal came, or a process ended unexpectedly (dp_local_failed says which). */
#ifndef DP_TESTS_BENCH_PROGRAM_BENCH_TRAIN_RUN_H
#define DP_TESTS_BENCH_PROGRAM_BENCH_TRAIN_RUN_H

#include "deploy/run/folder.h"
#include "deploy/supervise/local.h"
#include "tests/bench/program/bench_train_data.h"

#define DP_BENCH_TRAIN_SETTINGS_MAX 32u
#define DP_BENCH_TRAIN_DEVICE_MAX   64u

/* Parts of a step in the worker's report, in seconds. On a device copy_in, compute and copy_out are by its
 * own clock and overlap with the others; the rest, and everything without a device, is consecutive time of
 * the host. */
enum dp_bench_train_part {
    DP_BENCH_TRAIN_READ,
    DP_BENCH_TRAIN_PULL,
    DP_BENCH_TRAIN_COPY_IN,
    DP_BENCH_TRAIN_COMPUTE,
    DP_BENCH_TRAIN_COPY_OUT,
    DP_BENCH_TRAIN_PUSH,
    DP_BENCH_TRAIN_WAITING,
    DP_BENCH_TRAIN_OTHER,
    DP_BENCH_TRAIN_PARTS
};

extern const char *const dp_bench_train_part_names[DP_BENCH_TRAIN_PARTS]; /* "read", "copy_in", ... */

struct dp_bench_train_options {
    const char *model, *format, *train, *labels; /* labels: NULL: none */
    uint32_t batch, epochs, shards;
    struct {
        const char *key, *value; /* of the cluster file; later ones win */
    } setting[DP_BENCH_TRAIN_SETTINGS_MAX];
    uint32_t settings;
};

struct dp_bench_train_figures {
    uint64_t examples; /* of an epoch */
    uint32_t epochs, shards;
    double median_s, best_s, whole_s;       /* median and best epoch; all epochs */
    double part_s[DP_BENCH_TRAIN_PARTS];    /* of all epochs */
    double hidden;                          /* bench_train_hidden.h; NaN: without a device */
    double worker_cpu_s, server_cpu_s;      /* from start to end; the worker's includes reading the file */
    char device[DP_BENCH_TRAIN_DEVICE_MAX]; /* as the worker names it, or empty */
};

enum dp_status dp_bench_train_run(struct dp_local *local, const struct dp_folder *folder,
                                  const struct dp_bench_train_options *options,
                                  struct dp_bench_train_figures *out, struct dp_error *err);

#endif
