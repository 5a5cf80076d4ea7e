/* Counters as an answer lists them, by name: the shard's own, and what its store says of itself.
 * Thread    Any. */
#ifndef DP_SHARD_COUNTERS_LIST_H
#define DP_SHARD_COUNTERS_LIST_H

#include "common/wire/reply.h"
#include "server/cache/counters.h"
#include "server/store/store.h"

/* Returns how many were filled. */
uint32_t dp_counters_list_all(const struct dp_counters *counters, const struct dp_store_stats *stats,
                              struct dp_counter out[DP_COUNTERS_MAX]);

#endif
