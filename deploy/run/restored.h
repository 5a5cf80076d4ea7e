/* Restored: the stores of a cluster, built from a checkpoint by `downpour-server --restore`: by one process
 * for each server of this machine, all at once.
 *     find (checkpoint, manifest) -> [cluster: its cluster file] -> stores -> clear
 * Promise   The checkpoint is only read. All servers of one call of `stores` get one history. Until all new
 *           stores are built, no store changes. Then all are replaced. The first server's store comes first
 *           and decides (server/restore/restore_exchange.h).
 * Thread    One.
 * Failure   DP_NOT_FOUND: no checkpoint there. DP_DATA: the error of the server that failed. DP_STOPPING:
 *           interrupted. */
#ifndef DP_RUN_RESTORED_H
#define DP_RUN_RESTORED_H

#include "common/config/cluster.h"
#include "server/checkpoint/manifest_data.h"
#include "server/checkpoint/paths.h"

struct dp_restored {
    struct dp_checkpoint_path checkpoint; /* DIR/checkpoint-N, absolute */
    uint32_t number;
    struct dp_manifest manifest;
    char history[17]; /* of the stores */
};

/* Whether a path is a checkpoint or a directory of checkpoints, and not a run's directory. */
bool dp_restored_is_checkpoint(const char *path);
/* from: DIR/checkpoint-N, or DIR: its last one. DP_CORRUPT: its manifest, cluster file, names or columns are damaged. */
enum dp_status dp_restored_find(const char *from, struct dp_restored *out, struct dp_error *err);
/* The cluster file that the checkpoint keeps, without the paths to which its training wrote: report, steps, best, names, columns and cache.
 * Its other paths are absolute: relative ones are resolved against the current directory. */
enum dp_status dp_restored_cluster(const struct dp_restored *restored, struct dp_cluster **out,
                                   struct dp_error *err);
struct dp_restored_stores {
    const char *file; /* cluster file of `cluster` */
    const struct dp_cluster *cluster;
    bool overwrite;
    const char
        *without; /* tables, which the manifest leaves out, too (server/restore/left_out.h); NULL: none */
    int lock;     /* for the processes to hold; -1: none */
    /* All stores are built, and none is replaced yet: a failure leaves it so. NULL: nothing is to be done then. */
    enum dp_status (*before_exchange)(void *context, struct dp_error *err);
    void *context;
};
/* Builds the stores of those servers that are on this machine, and puts the checkpoint's names and columns (if the cluster file is of the
 * same run) and the workers' step logs where the cluster file wants them: a failure of that is a warning. *done: how many were built; if
 * all, they have taken the old stores' places, else none has. */
enum dp_status dp_restored_stores(struct dp_restored *restored, const struct dp_restored_stores *options,
                                  uint32_t *done, struct dp_error *err);
/* Completes a restore of these servers that was interrupted after it was decided; one that was interrupted before is said on stderr. */
enum dp_status dp_restored_complete(const struct dp_cluster *cluster, struct dp_error *err);
/* Whether the server is on this machine. Of servers that are only counted the first one is known, and all
 * where that is at a loopback address. */
bool dp_restored_is_local(const struct dp_cluster *cluster, uint32_t server);
void dp_restored_clear(struct dp_restored *restored); /* accepts {0} */

/* A run's directory in a directory of its own (scratch.h), to be read: one server, whose stores were closed cleanly, with the names and
 * columns that the checkpoint has; names: it must have names. path: DP_PATH_MAX + 1; the caller gives it to dp_scratch_remove, after a
 * failure too ("" then, or what is left). */
enum dp_status dp_restored_scratch(const char *from, bool names, char *path, struct dp_error *err);

#endif
