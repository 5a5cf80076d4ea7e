/* Staleness: how many pushes the servers had applied between a pull and the push that stands on it, summed up
 * over a training. Bucket 0 of the histogram counts the pushes whose worst shard saw none, bucket b those of
 * 2^(b-1) .. 2^b - 1.                                                                                    */
#ifndef DP_WORKER_STALENESS_H
#define DP_WORKER_STALENESS_H

#include "common/client/downpour.h"

#define DP_STALENESS_BUCKETS 65

struct dp_staleness {
    uint64_t pushes;   /* with a figure */
    uint64_t repeated; /* that a shard had applied before, and counted once */
    uint64_t measured; /* shards, over all pushes */
    uint64_t sum, max; /* over measured shards */
    uint64_t histogram[DP_STALENESS_BUCKETS];
};

void dp_staleness_add(struct dp_staleness *staleness, const struct dp_outcome *outcome);
void dp_staleness_merge(struct dp_staleness *into, const struct dp_staleness *from);
/* A push's staleness on one shard, on average; 0 when nothing was measured. */
double dp_staleness_mean(const struct dp_staleness *staleness);
/* Buckets up to the last that is not 0. */
uint32_t dp_staleness_buckets(const struct dp_staleness *staleness);

#endif
