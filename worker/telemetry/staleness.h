/* Staleness: how many pushes the servers applied between a pull and the push that is computed from it,
 * summed over a training. Own staleness counts those that the worker itself made between that pull and
 * this push (at most, if the pull was blocked). The clock gap is how many steps a worker was ahead of the
 * slowest member when a shard applied its push. In all modes but sync the changed rows are counted, too:
 * the rows of a push that any push, the worker's own included, had changed since its pull. */
#ifndef DP_TELEMETRY_STALENESS_H
#define DP_TELEMETRY_STALENESS_H

#include "common/base/histogram.h"
#include "common/client/downpour.h"

#define DP_STALENESS_BUCKETS 65
#define DP_STALENESS_FINE    448u /* values of 2^18 and more are in the last */

/* {0}: nothing was counted; its histograms have buckets from the first count, or dp_staleness_begin, on. */
struct dp_staleness {
    uint64_t pushes;   /* with a measured staleness */
    uint64_t repeated; /* that a shard had already applied, and did not apply again */
    uint64_t measured; /* shards, over all pushes */
    uint64_t sum, max; /* over measured shards */
    /* Pushes by the staleness of their worst shard: below 64 by value, then 32 buckets an octave. */
    uint64_t fine[DP_STALENESS_FINE];
    uint64_t own_sum, own_max;       /* over pushes */
    uint64_t gaps, gap_sum, gap_max; /* gaps: how many shards reported one, over all pushes */
    struct dp_histogram gap;         /* of each push's largest */
    uint64_t rows, changed_rows;     /* of measured shards */
    struct dp_histogram changed;     /* of each push's share */
    uint64_t divided;                /* shards that divided the rate, over all pushes, */
    double divisor_sum;              /* and by what */
};

void dp_staleness_begin(struct dp_staleness *staleness);
/* own: pushes of the worker's own, issued between the pull and the push. */
void dp_staleness_add(struct dp_staleness *staleness, const struct dp_outcome *outcome, uint64_t own);
void dp_staleness_merge(struct dp_staleness *into, const struct dp_staleness *from);
/* The mean staleness of a push on one shard; 0 when nothing was measured. */
double dp_staleness_mean(const struct dp_staleness *staleness);
/* The mean of own staleness; 0 when nothing was measured. */
double dp_staleness_own(const struct dp_staleness *staleness);
/* The least staleness that this share (0 .. 1) of all pushes does not exceed, of 64 and more at most 3%
 * too low; 0 when nothing was counted. */
uint64_t dp_staleness_quantile(const struct dp_staleness *staleness, double share);
/* The least value of a bucket of `fine`, and the bucket of a value. */
uint64_t dp_staleness_fine_least(uint32_t bucket);
uint32_t dp_staleness_fine_of(uint64_t value);
/* The mean clock gap of a push on one shard; 0 when there is none. */
double dp_staleness_gap(const struct dp_staleness *staleness);
/* The share of rows that had changed; 0 when none was measured. */
double dp_staleness_changed(const struct dp_staleness *staleness);
/* By what a shard divided the rate, on average; 0 when none did. */
double dp_staleness_divisor(const struct dp_staleness *staleness);
/* Coarser: bucket 0 counts the pushes whose worst shard applied none, bucket b those with 2^(b-1) .. 2^b - 1.
 * Returns the buckets up to the last that is not 0. */
uint32_t dp_staleness_histogram(const struct dp_staleness *staleness, uint64_t out[DP_STALENESS_BUCKETS]);

#endif
