/* What the nouns of one shard share: which one it is, its clock, its counters. Set once, at its opening; only the counters
 * change, each through DP_COUNT by whoever does what is counted.
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
