/* Run differs: in what a training is not the one that a store was trained by, key by key.
 * A key counts unless it is known not to change what is trained: where processes are, how long one waits, what computes, how
 * much memory is used, and the files that runs make. Of data files the contents decide, where they are known, not their names.
 * Thread    Any: plain functions. */
#ifndef DP_RUN_RUN_DIFFERS_H
#define DP_RUN_RUN_DIFFERS_H

#include "deploy/run/run_state.h"

#define DP_DIFFERENCES_MAX 16u

struct dp_difference {
    char key[64]; /* of the cluster file: "training.rate" */
    char before[128], now[128];
};

/* same: to be the same training to its end; else: to be trained on with, where by how many workers, for how long, and what is
 * evaluated may differ. Returns how many there are; the first DP_DIFFERENCES_MAX are in out. */
size_t dp_run_differs(const struct dp_cluster *before, const struct dp_run_state *before_state,
                      const struct dp_cluster *now, const struct dp_run_state *now_state, bool same,
                      struct dp_difference out[DP_DIFFERENCES_MAX]);
/* What may differ where a run is trained on, and changes how the workers go together. */
size_t dp_run_differs_freely(const struct dp_cluster_training *before, const struct dp_cluster_training *now,
                             struct dp_difference out[DP_DIFFERENCES_MAX]);

#endif
