/* Shared by the nouns of one shard: its number, its clock, its counters. Set once, at its opening. Only the
 * counters change, through DP_COUNT, and damage_ns.
 * Thread    The shard's. */
#ifndef DP_CACHE_SHARD_BASE_H
#define DP_CACHE_SHARD_BASE_H

#include "common/env/clock.h"
#include "common/model/range.h"
#include "common/wire/counters.h"

#include <stdatomic.h>
#include <stdint.h>

/* What a shard did (common/wire/counters.h has the names), readable by any thread. */
struct dp_counters {
#define DP_COUNTER_FIELD(name, kind, help) _Atomic uint64_t name;
    DP_COUNTER_MAP(DP_COUNTER_FIELD)
#undef DP_COUNTER_FIELD
};

/* One writer: no read-modify-write is needed, so no locked instruction. */
#define DP_COUNT(counters, name, n)                                                                          \
    atomic_store_explicit(&(counters)->name,                                                                 \
                          atomic_load_explicit(&(counters)->name, memory_order_relaxed) + (n),               \
                          memory_order_relaxed)
#define DP_COUNT_SET(counters, name, v) atomic_store_explicit(&(counters)->name, (v), memory_order_relaxed)
#define DP_COUNT_MAX(counters, name, v)                                                                      \
    do {                                                                                                     \
        if ((v) > atomic_load_explicit(&(counters)->name, memory_order_relaxed))                             \
            DP_COUNT_SET(counters, name, v);                                                                 \
    } while (0)

struct dp_shard_base {
    uint32_t index, shards; /* of the cluster */
    struct dp_range range;
    struct dp_clock clock;
    struct dp_counters counters;
    _Atomic uint64_t refusals[DP_REFUSALS]; /* by dp_refusal_cause */
    uint64_t damage_ns; /* when damage of the store was logged last; 0: never (damage.h) */
};

static inline uint64_t dp_shard_now(const struct dp_shard_base *base)
{
    return dp_clock_ns(&base->clock);
}

#endif
