#include "common/base/histogram.h"

#include "common/base/status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NUMBER_BITS 15u /* 2^15 and more are one bucket */

static void init(struct dp_histogram *histogram, const char *name)
{
    memset(histogram, 0, sizeof *histogram);
    (void)snprintf(histogram->name, sizeof histogram->name, "%s", name);
}

void dp_histogram_init_numbers(struct dp_histogram *histogram, const char *name)
{
    init(histogram, name);
    for (uint32_t bits = 0; bits <= NUMBER_BITS; bits++)
        histogram->upper[histogram->buckets++] = (double)((UINT64_C(1) << bits) - 1);
    histogram->upper[histogram->buckets++] = INFINITY;
}

void dp_histogram_init_shares(struct dp_histogram *histogram, const char *name)
{
    static const double bounds[] = {0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1};
    init(histogram, name);
    histogram->buckets = sizeof bounds / sizeof bounds[0];
    memcpy(histogram->upper, bounds, sizeof bounds);
}

void dp_histogram_add(struct dp_histogram *histogram, double value)
{
    uint32_t at = 0;
    DP_ASSERT(histogram->buckets > 0 && histogram->buckets <= DP_HISTOGRAM_BUCKETS_MAX);
    while (at + 1 < histogram->buckets && value > histogram->upper[at])
        at++;
    /* One writer: relaxed stores suffice for a thread that copies. */
    double sum = histogram->sum + value;
    __atomic_store(&histogram->sum, &sum, __ATOMIC_RELAXED);
    __atomic_store_n(&histogram->count[at], histogram->count[at] + 1, __ATOMIC_RELAXED);
}

void dp_histogram_copy(const struct dp_histogram *from, struct dp_histogram *to)
{
    memcpy(to->name, from->name, sizeof to->name);
    memcpy(to->upper, from->upper, sizeof to->upper);
    to->buckets = from->buckets;
    __atomic_load(&from->sum, &to->sum, __ATOMIC_RELAXED);
    for (uint32_t b = 0; b < DP_HISTOGRAM_BUCKETS_MAX; b++)
        to->count[b] = __atomic_load_n(&from->count[b], __ATOMIC_RELAXED);
}

bool dp_histogram_alike(const struct dp_histogram *a, const struct dp_histogram *b)
{
    return a->buckets == b->buckets && strcmp(a->name, b->name) == 0 &&
           memcmp(a->upper, b->upper, a->buckets * sizeof a->upper[0]) == 0;
}

void dp_histogram_merge(struct dp_histogram *into, const struct dp_histogram *from)
{
    DP_ASSERT(dp_histogram_alike(into, from));
    for (uint32_t b = 0; b < into->buckets; b++)
        into->count[b] += from->count[b];
}

bool dp_histogram_since(struct dp_histogram *histogram, const struct dp_histogram *before)
{
    DP_ASSERT(dp_histogram_alike(histogram, before));
    for (uint32_t b = 0; b < histogram->buckets; b++)
        if (histogram->count[b] < before->count[b])
            return false;
    for (uint32_t b = 0; b < histogram->buckets; b++)
        histogram->count[b] -= before->count[b];
    return true;
}

uint64_t dp_histogram_total(const struct dp_histogram *histogram)
{
    uint64_t total = 0;
    for (uint32_t b = 0; b < histogram->buckets; b++)
        total += histogram->count[b];
    return total;
}

uint32_t dp_histogram_quantile(const struct dp_histogram *histogram, double share)
{
    double want = share * (double)dp_histogram_total(histogram);
    uint64_t seen = 0;
    uint32_t last = 0;
    for (uint32_t b = 0; b < histogram->buckets; b++) {
        seen += histogram->count[b];
        last = histogram->count[b] > 0 ? b : last;
        if (seen > 0 && (double)seen >= want)
            return b;
    }
    return last;
}

uint64_t dp_histogram_least(const struct dp_histogram *histogram, uint32_t bucket)
{
    DP_ASSERT(bucket < histogram->buckets);
    return bucket == 0 ? 0 : (uint64_t)histogram->upper[bucket - 1] + 1;
}
