/* Counters: what a shard did, readable by any thread while it works. The shard owns them; its rooms count here what they do.
 * common/wire/counters.h has their names, and dp_shard_counters lists them. */
#ifndef DP_CACHE_COUNTERS_H
#define DP_CACHE_COUNTERS_H

#include "common/wire/counters.h"

#include <stdatomic.h>
#include <stdint.h>

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

#endif
