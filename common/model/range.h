/* Range: a shard's interval of mixed keys, both ends included. Shard i of n owns [ceil(i 2^64 / n),
 * ceil((i+1) 2^64 / n) - 1]: the ranges of 0..n-1 cover every mixed key once.                          */
#ifndef DP_MODEL_RANGE_H
#define DP_MODEL_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct dp_range {
    uint64_t first, last;
};

/* shard < shards, shards > 0. */
struct dp_range dp_range_of_shard(uint32_t shard, uint32_t shards);

/* The shard whose range holds `mixed`. */
static inline uint32_t dp_shard_of(uint64_t mixed, uint32_t shards)
{
    return (uint32_t)(((unsigned __int128)mixed * shards) >> 64);
}

static inline bool dp_range_has(struct dp_range range, uint64_t mixed)
{
    return range.first <= mixed && mixed <= range.last;
}

#endif
