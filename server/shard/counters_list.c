#include "server/shard/counters_list.h"

uint32_t dp_counters_list_all(const struct dp_counters *counters, const struct dp_store_stats *stats,
                              struct dp_counter out[DP_COUNTERS_MAX])
{
    uint32_t n = 0;
#define OWN(counter, kind, help)                                                                             \
    out[n++] = (struct dp_counter){#counter, atomic_load_explicit(&counters->counter, memory_order_relaxed)};
    DP_COUNTER_MAP(OWN)
#undef OWN
#define STORE(counter, kind, help) out[n++] = (struct dp_counter){"store_" #counter, stats->counter};
    DP_STORE_COUNTER_MAP(STORE)
#undef STORE
    return n;
}
