/* Pruning: how the command removes earlier checkpoints: behind a new one (--keep), before another try on a full disk, and alone (--prune).
 * Promise   The last whole checkpoints stay, as many as are asked for (server/checkpoint/prune.h): never is the last whole one removed.
 * Lock      It takes the directory's lock for the time.
 * Thread    One.
 * Failure   DP_IN_USE: a checkpoint is being made there. DP_NOT_FOUND: there is no checkpoint. Else as prune.h. */
#ifndef DP_CHECKPOINT_PRUNING_H
#define DP_CHECKPOINT_PRUNING_H

#include "server/checkpoint/prune.h"

/* Of the cluster's; 0: of each cluster's. reads: see server/checkpoint/prune.h. */
DP_MUST_USE
enum dp_status dp_pruning_locked(const char *directory, uint64_t cluster, uint32_t keep, bool reads,
                                 struct dp_prune *out, struct dp_error *err);
/* The disk is full: whether it has more room now. Says what was removed, and why. */
bool dp_pruning_made_room(const char *directory, uint64_t cluster, uint32_t keep,
                          const struct dp_error *full);
/* The command without a checkpoint; says what was removed. Nothing is made, no directory either. */
DP_MUST_USE
enum dp_status dp_pruning_alone(const char *directory, uint64_t cluster, uint32_t keep, struct dp_error *err);

#endif
