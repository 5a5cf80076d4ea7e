/* Drain: how a shard ends (the functions of shard.h), and whether it is at rest.
 * Thread    The shard's. */
#ifndef DP_SHARD_DRAIN_H
#define DP_SHARD_DRAIN_H

#include "server/shard/shard.h"

/* It drains, and nothing can change any more. */
bool dp_shard_is_quiet(const struct dp_shard *shard);
/* Fails with DP_STOPPING: why a draining shard takes no requests. */
enum dp_status dp_shard_stopping(const struct dp_shard *shard, struct dp_error *err);

#endif
