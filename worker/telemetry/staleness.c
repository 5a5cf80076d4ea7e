#include "worker/telemetry/staleness.h"

#include <string.h>

static uint32_t bucket_of(uint64_t value)
{
    return value ? 64u - (uint32_t)__builtin_clzll(value) : 0;
}

#define EXACT_BITS  6u /* below 2^6 each value has a bucket, */
#define OCTAVE_BITS 5u /* and above 2^5 of them an octave */

uint32_t dp_staleness_fine_of(uint64_t value)
{
    uint32_t bits = bucket_of(value);
    if (bits <= EXACT_BITS)
        return (uint32_t)value;
    uint32_t octave = bits - 1 - EXACT_BITS,
             within = (uint32_t)(value >> (bits - 1 - OCTAVE_BITS)) & ((1u << OCTAVE_BITS) - 1),
             at = (1u << EXACT_BITS) + (octave << OCTAVE_BITS) + within;
    return at < DP_STALENESS_FINE ? at : DP_STALENESS_FINE - 1;
}

uint64_t dp_staleness_fine_least(uint32_t bucket)
{
    if (bucket < 1u << EXACT_BITS)
        return bucket;
    uint32_t octave = (bucket - (1u << EXACT_BITS)) >> OCTAVE_BITS,
             within = bucket & ((1u << OCTAVE_BITS) - 1);
    return ((UINT64_C(1) << OCTAVE_BITS) + within) << (octave + EXACT_BITS - OCTAVE_BITS);
}

void dp_staleness_begin(struct dp_staleness *staleness)
{
    if (staleness->gap.buckets > 0)
        return;
    dp_histogram_init_numbers(&staleness->gap, "clock_gap");
    dp_histogram_init_shares(&staleness->changed, "changed");
}

void dp_staleness_add(struct dp_staleness *staleness, const struct dp_outcome *outcome, uint64_t own)
{
    dp_staleness_begin(staleness);
    staleness->repeated += outcome->repeated;
    staleness->gaps += outcome->gaps;
    staleness->gap_sum += outcome->gap_sum;
    if (outcome->gap_max > staleness->gap_max)
        staleness->gap_max = outcome->gap_max;
    if (outcome->gaps > 0)
        dp_histogram_add(&staleness->gap, (double)outcome->gap_max);
    if (outcome->measured == 0)
        return;
    staleness->divided += outcome->divided;
    staleness->divisor_sum += outcome->divisor_sum;
    staleness->rows += outcome->rows;
    staleness->changed_rows += outcome->changed_rows;
    if (outcome->rows > 0)
        dp_histogram_add(&staleness->changed, (double)outcome->changed_rows / (double)outcome->rows);
    staleness->pushes++;
    staleness->measured += outcome->measured;
    staleness->sum += outcome->staleness_sum;
    if (outcome->staleness_max > staleness->max)
        staleness->max = outcome->staleness_max;
    staleness->fine[dp_staleness_fine_of(outcome->staleness_max)]++;
    if (own > outcome->staleness_max) /* a pull that was held, or is of a closed step, shows some of them */
        own = outcome->staleness_max;
    staleness->own_sum += own;
    if (own > staleness->own_max)
        staleness->own_max = own;
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
    into->rows += from->rows;
    into->changed_rows += from->changed_rows;
    into->divided += from->divided;
    into->divisor_sum += from->divisor_sum;
    into->own_sum += from->own_sum;
    if (from->own_max > into->own_max)
        into->own_max = from->own_max;
    for (uint32_t i = 0; i < DP_STALENESS_FINE; i++)
        into->fine[i] += from->fine[i];
    if (from->gap.buckets == 0)
        return;
    dp_staleness_begin(into);
    dp_histogram_merge(&into->gap, &from->gap);
    dp_histogram_merge(&into->changed, &from->changed);
}

double dp_staleness_changed(const struct dp_staleness *staleness)
{
    return staleness->rows ? (double)staleness->changed_rows / (double)staleness->rows : 0.0;
}

double dp_staleness_divisor(const struct dp_staleness *staleness)
{
    return staleness->divided ? staleness->divisor_sum / (double)staleness->divided : 0.0;
}

double dp_staleness_mean(const struct dp_staleness *staleness)
{
    return staleness->measured ? (double)staleness->sum / (double)staleness->measured : 0.0;
}

double dp_staleness_own(const struct dp_staleness *staleness)
{
    return staleness->pushes ? (double)staleness->own_sum / (double)staleness->pushes : 0.0;
}

uint64_t dp_staleness_quantile(const struct dp_staleness *staleness, double share)
{
    uint64_t total = 0, seen = 0;
    for (uint32_t i = 0; i < DP_STALENESS_FINE; i++)
        total += staleness->fine[i];
    for (uint32_t i = 0; i < DP_STALENESS_FINE; i++) {
        seen += staleness->fine[i];
        if (seen > 0 && (double)seen >= share * (double)total)
            return dp_staleness_fine_least(i);
    }
    return 0;
}

double dp_staleness_gap(const struct dp_staleness *staleness)
{
    return staleness->gaps ? (double)staleness->gap_sum / (double)staleness->gaps : 0.0;
}

uint32_t dp_staleness_histogram(const struct dp_staleness *staleness, uint64_t out[DP_STALENESS_BUCKETS])
{
    uint32_t used = 0;
    memset(out, 0, DP_STALENESS_BUCKETS * sizeof *out);
    for (uint32_t i = 0; i < DP_STALENESS_FINE; i++) {
        uint32_t bucket = bucket_of(dp_staleness_fine_least(i));
        out[bucket] += staleness->fine[i];
        used = staleness->fine[i] ? bucket + 1 : used;
    }
    return used;
}
