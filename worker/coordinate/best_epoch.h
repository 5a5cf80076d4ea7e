/* Best epoch: a checkpoint of the weights, made while all workers rest at the epoch barrier. It is the only one in the
 * directory training.best.
 * The first server makes it (server/coordinator).
 * Promise   After DP_OK the checkpoint is complete and durable. The one before it is removed only then. After a failure
 *           the one before is still there, and nothing else counts as a checkpoint (server/checkpoint/README.md). If this
 *           process is killed, the first server completes it. A process that was suspended replaces nothing: an epoch after which another
 *           one has pushed is refused.
 * Thread    The client's.
 * Failure   DP_STOPPING after a signal. Else why the first server could not make it, as long as a wait may last. */
#ifndef DP_COORDINATE_BEST_EPOCH_H
#define DP_COORDINATE_BEST_EPOCH_H

#include "worker/context/job.h"

/* epoch: counted from 1. cluster_file: for the checkpoint. */
enum dp_status dp_best_epoch_save(struct dp_job *job, const char *cluster_file, uint32_t epoch,
                                  struct dp_error *err);
/* Whether the checkpoint there is of this epoch of this run, counted from 1: after a restore it may be missing, or of
 * another one. Only names and the manifest are read. */
bool dp_best_epoch_is_there(const struct dp_job *job, uint32_t epoch);

#endif
