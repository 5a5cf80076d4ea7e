/* Observed: what a shard counted, as one copy for another thread. Each number is read on its own, while the
 * shard goes on: none falls while the shard is open, and two may be of different turns. */
#ifndef DP_SHARD_OBSERVED_H
#define DP_SHARD_OBSERVED_H

#include "common/wire/counters.h"

struct dp_shard_observed {
    uint32_t counters, histograms;
    struct dp_counter counter[DP_COUNTERS_MAX];
    struct dp_histogram histogram[DP_HISTOGRAMS_MAX];
    uint64_t refusals[DP_REFUSALS]; /* by cause */
};

#endif
