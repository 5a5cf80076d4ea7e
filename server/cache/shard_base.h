/* Shared by the nouns of one shard: its number, its clock, its counters. Set once, at its opening. Only the
 * counters change, through DP_COUNT.
 * Thread    The shard's. */
#ifndef DP_CACHE_SHARD_BASE_H
#define DP_CACHE_SHARD_BASE_H

#include "common/env/clock.h"
#include "common/model/range.h"
#include "server/cache/counters.h"

struct dp_shard_base {
    uint32_t index, shards; /* of the whole cluster */
    struct dp_range range;
    struct dp_clock clock;
    struct dp_counters counters;
};

static inline uint64_t dp_shard_now(const struct dp_shard_base *base)
{
    return dp_clock_ns(&base->clock);
}

#endif
