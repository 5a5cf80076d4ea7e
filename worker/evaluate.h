/* Evaluate: the figures of a set, computed by all workers together while none of them trains (verdict.h): each takes the
 * minibatches n % workers == worker and puts its part as a note (eval_note.h); worker 0 merges them.
 * Promise   A part that the first server loses is put again by its worker, while that one waits for others.
 * Thread    The client's.                                                                                */
#ifndef DP_WORKER_EVALUATE_H
#define DP_WORKER_EVALUATE_H

#include "worker/compute/metrics.h"
#include "worker/eval_note.h"
#include "worker/progress.h"

/* DP_FULL, with the remedy: notes cannot hold the parts of this set. */
DP_MUST_USE
enum dp_status dp_evaluate_fits(const struct dp_job *job, const struct dp_dataset *data,
                                struct dp_error *err);
/* This worker's part. epoch: counted from 1. */
DP_MUST_USE
enum dp_status dp_evaluate_share(struct dp_job *job, struct dp_progress *progress,
                                 const struct dp_dataset *data, enum dp_eval_kind kind, uint32_t epoch,
                                 struct dp_error *err);
/* Waits for the parts of all workers. They stay where they are: a worker 0 that is killed before anybody knows the figures finds
 * them again. DP_DATA: one has been taken away already. */
DP_MUST_USE
enum dp_status dp_evaluate_merge(struct dp_job *job, struct dp_progress *progress,
                                 const struct dp_dataset *data, enum dp_eval_kind kind, uint32_t epoch,
                                 struct dp_figures *out, struct dp_error *err);
/* Takes the parts of an epoch away: servers keep notes while they live. */
DP_MUST_USE
enum dp_status dp_evaluate_drop(struct dp_job *job, enum dp_eval_kind kind, uint32_t epoch,
                                struct dp_error *err);

#endif
