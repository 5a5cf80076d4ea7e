#include "worker/telemetry/staleness.h"

static uint32_t bucket_of(uint64_t value)
{
    return value ? 64u - (uint32_t)__builtin_clzll(value) : 0;
}

void dp_staleness_add(struct dp_staleness *staleness, const struct dp_outcome *outcome)
{
    staleness->repeated += outcome->repeated;
    staleness->gaps += outcome->gaps;
    staleness->gap_sum += outcome->gap_sum;
    if (outcome->gap_max > staleness->gap_max)
        staleness->gap_max = outcome->gap_max;
    if (outcome->measured == 0)
        return;
    staleness->pushes++;
    staleness->measured += outcome->measured;
    staleness->sum += outcome->staleness_sum;
    if (outcome->staleness_max > staleness->max)
        staleness->max = outcome->staleness_max;
    staleness->histogram[bucket_of(outcome->staleness_max)]++;
}

void dp_staleness_merge(struct dp_staleness *into, const struct dp_staleness *from)
{
    into->pushes += from->pushes;
    into->repeated += from->repeated;
    into->measured += from->measured;
    into->sum += from->sum;
    if (from->max > into->max)
        into->max = from->max;
    into->gaps += from->gaps;
    into->gap_sum += from->gap_sum;
    if (from->gap_max > into->gap_max)
        into->gap_max = from->gap_max;
    for (uint32_t i = 0; i < DP_STALENESS_BUCKETS; i++)
        into->histogram[i] += from->histogram[i];
}

double dp_staleness_mean(const struct dp_staleness *staleness)
{
    return staleness->measured ? (double)staleness->sum / (double)staleness->measured : 0.0;
}

double dp_staleness_gap(const struct dp_staleness *staleness)
{
    return staleness->gaps ? (double)staleness->gap_sum / (double)staleness->gaps : 0.0;
}

uint32_t dp_staleness_buckets(const struct dp_staleness *staleness)
{
    uint32_t n = DP_STALENESS_BUCKETS;
    while (n > 0 && staleness->histogram[n - 1] == 0)
        n--;
    return n;
}
