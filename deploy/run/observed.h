/* Observed: what `run --sample-every` adds to a run (worker/observe/README.md):
 *     plan (flags) -> prepare (score.conf, score.keys) -> start (the observer) -> stop (its last sample) -> score (samples.json)
 * Files     In the run's directory: score.conf: its cluster file with the set to score; score.keys, samples: removed when the samples
 *           are scored; samples.json: the metrics of each sample (scoring.h), or {"error": "..."}.
 * Promise   A failure here does not fail the run. It is reported in one line, and in samples.json. Without
 *           --sample-every every step does nothing.
 * Thread    One. */
#ifndef DP_RUN_OBSERVED_H
#define DP_RUN_OBSERVED_H

#include "common/config/cluster.h"
#include "deploy/supervise/local.h"

struct dp_folder;

struct dp_observed {
    uint32_t every_ms; /* 0: off */
    char score[DP_PATH_MAX + 1], labels[DP_PATH_MAX + 1],
        negatives[DP_PATH_MAX + 1]; /* "": the run's own set */
    bool validation;                /* the run's validation set is scored, whatever other it has */
    bool failed, started, scored;
    long log_from; /* of the observer's log: where this run's part begins */
};

/* values: of dp_run_command. A held-out set of a new run is not evaluated by its workers then. DP_ARGUMENT, DP_IO name the flag. */
enum dp_status dp_observed_plan(const char *const *values, struct dp_cluster *cluster, bool resumes,
                                struct dp_observed *out, struct dp_error *err);
/* Before the training: finds which rows are to be sampled, for which it reads the data as a worker does. Returns at a signal. */
void dp_observed_prepare(struct dp_observed *observed, struct dp_local *local, const struct dp_folder *folder,
                         const struct dp_cluster *cluster);
/* The servers are up. Returns when the observer is connected to them, or after 10 s. */
void dp_observed_start(struct dp_observed *observed, struct dp_local *local, const struct dp_folder *folder);
/* The training has ended; answered: the servers still do. */
void dp_observed_stop(struct dp_observed *observed, struct dp_local *local, const struct dp_folder *folder,
                      bool answered);
/* Returns at a signal. */
void dp_observed_score(struct dp_observed *observed, struct dp_local *local, const struct dp_folder *folder);

#endif
