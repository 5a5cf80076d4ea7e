/* The CPU's backend: memory, products by OpenBLAS, and plain loops that the compiler vectorises (with -O3). Sums run in
 * the order of the entries or examples. */
#include "worker/compute/backend.h"

#include "common/base/memory.h"
#include "worker/compute/cpu/blas.h"
#include "worker/compute/dropout.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void cpu_close(void *self)
{
    (void)self;
}

static enum dp_status cpu_alloc(void *self, size_t bytes, void **out, struct dp_error *err)
{
    (void)self;
    *out = dp_alloc_aligned(bytes);
    if (!*out)
        return dp_fail(err, DP_NOMEM, "no memory for %zu bytes: a smaller batch or model needs less", bytes);
    return DP_OK;
}

static void cpu_release(void *self, void *block)
{
    (void)self;
    free(block);
}

static enum dp_status cpu_copy(void *self, void *to, const void *from, size_t bytes, struct dp_error *err)
{
    (void)self, (void)err;
    if (bytes > 0)
        memcpy(to, from, bytes);
    return DP_OK;
}

static enum dp_status cpu_zero(void *self, void *block, size_t bytes, struct dp_error *err)
{
    (void)self, (void)err;
    if (bytes > 0)
        memset(block, 0, bytes);
    return DP_OK;
}

static enum dp_status cpu_finish(void *self, struct dp_error *err)
{
    (void)self, (void)err;
    return DP_OK;
}

static void cpu_matmul(void *self, const float *x, const float *p, uint32_t examples, uint32_t k,
                       uint32_t width, float *out)
{
    (void)self;
    int m = (int)examples, kk = (int)k, n = (int)width;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, kk, 1.0f, x, kk, p, n, 0.0f, out, n);
}

/* dx = dout p^T */
static void cpu_matmul_back_x(void *self, const float *p, const float *dout, uint32_t examples, uint32_t k,
                              uint32_t width, float *dx, bool add)
{
    (void)self;
    int m = (int)examples, kk = (int)k, n = (int)width;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, kk, n, 1.0f, dout, n, p, n, add ? 1.0f : 0.0f, dx,
                kk);
}

/* dp = x^T dout */
static void cpu_matmul_back_p(void *self, const float *x, const float *dout, uint32_t examples, uint32_t k,
                              uint32_t width, float *dp, bool add)
{
    (void)self;
    int m = (int)examples, kk = (int)k, n = (int)width;
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, kk, n, m, 1.0f, x, kk, dout, n, add ? 1.0f : 0.0f,
                dp, n);
}

/* ---- rows of sparse parameters */

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

static void cpu_gather_sum(void *self, const struct dp_entries *e, const float *p, uint32_t width, bool mean,
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
static void cpu_gather_sum_back(void *self, const struct dp_entries *e, const float *dout, uint32_t width,
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

static void cpu_gather(void *self, const struct dp_entries *e, const float *p, uint32_t width, float *out)
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

static void cpu_gather_back(void *self, const struct dp_entries *e, const float *dout, uint32_t width,
                            float *dp, bool add)
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

static void cpu_interactions(void *self, const struct dp_entries *e, const float *p, uint32_t width,
                             float *sums, float *out)
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
static void cpu_interactions_back(void *self, const struct dp_entries *e, const float *p, const float *sums,
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

/* ---- elements and columns */

/* Before a loop over elements: its arrays are equal or do not overlap, so no iteration depends on another.
 * Without it the compiler's overlap check sends loops in place to the slow path. */
#if defined(__clang__)
#define ELEMENTS _Pragma("clang loop vectorize(assume_safety)")
#else
#define ELEMENTS _Pragma("GCC ivdep")
#endif

static void cpu_bias(void *self, const float *x, const float *p, uint32_t examples, uint32_t width,
                     float *out)
{
    (void)self;
    for (uint32_t i = 0; i < examples; i++) {
        size_t at = (size_t)i * width;
        ELEMENTS
        for (size_t c = 0; c < width; c++)
            out[at + c] = x[at + c] + p[c];
    }
}

static void cpu_bias_back_p(void *self, const float *dout, uint32_t examples, uint32_t width, float *dp,
                            bool add)
{
    (void)self;
    if (!add)
        memset(dp, 0, width * sizeof *dp);
    for (uint32_t i = 0; i < examples; i++) {
        size_t at = (size_t)i * width;
        ELEMENTS
        for (size_t c = 0; c < width; c++)
            dp[c] += dout[at + c];
    }
}

/* NaN stays NaN, so that a broken layer is seen in the loss. */
static void cpu_relu(void *self, const float *x, size_t n, float *out)
{
    (void)self;
    ELEMENTS
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] < 0.0f ? 0.0f : x[i];
}

static void cpu_relu_back(void *self, const float *out, const float *dout, size_t n, float *dx, bool add)
{
    (void)self;
    ELEMENTS
    for (size_t i = 0; i < n; i++) {
        float d = dout[i]; /* always read: a conditional load is not vectorised */
        d = out[i] > 0.0f ? d : 0.0f;
        dx[i] = add ? dx[i] + d : d;
    }
}

static void cpu_sigmoid(void *self, const float *x, size_t n, float *out)
{
    (void)self;
    for (size_t i = 0; i < n; i++)
        out[i] = 1.0f / (1.0f + expf(-x[i]));
}

static void cpu_sigmoid_back(void *self, const float *out, const float *dout, size_t n, float *dx, bool add)
{
    (void)self;
    ELEMENTS
    for (size_t i = 0; i < n; i++) {
        float d = dout[i] * (out[i] * (1.0f - out[i]));
        dx[i] = add ? dx[i] + d : d;
    }
}

static void cpu_tanh(void *self, const float *x, size_t n, float *out)
{
    (void)self;
    for (size_t i = 0; i < n; i++)
        out[i] = tanhf(x[i]);
}

static void cpu_tanh_back(void *self, const float *out, const float *dout, size_t n, float *dx, bool add)
{
    (void)self;
    ELEMENTS
    for (size_t i = 0; i < n; i++) {
        float d = dout[i] * (1.0f - out[i] * out[i]);
        dx[i] = add ? dx[i] + d : d;
    }
}

static void cpu_sum(void *self, const float *x, const float *y, size_t n, float *out)
{
    (void)self;
    ELEMENTS
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] + y[i];
}

static void cpu_copy_back(void *self, const float *dout, size_t n, float *dx, bool add)
{
    (void)self;
    if (add) {
        ELEMENTS
        for (size_t i = 0; i < n; i++)
            dx[i] += dout[i];
    } else if (dx != dout) {
        memcpy(dx, dout, n * sizeof *dx);
    }
}

static void cpu_dropout(void *self, const float *x, size_t n, uint64_t seed, float rate, float *out, bool add)
{
    (void)self;
    uint32_t threshold = dp_dropout_threshold(rate);
    float scale = 1.0f / (1.0f - rate);
    for (size_t i = 0; i < n; i++) {
        float y = dp_dropout_keeps(seed, i, threshold) ? x[i] * scale : 0.0f;
        out[i] = add ? out[i] + y : y;
    }
}

static void cpu_columns(void *self, const float *x, const struct dp_column_copy *columns, uint32_t examples,
                        float *out, bool add)
{
    (void)self;
    for (uint32_t i = 0; i < examples; i++) {
        const float *from = x + (size_t)i * columns->from_width + columns->from;
        float *restrict to = out + (size_t)i * columns->to_width + columns->to;
        for (uint32_t c = 0; c < columns->count; c++)
            to[c] = add ? to[c] + from[c] : from[c];
    }
}

static void cpu_multiply(void *self, const float *x, const float *y, size_t n, float *out)
{
    (void)self;
    ELEMENTS
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] * y[i];
}

static void cpu_multiply_back(void *self, const float *y, const float *dout, size_t n, float *dx, bool add)
{
    (void)self;
    ELEMENTS
    for (size_t i = 0; i < n; i++) {
        float d = dout[i] * y[i];
        dx[i] = add ? dx[i] + d : d;
    }
}

/* Eight running sums, in one type: gcc 12 makes shuffles and stores of an array. The order is fixed. */
typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));

static inline float product(const float *x, const float *y, uint32_t width)
{
    eight sum = {0};
    uint32_t c = 0;
    for (; c + 8 <= width; c += 8)
        sum += *(const eight *)(x + c) * *(const eight *)(y + c);
    for (; c < width; c++)
        sum[0] += x[c] * y[c];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

static void cpu_dot(void *self, const float *x, const float *y, uint32_t examples, uint32_t width, float *out)
{
    (void)self;
    for (uint32_t i = 0; i < examples; i++)
        out[i] = product(x + (size_t)i * width, y + (size_t)i * width, width);
}

static void cpu_dot_back(void *self, const float *y, const float *dout, uint32_t examples, uint32_t width,
                         float *dx, bool add)
{
    (void)self;
    for (uint32_t i = 0; i < examples; i++) {
        const float *from = y + (size_t)i * width;
        float *restrict to = dx + (size_t)i * width;
        for (uint32_t c = 0; c < width; c++)
            to[c] = add ? to[c] + dout[i] * from[c] : dout[i] * from[c];
    }
}

/* Rows that are needed soon: their places are random. */
#define AHEAD 4
static void prefetch(const float *row, uint32_t width)
{
    for (uint32_t c = 0; c < width && c < 256; c += 16)
        __builtin_prefetch(row + c);
}

/* The factors 1 + e^-|dot| of entries of the same weight are multiplied, so that they take one logarithm. */
static void cpu_near(void *self, const struct dp_entries *e, const float *x, const float *p, uint32_t width,
                     float *saved, float *out)
{
    (void)self;
    for (uint32_t i = 0; i < e->examples; i++, x += width) {
        double sum = 0;
        float factors = 1, of = 0;
        for (uint32_t j = e->offsets[i]; j < e->offsets[i + 1]; j++) {
            prefetch(p + (size_t)e->slots[j + AHEAD < e->count ? j + AHEAD : j] * width, width);
            float dot = product(x, p + (size_t)e->slots[j] * width, width), value = e->values[j];
            float low = expf(-fabsf(dot)), weight = fabsf(value), wrong = value > 0 ? -dot : dot;
            if (weight != of || factors > 1e30f) {
                sum += (double)(of * logf(factors));
                factors = 1, of = weight;
            }
            factors *= 1.0f + low;
            sum += (double)(wrong > 0 ? weight * wrong : 0.0f);
            saved[j] = (wrong > 0 ? value : value * low) / -(1.0f + low);
        }
        out[i] = (float)(sum + (double)(of * logf(factors)));
    }
}

static void cpu_near_back_x(void *self, const struct dp_entries *e, const float *p, const float *saved,
                            const float *dout, uint32_t width, float *dx, bool add)
{
    (void)self;
    for (uint32_t i = 0; i < e->examples; i++) {
        float *restrict to = dx + (size_t)i * width;
        if (!add)
            memset(to, 0, width * sizeof *to);
        for (uint32_t j = e->offsets[i]; j < e->offsets[i + 1]; j++) {
            const float *from = p + (size_t)e->slots[j] * width;
            float scale = saved[j] * dout[i];
            for (uint32_t c = 0; c < width; c++)
                to[c] += scale * from[c];
        }
    }
}

static void cpu_near_back_p(void *self, const struct dp_entries *e, const float *x, const float *saved,
                            const float *dout, uint32_t width, float *dp, bool add)
{
    (void)self;
    if (!add && e->distinct > 0)
        memset(dp, 0, (size_t)e->distinct * width * sizeof *dp);
    for (uint32_t i = 0; i < e->examples; i++) {
        const float *from = x + (size_t)i * width;
        for (uint32_t j = e->offsets[i]; j < e->offsets[i + 1]; j++) {
            float *restrict to = dp + (size_t)e->slots[j] * width;
            float scale = saved[j] * dout[i];
            for (uint32_t c = 0; c < width; c++)
                to[c] += scale * from[c];
        }
    }
}

static void cpu_pairs(void *self, const float *x, uint32_t examples, uint32_t vectors, uint32_t width,
                      float *out)
{
    (void)self;
    for (uint32_t i = 0; i < examples; i++, x += (size_t)vectors * width)
        for (uint32_t a = 0; a < vectors; a++)
            for (uint32_t b = a + 1; b < vectors; b++)
                *out++ = product(x + (size_t)a * width, x + (size_t)b * width, width);
}

static void cpu_pairs_back(void *self, const float *x, const float *dout, uint32_t examples, uint32_t vectors,
                           uint32_t width, float *dx, bool add)
{
    (void)self;
    size_t each = (size_t)vectors * width;
    if (!add)
        memset(dx, 0, examples * each * sizeof *dx);
    for (uint32_t i = 0; i < examples; i++, x += each, dx += each)
        for (uint32_t a = 0; a < vectors; a++)
            for (uint32_t b = a + 1; b < vectors; b++, dout++) {
                const float *xa = x + (size_t)a * width, *xb = x + (size_t)b * width;
                float *restrict da = dx + (size_t)a * width, *restrict db = dx + (size_t)b * width;
                for (uint32_t c = 0; c < width; c++) {
                    da[c] += *dout * xb[c];
                    db[c] += *dout * xa[c];
                }
            }
}

/* ---- losses and their gradients: sums in float64 */

/* -log softmax(x)[label] = log(sum e^(x - max)) - (x[label] - max): no e^x grows beyond 1. */
static void cpu_softmax_loss(void *self, const float *x, const float *labels, const float *weights,
                             uint32_t examples, uint32_t width, float *loss, float *dx)
{
    (void)self;
    double total = 0;
    for (uint32_t i = 0; i < examples; i++) {
        float weight = weights ? weights[i] : 1, each = weight / (float)examples;
        const float *row = x + (size_t)i * width;
        float *drow = dx ? dx + (size_t)i * width : NULL;
        uint32_t label = (uint32_t)labels[i];
        float max = row[0];
        for (uint32_t c = 1; c < width; c++)
            max = row[c] > max ? row[c] : max;
        double sum = 0;
        for (uint32_t c = 0; c < width; c++) {
            float e = expf(row[c] - max);
            sum += (double)e;
            if (drow)
                drow[c] = e;
        }
        total += (double)weight * (log(sum) - ((double)row[label] - (double)max));
        if (!drow)
            continue;
        float scale = each / (float)sum;
        for (uint32_t c = 0; c < width; c++)
            drow[c] *= scale;
        drow[label] -= each;
    }
    *loss = (float)(total / examples);
}

/* log(1 + e^x) = max(x, 0) + log(1 + e^-|x|) */
static void cpu_logistic_loss(void *self, const float *x, const float *labels, const float *weights,
                              uint32_t examples, float *loss, float *dx)
{
    (void)self;
    double total = 0;
    for (uint32_t i = 0; i < examples; i++) {
        double logit = (double)x[i], label = (double)labels[i], weight = weights ? (double)weights[i] : 1;
        double e = exp(-fabs(logit));
        total += weight * ((logit > 0 ? logit : 0) + log1p(e) - label * logit);
        double sigmoid = logit > 0 ? 1 / (1 + e) : e / (1 + e);
        if (dx)
            dx[i] = (float)(weight * (sigmoid - label) / examples);
    }
    *loss = (float)(total / examples);
}

static void cpu_squared_loss(void *self, const float *x, const float *labels, const float *weights,
                             uint32_t examples, float *loss, float *dx)
{
    (void)self;
    double total = 0;
    for (uint32_t i = 0; i < examples; i++) {
        double off = (double)x[i] - (double)labels[i], weight = weights ? (double)weights[i] : 1;
        total += weight * off * off;
        if (dx)
            dx[i] = (float)(2 * weight * off / examples);
    }
    *loss = (float)(total / examples);
}

/* log(1 + e^(y - x)), as the logistic loss of x - y under the label 1. */
static void cpu_mean_loss(void *self, const float *x, uint32_t examples, float *loss, float *dx)
{
    (void)self;
    double total = 0;
    for (uint32_t i = 0; i < examples; i++) {
        total += (double)x[i];
        if (dx)
            dx[i] = 1.0f / (float)examples;
    }
    *loss = (float)(total / examples);
}

static void cpu_bpr_loss(void *self, const float *x, const float *y, uint32_t examples, float *loss,
                         float *dx, float *dy)
{
    (void)self;
    double total = 0;
    for (uint32_t i = 0; i < examples; i++) {
        double above = (double)x[i] - (double)y[i], e = exp(-fabs(above));
        total += (above > 0 ? 0 : -above) + log1p(e);
        double wrong = above > 0 ? e / (1 + e) : 1 / (1 + e); /* sigmoid(y - x) */
        if (dx)
            dx[i] = (float)(-wrong / examples);
        if (dy)
            dy[i] = (float)(wrong / examples);
    }
    *loss = (float)(total / examples);
}

/* ---- */

static const struct dp_backend_ops cpu_ops = {
    .name = "cpu",
    .host_memory = true,
    .wants_by_slot = false,
    .close = cpu_close,
    .alloc = cpu_alloc,
    .release = cpu_release,
    .copy_in = cpu_copy,
    .copy_out = cpu_copy,
    .zero = cpu_zero,
    .finish = cpu_finish,
    .gather_sum = cpu_gather_sum,
    .gather_sum_back = cpu_gather_sum_back,
    .gather = cpu_gather,
    .gather_back = cpu_gather_back,
    .interactions = cpu_interactions,
    .interactions_back = cpu_interactions_back,
    .matmul = cpu_matmul,
    .matmul_back_x = cpu_matmul_back_x,
    .matmul_back_p = cpu_matmul_back_p,
    .bias = cpu_bias,
    .bias_back_p = cpu_bias_back_p,
    .relu = cpu_relu,
    .relu_back = cpu_relu_back,
    .sigmoid = cpu_sigmoid,
    .sigmoid_back = cpu_sigmoid_back,
    .tanh_ = cpu_tanh,
    .tanh_back = cpu_tanh_back,
    .dropout = cpu_dropout,
    .columns = cpu_columns,
    .sum = cpu_sum,
    .multiply = cpu_multiply,
    .multiply_back = cpu_multiply_back,
    .dot = cpu_dot,
    .dot_back = cpu_dot_back,
    .pairs = cpu_pairs,
    .pairs_back = cpu_pairs_back,
    .near = cpu_near,
    .near_back_x = cpu_near_back_x,
    .near_back_p = cpu_near_back_p,
    .copy_back = cpu_copy_back,
    .softmax_loss = cpu_softmax_loss,
    .logistic_loss = cpu_logistic_loss,
    .squared_loss = cpu_squared_loss,
    .mean_loss = cpu_mean_loss,
    .bpr_loss = cpu_bpr_loss,
};

enum dp_status dp_backend_cpu(uint32_t threads, struct dp_backend *out, struct dp_error *err)
{
    *out = (struct dp_backend){0};
    if (threads == 0 || threads > 1024)
        return dp_fail(err, DP_ARGUMENT, "compute threads: %u is not 1 .. 1024", threads);
    dp_blas_init((int)threads);
    out->ops = &cpu_ops;
    return DP_OK;
}
