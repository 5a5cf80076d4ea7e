/* Diverged: what a user can do after a run whose training has diverged: the commands that work, with a concrete rate.
 * Thread    One; no server of the run is running. */
#ifndef DP_CLI_DIVERGED_H
#define DP_CLI_DIVERGED_H

#include "deploy/cli/run_state.h"

#include <stdio.h>

/* epoch: in which it diverged, as users count. The last checkpoint that the store knows of is named if it is still there. */
void dp_diverged_tell(const struct dp_folder *folder, const struct dp_cluster *cluster, uint32_t epoch,
                      FILE *to);

#endif
