#include "server/shard/counters_list.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define DP_COUNTERS_STORE 7u /* store_l0_files, ... */
#define OWN_COUNTED(name) +1
static_assert(0 DP_COUNTER_MAP(OWN_COUNTED) + DP_COUNTERS_STORE <= DP_COUNTERS_MAX, "a reply holds so many");
#undef OWN_COUNTED

static uint32_t list(const struct dp_counters *counters, struct dp_counter out[DP_COUNTERS_MAX])
{
    uint32_t n = 0;
#define DP_COUNTER_LIST(counter)                                                                             \
    (void)snprintf(out[n].name, sizeof out[n].name, "%s", #counter);                                         \
    out[n++].value = atomic_load_explicit(&counters->counter, memory_order_relaxed);
    DP_COUNTER_MAP(DP_COUNTER_LIST)
#undef DP_COUNTER_LIST
    return n;
}

static uint32_t list_store(const struct dp_store_stats *stats, struct dp_counter *out)
{
    const struct dp_counter all[DP_COUNTERS_STORE] = {
        {"store_l0_files", stats->l0_files},
        {"store_compaction_debt_bytes", stats->compaction_debt_bytes},
        {"store_file_bytes", stats->file_bytes},
        {"store_block_cache_bytes", stats->block_cache_bytes},
        {"store_reader_bytes", stats->reader_bytes},
        {"store_rows_about", stats->rows_about},
        {"store_disk_free_bytes", stats->disk_free_bytes}};
    memcpy(out, all, sizeof all);
    return DP_COUNTERS_STORE;
}

uint32_t dp_counters_list_all(const struct dp_counters *counters, const struct dp_store_stats *stats,
                              struct dp_counter out[DP_COUNTERS_MAX])
{
    uint32_t n = list(counters, out);
    return n + list_store(stats, out + n);
}
