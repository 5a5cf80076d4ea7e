/* Shard series: the counters, histograms and refusals of each shard, as series of their own: a sum over
 * shards would fall while one of them is away.
 * Names     downpour_shard_COUNTER, in seconds and bytes, with _total where a number only rises. A shard
 *           that does not serve has no series but downpour_shard_serving 0.
 * Thread    Any: plain functions. */
#ifndef DP_METRICS_SHARD_SERIES_H
#define DP_METRICS_SHARD_SERIES_H

#include "server/metrics/source.h"

#include <stdio.h>

/* shard: [source->shards]. */
void dp_exporter_shards(FILE *to, const struct dp_exporter_source *source,
                        const struct dp_exporter_shard *shard);

#endif
