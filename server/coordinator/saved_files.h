/* Saved files: the files of a run in a checkpoint, in addition to its stores. They are the cluster file,
 * the side files (common/config/side_files.h), and the workers' step logs (training.steps).
 *     (cut) -> dp_saved_logs_read -> dp_saved_files_put, dp_saved_logs_put
 * A worker logs a push before it sends it, so a log that is read right after the cut has all of the cut's pushes. The
 * side files do not change in a run, and are there before its first push.
 * Promise   A file that is not on this machine is left out; so is one that cannot be read, or a side file of over
 *           DP_SAVED_SIDE_MAX bytes, with a warning. Side files are linked where the last checkpoint has the same bytes, unless all is to be written (full).
 * Thread    Any. Memory: dp_saved_logs_clear, which accepts {0}. */
#ifndef DP_COORDINATOR_SAVED_FILES_H
#define DP_COORDINATOR_SAVED_FILES_H

#include "common/config/cluster.h"
#include "common/wire/checkpoint.h"
#include "server/checkpoint/manifest_data.h"

#define DP_SAVED_SIDE_MAX (256u << 20)

struct dp_saved_logs {
    struct dp_saved_log {
        char *bytes; /* NULL: there is none */
        size_t size;
    } * log; /* [workers] */
    uint32_t workers;
};

/* Those of this run. */
void dp_saved_logs_read(const struct dp_cluster *cluster, uint32_t run, struct dp_saved_logs *out);
void dp_saved_logs_clear(struct dp_saved_logs *logs);
/* Into the checkpoint that is being made. file: the cluster's. */
enum dp_status dp_saved_files_put(const struct dp_cluster *cluster, const char *file,
                                  const struct dp_checkpoint_ask *asked, struct dp_manifest *manifest,
                                  struct dp_error *err);
enum dp_status dp_saved_logs_put(const struct dp_saved_logs *logs, const struct dp_checkpoint_ask *asked,
                                 struct dp_manifest *manifest, struct dp_error *err);

#endif
