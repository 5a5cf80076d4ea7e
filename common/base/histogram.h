/* Histogram: the counts of measured values in a few buckets, with the buckets' bounds, in the form of the
 * wire.
 * Promise   Of the same kind, histograms of several shards, workers or times add up without loss.
 * Thread    One at a time; dp_histogram_copy: any, while another one adds.
 * Failure   None; a value beyond all bounds counts in the last bucket. */
#ifndef DP_BASE_HISTOGRAM_H
#define DP_BASE_HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>

#define DP_HISTOGRAM_NAME_MAX    47u
#define DP_HISTOGRAM_BUCKETS_MAX 32u

/* Bucket b counts values above upper[b - 1] and up to upper[b]. upper ascends; the last may be INFINITY. */
struct dp_histogram {
    char name[DP_HISTOGRAM_NAME_MAX + 1];
    uint32_t buckets;
    double upper[DP_HISTOGRAM_BUCKETS_MAX];
    uint64_t count[DP_HISTOGRAM_BUCKETS_MAX];
    double sum; /* of the values that were added here; not on the wire */
};

/* Of whole numbers: 0, 1, 2 to 3, 4 to 7, ... 2^14 to 2^15 - 1, 2^15 and more. */
void dp_histogram_init_numbers(struct dp_histogram *histogram, const char *name);
/* Of shares: 0, up to 1%, 5%, 10%, 20%, ... 100%. */
void dp_histogram_init_shares(struct dp_histogram *histogram, const char *name);
void dp_histogram_add(struct dp_histogram *histogram, double value);
/* A copy. Its counts may be of different moments. */
void dp_histogram_copy(const struct dp_histogram *from, struct dp_histogram *to);
/* Whether both have the same name and bounds: only such can be merged, or subtracted. */
bool dp_histogram_alike(const struct dp_histogram *a, const struct dp_histogram *b);
void dp_histogram_merge(struct dp_histogram *into, const struct dp_histogram *from);
/* Takes away what `before`, of the same source earlier, had; false: the source started again, and nothing was taken away. */
bool dp_histogram_since(struct dp_histogram *histogram, const struct dp_histogram *before);
uint64_t dp_histogram_total(const struct dp_histogram *histogram);
/* The bucket in which the value lies that the given share (0 .. 1) of all does not exceed; 0 of an empty histogram. */
uint32_t dp_histogram_quantile(const struct dp_histogram *histogram, double share);
/* The least whole number in a bucket of numbers. */
uint64_t dp_histogram_least(const struct dp_histogram *histogram, uint32_t bucket);

#endif
