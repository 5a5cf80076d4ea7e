/* Train: one worker's training, from reading the data to the report.
 *     read -> where to go on -> (epoch -> all rest and evaluate)* -> say "trained", wait for all -> report
 * A restarted worker continues where the servers know that it was (position.h), with the stats of its
 * earlier processes (stats_history.h). When the first server restarts, notes are lost. A worker puts its
 * note again if others still need it (peers.h). So every worker stays until worker 0 has written the
 * report. evaluation.h has the evaluated sets, their times, and the weights that are kept. Worker 0 logs
 * the metrics and, at the end, writes the report.
 * Failure   DP_REPLACED with *let_leave: the others removed this worker for its silence; it may join again
 *           (membership.h). DP_STOPPING after a signal, when the pushes are answered. DP_EXISTS when this run
 *           is already complete; DP_OK instead with options->resumes. */
#ifndef DP_LOOP_TRAIN_H
#define DP_LOOP_TRAIN_H

#include "worker/context/job.h"

struct dp_train_options {
    const char *cluster_file; /* for the checkpoint of its best epoch */
    bool resumes;             /* --resume: an earlier process of this worker may have begun the run */
};

/* The job's tables are open. */
enum dp_status dp_train(struct dp_job *job, const struct dp_train_options *options, bool *let_leave,
                        struct dp_error *err);

#endif
