#include "common/model/range.h"

#include "common/base/status.h"

/* ceil(shard 2^64 / shards); 2^64 for shard == shards. */
static unsigned __int128 start_of(uint32_t shard, uint32_t shards)
{
    return (((unsigned __int128)shard << 64) + shards - 1) / shards;
}

struct dp_range dp_range_of_shard(uint32_t shard, uint32_t shards)
{
    DP_ASSERT(shard < shards);
    return (struct dp_range){.first = (uint64_t)start_of(shard, shards),
                             .last = (uint64_t)(start_of(shard + 1, shards) - 1)};
}
