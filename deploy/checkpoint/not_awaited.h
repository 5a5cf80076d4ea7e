/* Not awaited: pushes that a shard lacks and that nobody is expected to bring: exceptions of the checkpoint before, and pushes of earlier
 * runs. A checkpoint does not wait for them; what comes all the same is taken.
 * Thread    Any. */
#ifndef DP_CHECKPOINT_NOT_AWAITED_H
#define DP_CHECKPOINT_NOT_AWAITED_H

#include "server/checkpoint/union.h"

/* before: of the directory's last checkpoint of this history. last_run: the last run that pushed; 0: none. */
uint32_t dp_not_awaited_count(const struct dp_union_lacking *lacking, const struct dp_push_exceptions *before,
                              uint32_t last_run);

#endif
