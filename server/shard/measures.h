/* Measures: what a shard's pushes were measured by, for its status report: how stale, how far ahead of the slowest member, and how much
 * of what they stand on others had changed.
 * Thread    The shard's. */
#ifndef DP_SHARD_MEASURES_H
#define DP_SHARD_MEASURES_H

#include "common/base/histogram.h"
#include "common/wire/request.h"
#include "server/cache/counters.h"
#include "server/shard/push_replies.h"

enum { DP_MEASURE_STALENESS, DP_MEASURE_GAP, DP_MEASURE_CHANGED, DP_MEASURES };

struct dp_measures {
    struct dp_histogram histogram[DP_MEASURES];
};

void dp_measures_init(struct dp_measures *measures);
/* Counts a push that was taken (not repeated), in the counters too; of one that was dropped only that. */
void dp_measures_push(struct dp_measures *measures, struct dp_counters *counters,
                      const struct dp_request *push, const struct dp_pushed *pushed);

#endif
