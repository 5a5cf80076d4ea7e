/* Staleness: how many pushes the servers applied between a pull and the push that is computed from it, summed
 * over a training. Bucket 0 of the histogram counts the pushes whose worst shard applied none, bucket b those
 * with 2^(b-1) .. 2^b - 1. Where workers wait for each other, also the clock gap: how many steps a worker was
 * ahead of the slowest member when a shard applied its push. */
#ifndef DP_TELEMETRY_STALENESS_H
#define DP_TELEMETRY_STALENESS_H

#include "common/client/downpour.h"

#define DP_STALENESS_BUCKETS 65

struct dp_staleness {
    uint64_t pushes;   /* with a measured staleness */
    uint64_t repeated; /* that a shard had already applied, and did not apply again */
    uint64_t measured; /* shards, over all pushes */
    uint64_t sum, max; /* over measured shards */
    uint64_t histogram[DP_STALENESS_BUCKETS];
    uint64_t gaps, gap_sum, gap_max; /* gaps: how many shards told one, over all pushes */
};

void dp_staleness_add(struct dp_staleness *staleness, const struct dp_outcome *outcome);
void dp_staleness_merge(struct dp_staleness *into, const struct dp_staleness *from);
/* The mean staleness of a push on one shard; 0 when nothing was measured. */
double dp_staleness_mean(const struct dp_staleness *staleness);
/* The mean clock gap of a push on one shard; 0 when there is none. */
double dp_staleness_gap(const struct dp_staleness *staleness);
/* Buckets up to the last that is not 0. */
uint32_t dp_staleness_buckets(const struct dp_staleness *staleness);

#endif
