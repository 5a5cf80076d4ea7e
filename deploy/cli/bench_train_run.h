/* Bench train, run: one training by real processes of this machine: one server, one worker; and what it took.
 *     data -> cluster file -> server -> (it answers) -> worker -> (it ends) -> server killed -> report read
 * Promise   All in a directory of the caller's, cleared before; no process is left. The server's rows are of no use to anybody:
 *           it is killed.
 * Thread    One.
 * Failure   DP_STOPPING: a signal, or a process ended as it should not have (dp_local_failed tells). */
#ifndef DP_CLI_BENCH_TRAIN_RUN_H
#define DP_CLI_BENCH_TRAIN_RUN_H

#include "deploy/cli/bench_train_data.h"
#include "deploy/cli/folder.h"
#include "deploy/cli/local.h"

#define DP_TRAIN_SETTINGS_MAX 32u
#define DP_TRAIN_DEVICE_MAX   64u

/* Parts of a step that the worker's report tells; seconds. On a device copy_in, compute and copy_out are by its own clock and
 * run beside the others; the rest, and all without a device, is the host's time one after the other. */
enum dp_train_part {
    DP_TRAIN_READ,
    DP_TRAIN_PULL,
    DP_TRAIN_COPY_IN,
    DP_TRAIN_COMPUTE,
    DP_TRAIN_COPY_OUT,
    DP_TRAIN_PUSH,
    DP_TRAIN_WAITING,
    DP_TRAIN_OTHER,
    DP_TRAIN_PARTS
};

extern const char *const dp_train_part_names[DP_TRAIN_PARTS]; /* "read", "copy_in", ... */

struct dp_train_options {
    const char *model, *format, *train, *labels; /* labels: NULL: none */
    uint32_t batch, epochs, shards;
    struct {
        const char *key, *value; /* of the cluster file; later ones win */
    } setting[DP_TRAIN_SETTINGS_MAX];
    uint32_t settings;
};

struct dp_train_figures {
    uint64_t examples; /* of an epoch */
    uint32_t epochs, shards;
    double median_s, best_s, whole_s;  /* of an epoch; of all */
    double part_s[DP_TRAIN_PARTS];     /* of all epochs */
    double hidden;                     /* bench_train_hidden.h; NaN: without a device */
    double worker_cpu_s, server_cpu_s; /* from start to end: reading the file is in the worker's */
    char device[DP_TRAIN_DEVICE_MAX];  /* as the worker names it; empty: it does not */
};

DP_MUST_USE
enum dp_status dp_train_run(struct dp_local *local, const struct dp_folder *folder,
                            const struct dp_train_options *options, struct dp_train_figures *out,
                            struct dp_error *err);

#endif
