/* Scoring: finds the rows that an evaluation reads, and computes the metrics from samples of these rows.
 * Both compute on this machine alone, without servers.
 * Thread    One.
 * Failure   DP_STOPPING after a signal. A written file is complete or absent. */
#ifndef DP_OBSERVE_SCORING_H
#define DP_OBSERVE_SCORING_H

#include "common/config/cluster.h"

#include <stdatomic.h>

/* Writes the keys that an evaluation of the cluster file's test set reads, and after how many examples a sample is due: 16 times an
 * epoch, at most 256 times a run. */
enum dp_status dp_scoring_keys(const struct dp_cluster *cluster, const atomic_int *stop, const char *to,
                               struct dp_error *err);

struct dp_scoring_options {
    const char *samples;
    const char *keys; /* NULL, or the file that they must have been taken with */
    const char *out;
};
/* Writes the metrics of each sample as JSON:
 *     {"set": "test", "examples": 360, "samples": [{"seconds": 1.25, "examples": 4096, "pushes": 128, "at": .., "by": "time", "loss": .., "accuracy": .., ...}]}
 * seconds: since the training began (observe.h), 0 before; at: seconds since 1970; examples, pushes: as sampled;
 * by: "time" or "examples", what the sample was taken for. A curve over examples has those by examples alone, so that its points do not
 * depend on the training's speed. The metrics have the
 * names that --stop-at takes: loss, logloss, rmse, accuracy, auc, hr@10, ndcg@10, and of items ranked among all recall@K and ndcg@K, K
 * being training.top_k; those that the set does not have are left out. Weights that have diverged: "diverged": true, and a loss of
 * null; no other metric. DP_CORRUPT: a sample is damaged. */
enum dp_status dp_scoring_samples(const struct dp_cluster *cluster, const atomic_int *stop,
                                  const struct dp_scoring_options *options, struct dp_error *err);

#endif
