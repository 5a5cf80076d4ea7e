/* Diverged: what is left after a run whose training has diverged, and what a user can do: the commands that work, with a concrete rate.
 *     workers have ended -> revert -> servers have ended -> tell
 * Thread    One. */
#ifndef DP_CLI_DIVERGED_H
#define DP_CLI_DIVERGED_H

#include "common/client/downpour.h"
#include "deploy/cli/run_state.h"

#include <stdio.h>

/* epoch: in which it diverged, as users count. Takes all shards back to the best epoch that the run has kept. Returns that epoch, as users
 * count; 0: none was kept, the run was synchronous, or not all shards went back, as stderr says. */
uint32_t dp_diverged_revert(struct dp_client *client, const struct dp_cluster *cluster, uint32_t epoch);
/* Before a run is resumed, or another one continues from its weights. DP_ARGUMENT: it diverged, and stderr has the commands that help. A
 * run that was killed after its shards went back to the best epoch can be continued. It cannot be resumed: pushes on top of those weights
 * would be taken for that epoch's at the end. */
DP_MUST_USE
enum dp_status dp_diverged_check(const struct dp_folder *folder, const struct dp_cluster *cluster,
                                 bool resumes, struct dp_error *err);
/* best: what revert returned. The last checkpoint that the store knows of is named if it is still there. */
void dp_diverged_tell(const struct dp_folder *folder, const struct dp_cluster *cluster, uint32_t epoch,
                      uint32_t best, FILE *to);

#endif
