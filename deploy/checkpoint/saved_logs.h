/* Saved logs: the step logs of a cluster's workers (training.steps) as a checkpoint has them.
 *     read, right behind the cut -> put
 * A worker logs a push before it sends it, so a log read behind the cut has all of the cut's pushes.
 * Promise   A log that is not there, as its worker runs on another machine, is left out; so is one that cannot be read, with a warning.
 * Thread    Any. Memory: clear, which accepts {0}. */
#ifndef DP_CHECKPOINT_SAVED_LOGS_H
#define DP_CHECKPOINT_SAVED_LOGS_H

#include "common/config/cluster.h"
#include "server/checkpoint/manifest_data.h"

struct dp_saved_logs {
    struct dp_saved_logs_one {
        char *bytes; /* NULL: there is none */
        size_t size;
    } * log; /* [workers] */
    uint32_t workers;
};

void dp_saved_logs_read(const struct dp_cluster *cluster, struct dp_saved_logs *out);
DP_MUST_USE
enum dp_status dp_saved_logs_put(const struct dp_saved_logs *logs, const char *directory, uint64_t order,
                                 struct dp_manifest *manifest, struct dp_error *err);
void dp_saved_logs_clear(struct dp_saved_logs *logs);

#endif
