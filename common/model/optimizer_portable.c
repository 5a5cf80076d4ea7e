/* The portable form: one coordinate at a time. fmaf is one correctly rounded operation, in hardware or in
 * libm. Operation for operation the same as optimizer_avx2.c: change both or neither. */
#include "common/model/optimizer_forms.h"

#include <float.h>
#include <math.h>

static float gradient_at(const void *gradient, uint32_t i)
{
    float value;
    memcpy(&value, (const char *)gradient + (size_t)i * 4, sizeof value);
    return value;
}

/* x within [-most, most], a NaN as -most. */
static float bounded(float x, float most, bool *hit)
{
    float y = x > -most ? x : -most;
    y = y < most ? y : most;
    *hit |= y != x;
    return y;
}

static float gradient_of(const struct dp_optimizer *optimizer, const void *gradient, uint32_t i, float w,
                         bool *hit)
{
    return bounded(fmaf(optimizer->set.l2, w, gradient_at(gradient, i)), optimizer->gradient_max, hit);
}

static bool sgd(const struct dp_optimizer *optimizer, void *row, const void *gradient, float rate,
                uint32_t from)
{
    float *w = dp_row_weights(row);
    bool hit = false;
    for (uint32_t i = from; i < optimizer->dim; i++) {
        float g = gradient_of(optimizer, gradient, i, w[i], &hit);
        w[i] = bounded(fmaf(-rate, g, w[i]), FLT_MAX, &hit);
    }
    return hit;
}

static bool momentum(const struct dp_optimizer *optimizer, void *row, const void *gradient, float rate,
                     uint32_t from)
{
    float *w = dp_row_weights(row), *v = w + optimizer->dim;
    bool hit = false;
    for (uint32_t i = from; i < optimizer->dim; i++) {
        float g = gradient_of(optimizer, gradient, i, w[i], &hit);
        float mean = fmaf(optimizer->set.momentum, v[i], g);
        v[i] = bounded(fabsf(mean) < DP_TINY ? 0.0f : mean, FLT_MAX, &hit);
        w[i] = bounded(fmaf(-rate, v[i], w[i]), FLT_MAX, &hit);
    }
    return hit;
}

static bool adagrad(const struct dp_optimizer *optimizer, void *row, const void *gradient, float rate,
                    uint32_t from)
{
    float *w = dp_row_weights(row), *n = w + optimizer->dim;
    bool hit = false;
    for (uint32_t i = from; i < optimizer->dim; i++) {
        float g = gradient_of(optimizer, gradient, i, w[i], &hit);
        n[i] = bounded(fmaf(g, g, n[i]), FLT_MAX, &hit);
        w[i] = bounded(fmaf(-rate, g / (sqrtf(n[i]) + optimizer->set.epsilon), w[i]), FLT_MAX, &hit);
    }
    return hit;
}

static bool adam(const struct dp_optimizer *optimizer, void *row, const void *gradient, float rate,
                 uint32_t from)
{
    struct dp_adam at = dp_adam_of(optimizer, rate);
    dp_adam_correct(optimizer, dp_row_step(row), rate, &at);
    float *w = dp_row_weights(row), *m = w + optimizer->dim, *v = m + optimizer->dim;
    bool hit = false;
    for (uint32_t i = from; i < optimizer->dim; i++) {
        float g = gradient_of(optimizer, gradient, i, w[i], &hit);
        float mean = fmaf(at.beta1, m[i], at.rest1 * g), square = fmaf(at.beta2, v[i], at.rest2 * g * g);
        bool gone = fabsf(mean) < DP_TINY;
        m[i] = bounded(gone ? 0.0f : mean, FLT_MAX, &hit);
        v[i] = bounded(gone && square < DP_TINY ? 0.0f : square, FLT_MAX, &hit);
        float decayed = fmaf(at.minus_decay, w[i], w[i]);
        w[i] = bounded(fmaf(at.minus_rate, m[i] / (sqrtf(v[i]) + at.epsilon), decayed), FLT_MAX, &hit);
    }
    return hit;
}

static bool ftrl(const struct dp_optimizer *optimizer, void *row, const void *gradient, float rate,
                 uint32_t from)
{
    const struct dp_ftrl at = dp_ftrl_of(optimizer, rate);
    const bool first = dp_row_step(row) == 1;
    float *w = dp_row_weights(row), *z = w + optimizer->dim, *n = z + optimizer->dim;
    bool hit = false;
    for (uint32_t i = from; i < optimizer->dim; i++) {
        float g = bounded(gradient_at(gradient, i), optimizer->gradient_max, &hit), before = z[i];
        if (first)
            before = w[i] != 0.0f ? fmaf(w[i], at.minus_first_den, copysignf(at.l1, -w[i])) : 0.0f;
        bool full = false;
        float square = g * g, sum = bounded(n[i] + square, FLT_MAX, &full);
        if (full) /* what of it was added: else z would move for a root that stays */
            square = sum - n[i];
        hit |= full;
        float root = sqrtf(sum), roots = root + sqrtf(n[i]);
        /* (root' - root) as g^2 / (root' + root): nothing cancels. */
        float minus_sigma = roots > 0.0f ? square / roots * at.minus_per_rate : 0.0f;
        minus_sigma = bounded(minus_sigma, FLT_MAX, &hit);
        n[i] = sum;
        z[i] = bounded(before + fmaf(minus_sigma, w[i], g), FLT_MAX, &hit);
        float denominator = fmaf(at.beta + root, at.per_rate, at.l2);
        float closed = (copysignf(at.l1, z[i]) - z[i]) / denominator;
        w[i] = bounded(fabsf(z[i]) <= at.l1 ? 0.0f : closed, FLT_MAX, &hit);
    }
    return hit;
}

dp_rest dp_optimizer_portable(const struct dp_optimizer_spec *spec)
{
    switch (spec->kind) {
    case DP_OPT_SGD:
        return spec->momentum > 0 ? momentum : sgd;
    case DP_OPT_ADAGRAD:
        return adagrad;
    case DP_OPT_ADAM:
        return adam;
    case DP_OPT_FTRL:
        return ftrl;
    }
    return NULL;
}
