/* Scored: a run's test set, and the metrics on it of weights from anywhere.
 *     open -> figures, figures, ... -> close
 * Promise   The metrics are bit for bit those that the run's own workers would give of the same weights: its
 *           model, its minibatches, and each worker's share summed by itself.
 * Set       The test set of the cluster file, else its validation set.
 * Thread    One, and a reader's inside.
 * Failure   DP_ARGUMENT, DP_DATA name the setting or the file. */
#ifndef DP_OBSERVE_SCORED_H
#define DP_OBSERVE_SCORED_H

#include "worker/compute/metrics.h"
#include "worker/score/sets.h"
#include "worker/telemetry/progress.h"

struct dp_scored {
    struct dp_cluster cluster; /* with the defaults that depend on the training set */
    struct dp_job job;
    struct dp_progress progress; /* not reported */
    struct dp_sets sets;
    const struct dp_dataset *set;
};

/* out: where it stays, as the job refers to it. */
enum dp_status dp_scored_open(const struct dp_cluster *cluster, const atomic_int *stop, struct dp_scored *out,
                              struct dp_error *err);
void dp_scored_close(struct dp_scored *scored);
/* DP_NOT_FINITE: these weights have diverged. Other failures are those of the source, or DP_STOPPING. */
enum dp_status dp_scored_figures(struct dp_scored *scored, const struct dp_row_source *rows,
                                 struct dp_figures *out, struct dp_error *err);

#endif
