/* Train: one worker's training, from reading the data to the report.
 *     read -> where to go on -> (epoch -> all rest and evaluate)* -> say "trained", wait for all -> report
 * A restarted worker continues where the servers know that it was (position.h), with the stats of its
 * earlier processes (remember.h). When the first server restarts, notes are lost: the worker that made a
 * note which others still need puts it again (peers.h), so every worker stays until worker 0 has written the
 * report. evaluation.h says which sets are evaluated, when, and which weights are kept. Worker 0 logs the
 * metrics and, at the end, writes the report.
 * Failure   DP_REPLACED with job->let_leave: the others let this worker leave for its silence; it may join
 *           again (membership.h). DP_STOPPING after a signal, when the pushes are answered. DP_EXISTS when this
 *           run is already complete; DP_OK instead with job->resumes. */
#ifndef DP_LOOP_TRAIN_H
#define DP_LOOP_TRAIN_H

#include "worker/context/job.h"

/* The job's tables are open. */
DP_MUST_USE
enum dp_status dp_train(struct dp_job *job, struct dp_error *err);

#endif
