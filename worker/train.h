/* Train: one worker's whole training, from reading the data to the report.
 *     read -> where to go on -> (epoch -> all rest and evaluate)* -> say "trained", wait for all -> report
 * A worker that was killed and started again goes on where the servers know it was (position.h), and has the figures
 * of before (remember.h). Notes are gone when the first server is started again: those that others still need are put
 * again by who made them, so every worker stays until worker 0 has reported.
 * With a validation set, or else a test set, all workers rest at the end of each epoch until it was evaluated and judged
 * (verdict.h); beside a validation set the test set is evaluated at the end. Without a set nobody rests. Worker 0 logs the figures
 * and, at the end, writes the report.
 * Failure   DP_STOPPING after a signal, pushes answered; DP_EXISTS when this run was trained already, unless
 *           job->resumes: then there is nothing left to do. */
#ifndef DP_WORKER_TRAIN_H
#define DP_WORKER_TRAIN_H

#include "worker/job.h"

/* A job with tables. */
DP_MUST_USE
enum dp_status dp_train(struct dp_job *job, struct dp_error *err);

#endif
