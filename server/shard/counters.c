#include "server/shard/counters.h"

#include <stdio.h>

uint32_t dp_counters_list(const struct dp_counters *counters, struct dp_counter out[DP_COUNTERS_MAX])
{
    uint32_t n = 0;
#define DP_COUNTER_LIST(counter)                                                                             \
    (void)snprintf(out[n].name, sizeof out[n].name, "%s", #counter);                                         \
    out[n++].value = atomic_load_explicit(&counters->counter, memory_order_relaxed);
    DP_COUNTER_MAP(DP_COUNTER_LIST)
#undef DP_COUNTER_LIST
    return n;
}
