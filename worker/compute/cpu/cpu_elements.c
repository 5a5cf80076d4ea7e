/* Operations on elements and columns, on the CPU: plain loops that the compiler vectorises. Sums run in the
 * order of the examples. */
#include "worker/compute/cpu/cpu.h"
#include "worker/compute/dropout.h"

#include <math.h>
#include <string.h>

/* Before a loop over elements: its arrays are equal or do not overlap, so no iteration depends on another.
 * Without it the compiler's overlap check sends loops in place to the slow path. */
#if defined(__clang__)
#define ELEMENTS _Pragma("clang loop vectorize(assume_safety)")
#else
#define ELEMENTS _Pragma("GCC ivdep")
#endif

void dp_cpu_bias(void *self, const float *x, const float *p, uint32_t examples, uint32_t width, float *out)
{
    (void)self;
    for (uint32_t i = 0; i < examples; i++) {
        size_t at = (size_t)i * width;
        ELEMENTS
        for (size_t c = 0; c < width; c++)
            out[at + c] = x[at + c] + p[c];
    }
}

void dp_cpu_bias_back_p(void *self, const float *dout, uint32_t examples, uint32_t width, float *dp, bool add)
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
void dp_cpu_relu(void *self, const float *x, size_t n, float *out)
{
    (void)self;
    ELEMENTS
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] < 0.0f ? 0.0f : x[i];
}

void dp_cpu_relu_back(void *self, const float *out, const float *dout, size_t n, float *dx, bool add)
{
    (void)self;
    ELEMENTS
    for (size_t i = 0; i < n; i++) {
        float d = dout[i]; /* always read: a conditional load is not vectorised */
        d = out[i] > 0.0f ? d : 0.0f;
        dx[i] = add ? dx[i] + d : d;
    }
}

void dp_cpu_sigmoid(void *self, const float *x, size_t n, float *out)
{
    (void)self;
    for (size_t i = 0; i < n; i++)
        out[i] = 1.0f / (1.0f + expf(-x[i]));
}

void dp_cpu_sigmoid_back(void *self, const float *out, const float *dout, size_t n, float *dx, bool add)
{
    (void)self;
    ELEMENTS
    for (size_t i = 0; i < n; i++) {
        float d = dout[i] * (out[i] * (1.0f - out[i]));
        dx[i] = add ? dx[i] + d : d;
    }
}

void dp_cpu_tanh(void *self, const float *x, size_t n, float *out)
{
    (void)self;
    for (size_t i = 0; i < n; i++)
        out[i] = tanhf(x[i]);
}

void dp_cpu_tanh_back(void *self, const float *out, const float *dout, size_t n, float *dx, bool add)
{
    (void)self;
    ELEMENTS
    for (size_t i = 0; i < n; i++) {
        float d = dout[i] * (1.0f - out[i] * out[i]);
        dx[i] = add ? dx[i] + d : d;
    }
}

void dp_cpu_sum(void *self, const float *x, const float *y, size_t n, float *out)
{
    (void)self;
    ELEMENTS
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] + y[i];
}

void dp_cpu_copy_back(void *self, const float *dout, size_t n, float *dx, bool add)
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

void dp_cpu_dropout(void *self, const float *x, size_t n, uint64_t seed, float rate, float *out, bool add)
{
    (void)self;
    uint32_t threshold = dp_dropout_threshold(rate);
    float scale = 1.0f / (1.0f - rate);
    for (size_t i = 0; i < n; i++) {
        float y = dp_dropout_keeps(seed, i, threshold) ? x[i] * scale : 0.0f;
        out[i] = add ? out[i] + y : y;
    }
}

void dp_cpu_columns(void *self, const float *x, const struct dp_column_copy *columns, uint32_t examples,
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

void dp_cpu_multiply(void *self, const float *x, const float *y, size_t n, float *out)
{
    (void)self;
    ELEMENTS
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] * y[i];
}

void dp_cpu_multiply_back(void *self, const float *y, const float *dout, size_t n, float *dx, bool add)
{
    (void)self;
    ELEMENTS
    for (size_t i = 0; i < n; i++) {
        float d = dout[i] * y[i];
        dx[i] = add ? dx[i] + d : d;
    }
}

/* Eight running sums, so that the compiler can keep them in one register; the order is still fixed. */
static float product(const float *x, const float *y, uint32_t width)
{
    float sum[8] = {0};
    uint32_t c = 0;
    for (; c + 8 <= width; c += 8)
        for (uint32_t lane = 0; lane < 8; lane++)
            sum[lane] += x[c + lane] * y[c + lane];
    for (; c < width; c++)
        sum[0] += x[c] * y[c];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

void dp_cpu_dot(void *self, const float *x, const float *y, uint32_t examples, uint32_t width, float *out)
{
    (void)self;
    for (uint32_t i = 0; i < examples; i++)
        out[i] = product(x + (size_t)i * width, y + (size_t)i * width, width);
}

void dp_cpu_dot_back(void *self, const float *y, const float *dout, uint32_t examples, uint32_t width,
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

void dp_cpu_pairs(void *self, const float *x, uint32_t examples, uint32_t vectors, uint32_t width, float *out)
{
    (void)self;
    for (uint32_t i = 0; i < examples; i++, x += (size_t)vectors * width)
        for (uint32_t a = 0; a < vectors; a++)
            for (uint32_t b = a + 1; b < vectors; b++)
                *out++ = product(x + (size_t)a * width, x + (size_t)b * width, width);
}

void dp_cpu_pairs_back(void *self, const float *x, const float *dout, uint32_t examples, uint32_t vectors,
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
