/* Evaluate: the figures of the test set, computed by all workers together: each takes the minibatches
 * n % workers == worker and puts its part as a note; worker 0 merges a complete set of parts.            */
#ifndef DP_WORKER_EVALUATE_H
#define DP_WORKER_EVALUATE_H

#include "worker/compute/metrics.h"
#include "worker/progress.h"

/* epoch: counted from 1. */
DP_MUST_USE
enum dp_status dp_evaluate_share(struct dp_job *job, struct dp_progress *progress,
                                 const struct dp_dataset *test, uint32_t epoch, struct dp_error *err);
/* Merges the parts of all workers; without `wait` only if they are all there already (*done). */
DP_MUST_USE
enum dp_status dp_evaluate_merge(struct dp_job *job, struct dp_progress *progress, uint32_t epoch, bool wait,
                                 bool *done, struct dp_figures *out, struct dp_error *err);

#endif
