/* Train: one worker's whole training, from reading the data to the report.
 *     read -> where to go on -> (epoch -> evaluate)* -> say "trained", wait for all -> evaluate the final
 *     weights -> report
 * A worker that was killed and started again goes on where the servers know it was (position.h), and has the figures
 * of before (remember.h). Notes are gone when the first server is started again: those that others still need are put
 * again by who made them, so every worker stays until worker 0 has reported.
 * With a validation set, or a rule to stop (stop.h), all workers rest at the end of each epoch until it was evaluated and
 * judged (verdict.h), and the test set is evaluated at the end. Without:
 * the test set is evaluated after each epoch by all workers together; the last evaluation begins when all
 * have trained, so that the last figures are those of the final weights. Worker 0 merges an epoch's parts
 * when it comes by and they are complete, so that nobody trains slower for it, logs them and, at the end,
 * writes the report.
 * Failure   DP_STOPPING after a signal, pushes answered; DP_EXISTS when this run was trained already, unless
 *           job->resumes: then there is nothing left to do. */
#ifndef DP_WORKER_TRAIN_H
#define DP_WORKER_TRAIN_H

#include "worker/job.h"

/* A job with tables. */
DP_MUST_USE
enum dp_status dp_train(struct dp_job *job, struct dp_error *err);

#endif
