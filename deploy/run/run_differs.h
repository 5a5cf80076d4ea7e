/* Run differs: the differences between a training and the earlier one of a store, key by key. A key counts
 * unless it cannot change the training: places of processes, timeouts, the device, memory limits, and the
 * files that runs make. Data files are compared by content if it is known, not by name.
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
