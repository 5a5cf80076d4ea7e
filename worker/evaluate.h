/* Evaluate: the figures of the test set, computed by all workers together: each takes the minibatches
 * n % workers == worker and puts its part as a note (eval_note.h); worker 0 merges a complete set of parts.
 * Why       Merged parts are taken away, as the server keeps notes as long as it runs. A worker 0 that was
 *           killed and started again finds such epochs gone: they have no figures, and the training goes on. */
#ifndef DP_WORKER_EVALUATE_H
#define DP_WORKER_EVALUATE_H

#include "worker/compute/metrics.h"
#include "worker/eval_note.h"
#include "worker/progress.h"

/* How the notes of this training's evaluations lie (rest: those at which all workers rest); DP_FULL, with the remedy, where notes cannot hold them. */
DP_MUST_USE
enum dp_status dp_evaluate_plan(const struct dp_job *job, const struct dp_dataset *test, bool rest,
                                struct dp_eval_ring *out, struct dp_error *err);
/* epoch: counted from 1. */
DP_MUST_USE
enum dp_status dp_evaluate_share(struct dp_job *job, struct dp_progress *progress,
                                 const struct dp_dataset *test, struct dp_eval_ring ring, uint32_t epoch,
                                 struct dp_error *err);
/* Takes the parts of an epoch away. */
DP_MUST_USE
enum dp_status dp_evaluate_drop(struct dp_job *job, struct dp_eval_ring ring, uint32_t epoch,
                                struct dp_error *err);
/* Looks for the parts of all workers. *found: DP_EVAL_PART: they were merged into *out; NOT_YET: look again;
 * GONE: there will be none. With `wait` it waits for those that are missing, for the last epoch or at rest only,
 * and leaves the parts where they are: a worker 0 that is killed before it has reported finds them again. */
DP_MUST_USE
enum dp_status dp_evaluate_merge(struct dp_job *job, struct dp_progress *progress,
                                 const struct dp_dataset *test, struct dp_eval_ring ring, uint32_t epoch,
                                 bool wait, enum dp_eval_note *found, struct dp_figures *out,
                                 struct dp_error *err);

#endif
