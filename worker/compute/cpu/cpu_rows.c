/* Rows of sparse parameters, on the CPU. Sums run in the order of the entries. */
#include "worker/compute/cpu/cpu.h"

#include <string.h>

/* The factor of an example's sum. */
static float share(const struct dp_entries *e, uint32_t i, bool mean)
{
    uint32_t count = e->offsets[i + 1] - e->offsets[i];
    return mean && count > 0 ? 1.0f / (float)count : 1.0f;
}

/* Width 1 (logistic regression): four running sums, since one would wait for each addition. */
static float gather_one(const uint32_t *slots, const float *values, uint32_t count, const float *p)
{
    float sum[4] = {0};
    uint32_t j = 0;
    for (; j + 4 <= count; j += 4)
        for (uint32_t lane = 0; lane < 4; lane++)
            sum[lane] += values[j + lane] * p[slots[j + lane]];
    for (; j < count; j++)
        sum[0] += values[j] * p[slots[j]];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

void dp_cpu_gather_sum(void *self, const struct dp_entries *e, const float *p, uint32_t width, bool mean,
                       float *out)
{
    (void)self;
    for (uint32_t i = 0; i < e->examples; i++) {
        uint32_t begin = e->offsets[i], end = e->offsets[i + 1];
        if (width == 1) {
            out[i] = gather_one(e->slots + begin, e->values + begin, end - begin, p) * share(e, i, mean);
            continue;
        }
        float *restrict row = out + (size_t)i * width;
        memset(row, 0, width * sizeof *row);
        for (uint32_t j = begin; j < end; j++) {
            const float *from = p + (size_t)e->slots[j] * width;
            float value = e->values[j];
            for (uint32_t c = 0; c < width; c++)
                row[c] += value * from[c];
        }
        for (uint32_t c = 0; mean && c < width; c++)
            row[c] *= share(e, i, true);
    }
}

/* In the order of the entries: each slot then sums its entries in ascending order, without lists by slot. */
void dp_cpu_gather_sum_back(void *self, const struct dp_entries *e, const float *dout, uint32_t width,
                            bool mean, float *dp, bool add)
{
    (void)self;
    if (!add && e->distinct > 0)
        memset(dp, 0, (size_t)e->distinct * width * sizeof *dp);
    for (uint32_t i = 0; i < e->examples; i++) {
        const float *row = dout + (size_t)i * width;
        uint32_t begin = e->offsets[i], end = e->offsets[i + 1];
        float of_each = share(e, i, mean);
        if (width == 1) {
            for (uint32_t j = begin; j < end; j++)
                dp[e->slots[j]] += e->values[j] * of_each * row[0];
            continue;
        }
        for (uint32_t j = begin; j < end; j++) {
            float *restrict to = dp + (size_t)e->slots[j] * width;
            float value = e->values[j] * of_each;
            for (uint32_t c = 0; c < width; c++)
                to[c] += value * row[c];
        }
    }
}

void dp_cpu_gather(void *self, const struct dp_entries *e, const float *p, uint32_t width, float *out)
{
    (void)self;
    for (uint32_t j = 0; j < e->count; j++) {
        const float *from = p + (size_t)e->slots[j] * width;
        float *restrict to = out + (size_t)j * width;
        float value = e->values[j];
        for (uint32_t c = 0; c < width; c++)
            to[c] = value * from[c];
    }
}

void dp_cpu_gather_back(void *self, const struct dp_entries *e, const float *dout, uint32_t width, float *dp,
                        bool add)
{
    (void)self;
    if (!add && e->distinct > 0)
        memset(dp, 0, (size_t)e->distinct * width * sizeof *dp);
    for (uint32_t j = 0; j < e->count; j++) {
        const float *from = dout + (size_t)j * width;
        float *restrict to = dp + (size_t)e->slots[j] * width;
        float value = e->values[j];
        for (uint32_t c = 0; c < width; c++)
            to[c] += value * from[c];
    }
}

void dp_cpu_interactions(void *self, const struct dp_entries *e, const float *p, uint32_t width, float *sums,
                         float *out)
{
    (void)self;
    for (uint32_t i = 0; i < e->examples; i++) {
        float *restrict sum = sums + (size_t)i * width;
        float squares = 0, square = 0;
        memset(sum, 0, width * sizeof *sum);
        for (uint32_t j = e->offsets[i]; j < e->offsets[i + 1]; j++) {
            const float *from = p + (size_t)e->slots[j] * width;
            float value = e->values[j], each = 0;
            for (uint32_t c = 0; c < width; c++) {
                float r = value * from[c];
                sum[c] += r;
                each += r * r;
            }
            squares += each;
        }
        for (uint32_t c = 0; c < width; c++)
            square += sum[c] * sum[c];
        out[i] = 0.5f * (square - squares);
    }
}

/* d out / d r(j) = sum - r(j) */
void dp_cpu_interactions_back(void *self, const struct dp_entries *e, const float *p, const float *sums,
                              const float *dout, uint32_t width, float *dp, bool add)
{
    (void)self;
    if (!add && e->distinct > 0)
        memset(dp, 0, (size_t)e->distinct * width * sizeof *dp);
    for (uint32_t i = 0; i < e->examples; i++) {
        const float *sum = sums + (size_t)i * width;
        for (uint32_t j = e->offsets[i]; j < e->offsets[i + 1]; j++) {
            const float *from = p + (size_t)e->slots[j] * width;
            float *restrict to = dp + (size_t)e->slots[j] * width;
            float value = e->values[j], scale = dout[i] * value;
            for (uint32_t c = 0; c < width; c++)
                to[c] += scale * (sum[c] - value * from[c]);
        }
    }
}
