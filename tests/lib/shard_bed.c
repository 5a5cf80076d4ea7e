#include "tests/lib/shard_bed.h"

#include <string.h>

void shard_bed_journal(struct shard_bed *bed, struct dp_sim_disk *sim, enum dp_durability durability,
                       uint64_t segment_bytes, uint64_t budget_bytes)
{
    bed->sim = sim;
    bed->disk = dp_sim_disk_interface(sim);
    bed->options.journaled = true;
    bed->options.journal.disk = &bed->disk;
    bed->options.journal.durability = durability;
    bed->options.journal.segment_bytes = segment_bytes;
    bed->options.journal.budget_bytes = budget_bytes;
}

enum dp_status shard_bed_open(struct shard_bed *bed, struct dp_error *err)
{
    DP_ASSERT(!bed->shard);
    bed->store = bed->open_store(bed->store_context);
    bed->options.store = &bed->store;
    return dp_shard_open(&bed->options, &bed->shard, err);
}

void shard_bed_close(struct shard_bed *bed)
{
    dp_shard_close(&bed->shard);
    bed->store.close(bed->store.self);
}

void shard_bed_cut(struct shard_bed *bed)
{
    if (dp_sim_disk_is_off(bed->sim))
        return;
    dp_sim_disk_cut_at(bed->sim, 1);
    (void)bed->disk.sync_directory(bed->disk.self, NULL);
}

uint64_t shard_bed_counter(const struct shard_bed *bed, const char *name)
{
    struct dp_counter counters[DP_COUNTERS_MAX];
    uint32_t n = dp_shard_counters(bed->shard, counters), at = 0;
    while (at < n && strcmp(counters[at].name, name) != 0)
        at++;
    DP_ASSERT(at < n); /* there is one */
    return counters[at].value;
}
