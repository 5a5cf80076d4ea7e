/* The portable form: one coordinate at a time. fmaf is one correctly rounded operation, in hardware or in
 * libm. Operation for operation the same as optimizer_avx2.c: change both or neither. */
#include "common/model/optimizer_forms.h"

#include <math.h>

static float gradient_at(const void *gradient, uint32_t i)
{
    float value;
    memcpy(&value, (const char *)gradient + (size_t)i * 4, sizeof value);
    return value;
}

static void sgd(const struct dp_optimizer *optimizer, void *row, const void *gradient, float rate)
{
    (void)dp_step_next(row);
    float *w = dp_row_weights(row);
    for (uint32_t i = 0; i < optimizer->dim; i++) {
        float g = fmaf(optimizer->set.l2, w[i], gradient_at(gradient, i));
        w[i] = fmaf(-rate, g, w[i]);
    }
}

static void momentum(const struct dp_optimizer *optimizer, void *row, const void *gradient, float rate)
{
    (void)dp_step_next(row);
    float *w = dp_row_weights(row), *v = w + optimizer->dim;
    for (uint32_t i = 0; i < optimizer->dim; i++) {
        float g = fmaf(optimizer->set.l2, w[i], gradient_at(gradient, i));
        float mean = fmaf(optimizer->set.momentum, v[i], g);
        v[i] = fabsf(mean) < DP_TINY ? 0.0f : mean;
        w[i] = fmaf(-rate, v[i], w[i]);
    }
}

static void adagrad(const struct dp_optimizer *optimizer, void *row, const void *gradient, float rate)
{
    (void)dp_step_next(row);
    float *w = dp_row_weights(row), *n = w + optimizer->dim;
    for (uint32_t i = 0; i < optimizer->dim; i++) {
        float g = fmaf(optimizer->set.l2, w[i], gradient_at(gradient, i));
        n[i] = fmaf(g, g, n[i]);
        w[i] = fmaf(-rate, g / (sqrtf(n[i]) + optimizer->set.epsilon), w[i]);
    }
}

static void adam(const struct dp_optimizer *optimizer, void *row, const void *gradient, float rate)
{
    const struct dp_adam at = dp_adam_at(optimizer, dp_step_next(row), rate);
    float *w = dp_row_weights(row), *m = w + optimizer->dim, *v = m + optimizer->dim;
    for (uint32_t i = 0; i < optimizer->dim; i++) {
        float g = fmaf(at.l2, w[i], gradient_at(gradient, i));
        float mean = fmaf(at.beta1, m[i], at.rest1 * g), square = fmaf(at.beta2, v[i], at.rest2 * g * g);
        bool gone = fabsf(mean) < DP_TINY;
        m[i] = gone ? 0.0f : mean;
        v[i] = gone && square < DP_TINY ? 0.0f : square;
        float decayed = fmaf(at.minus_decay, w[i], w[i]);
        w[i] = fmaf(at.minus_rate, m[i] / (sqrtf(v[i]) + at.epsilon), decayed);
    }
}

static void ftrl(const struct dp_optimizer *optimizer, void *row, const void *gradient, float rate)
{
    const struct dp_ftrl at = dp_ftrl_at(optimizer, dp_row_step(row), rate);
    (void)dp_step_next(row);
    float *w = dp_row_weights(row), *z = w + optimizer->dim, *n = z + optimizer->dim;
    for (uint32_t i = 0; i < optimizer->dim; i++) {
        float g = gradient_at(gradient, i), before = z[i];
        if (at.first)
            before = w[i] != 0.0f ? fmaf(w[i], at.minus_first_den, copysignf(at.l1, -w[i])) : 0.0f;
        float square = g * g, sum = n[i] + square, root = sqrtf(sum), roots = root + sqrtf(n[i]);
        /* (root' - root) as g^2 / (root' + root): nothing cancels. */
        float minus_sigma = roots > 0.0f ? square / roots * at.minus_per_rate : 0.0f;
        n[i] = sum;
        z[i] = before + fmaf(minus_sigma, w[i], g);
        float denominator = fmaf(at.beta + root, at.per_rate, at.l2);
        w[i] = fabsf(z[i]) <= at.l1 ? 0.0f : (copysignf(at.l1, z[i]) - z[i]) / denominator;
    }
}

dp_apply dp_optimizer_portable(const struct dp_optimizer_spec *spec)
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
