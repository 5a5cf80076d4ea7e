/* Diverged: the state after a diverged training, and the commands that still work, with a concrete rate.
 * Thread    One. */
#ifndef DP_RUN_DIVERGED_H
#define DP_RUN_DIVERGED_H

#include "deploy/run/run_state.h"

#include <stdio.h>

/* Before a run is resumed, or another one continues from its weights. DP_ARGUMENT: it diverged, and stderr has the commands that help. */
enum dp_status dp_diverged_check(const struct dp_folder *folder, const struct dp_cluster *cluster,
                                 struct dp_error *err);
/* epoch: in which it diverged, as users count. The checkpoint of the best epoch is named, or else the last checkpoint that the store knows
 * of, if it is still there. */
void dp_diverged_tell(const struct dp_folder *folder, const struct dp_cluster *cluster, uint32_t epoch,
                      FILE *to);

#endif
