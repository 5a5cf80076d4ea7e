/* The AVX2 form: eight coordinates at a time, the last few under a mask, so that no byte beyond the row or
 * the gradient is read or written. Operation for operation the same as optimizer_portable.c: change both or
 * neither.
 * Bounds    Only that file bounds values. Here a block is stored if nothing overflowed. Otherwise the
 *           portable form computes that block and the rest of the row. A block tests the weight and the sum
 *           of squares: one of them is infinite or NaN if a value is beyond its bound. The weight alone
 *           would hide an infinite sum (g / inf is 0). */
#include "common/model/optimizer_forms.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX2  __attribute__((target("avx2,fma")))
#define BLOCK AVX2 static inline __attribute__((always_inline))

/* Which of 8 lanes are there: `whole` is a constant after inlining, so a whole block has no mask. */
struct avx2_lanes {
    bool whole;
    __m256i mask;
};

static const int32_t MASKS[16] = {-1, -1, -1, -1, -1, -1, -1, -1};

BLOCK struct avx2_lanes whole_lanes(void)
{
    return (struct avx2_lanes){true, _mm256_setzero_si256()};
}

/* rest: 1 .. 7. */
BLOCK struct avx2_lanes some_lanes(uint32_t rest)
{
    return (struct avx2_lanes){false, _mm256_loadu_si256((const __m256i *)(const void *)(MASKS + 8 - rest))};
}

BLOCK __m256 get(struct avx2_lanes lanes, const float *at)
{
    return lanes.whole ? _mm256_loadu_ps(at) : _mm256_maskload_ps(at, lanes.mask);
}

BLOCK __m256 get_gradient(struct avx2_lanes lanes, const void *gradient, size_t i)
{
    return get(lanes, (const float *)(const void *)((const char *)gradient + i * 4));
}

BLOCK void put(struct avx2_lanes lanes, float *at, __m256 values)
{
    if (lanes.whole)
        _mm256_storeu_ps(at, values);
    else
        _mm256_maskstore_ps(at, lanes.mask, values);
}

BLOCK __m256 all(float value)
{
    return _mm256_set1_ps(value);
}

/* |size| with the sign of `sign`, size >= 0. */
BLOCK __m256 with_sign(float size, __m256 sign)
{
    return _mm256_or_ps(all(size), _mm256_and_ps(sign, all(-0.0f)));
}

/* Lanes with |x| < DP_TINY; a NaN is not. */
BLOCK __m256 are_tiny(__m256 x)
{
    return _mm256_cmp_ps(_mm256_andnot_ps(all(-0.0f), x), all(DP_TINY), _CMP_LT_OQ);
}

/* x - x is 0 of a finite x, and else NaN. */
BLOCK bool overflows(__m256 probe)
{
    __m256 wild = _mm256_sub_ps(probe, probe);
    return __builtin_expect(_mm256_movemask_ps(_mm256_cmp_ps(wild, wild, _CMP_UNORD_Q)) != 0, 0);
}

/* Each returns whether it stored its block. */
BLOCK bool sgd_block(const struct dp_optimizer *o, struct avx2_lanes lanes, float *row_w,
                     const void *gradient, size_t i, float rate)
{
    __m256 w = get(lanes, row_w + i);
    __m256 g = _mm256_fmadd_ps(all(o->set.l2), w, get_gradient(lanes, gradient, i));
    w = _mm256_fmadd_ps(all(-rate), g, w);
    if (overflows(w))
        return false;
    put(lanes, row_w + i, w);
    return true;
}

BLOCK bool momentum_block(const struct dp_optimizer *o, size_t dim, struct avx2_lanes lanes, float *row_w,
                          const void *gradient, size_t i, float rate)
{
    float *row_v = row_w + dim;
    __m256 w = get(lanes, row_w + i);
    __m256 g = _mm256_fmadd_ps(all(o->set.l2), w, get_gradient(lanes, gradient, i));
    __m256 v = _mm256_fmadd_ps(all(o->set.momentum), get(lanes, row_v + i), g);
    v = _mm256_andnot_ps(are_tiny(v), v);
    w = _mm256_fmadd_ps(all(-rate), v, w);
    if (overflows(w))
        return false;
    put(lanes, row_v + i, v);
    put(lanes, row_w + i, w);
    return true;
}

BLOCK bool adagrad_block(const struct dp_optimizer *o, size_t dim, struct avx2_lanes lanes, float *row_w,
                         const void *gradient, size_t i, float rate)
{
    float *row_n = row_w + dim;
    __m256 w = get(lanes, row_w + i);
    __m256 g = _mm256_fmadd_ps(all(o->set.l2), w, get_gradient(lanes, gradient, i));
    __m256 n = _mm256_fmadd_ps(g, g, get(lanes, row_n + i));
    __m256 step = _mm256_div_ps(g, _mm256_add_ps(_mm256_sqrt_ps(n), all(o->set.epsilon)));
    w = _mm256_fmadd_ps(all(-rate), step, w);
    if (overflows(_mm256_add_ps(n, w)))
        return false;
    put(lanes, row_n + i, n);
    put(lanes, row_w + i, w);
    return true;
}

BLOCK bool adam_block(size_t dim, const struct dp_adam *at, struct avx2_lanes lanes, float *row_w,
                      const void *gradient, size_t i)
{
    float *row_m = row_w + dim, *row_v = row_m + dim;
    __m256 w = get(lanes, row_w + i);
    __m256 g = _mm256_fmadd_ps(all(at->l2), w, get_gradient(lanes, gradient, i));
    __m256 m = _mm256_fmadd_ps(all(at->beta1), get(lanes, row_m + i), _mm256_mul_ps(all(at->rest1), g));
    __m256 square = _mm256_mul_ps(_mm256_mul_ps(all(at->rest2), g), g);
    __m256 v = _mm256_fmadd_ps(all(at->beta2), get(lanes, row_v + i), square);
    __m256 gone = are_tiny(m);
    m = _mm256_andnot_ps(gone, m);
    v = _mm256_andnot_ps(_mm256_and_ps(gone, are_tiny(v)), v);
    __m256 decayed = _mm256_fmadd_ps(all(at->minus_decay), w, w);
    __m256 step = _mm256_div_ps(m, _mm256_add_ps(_mm256_sqrt_ps(v), all(at->epsilon)));
    w = _mm256_fmadd_ps(all(at->minus_rate), step, decayed);
    if (overflows(_mm256_add_ps(v, w)))
        return false;
    put(lanes, row_m + i, m);
    put(lanes, row_v + i, v);
    put(lanes, row_w + i, w);
    return true;
}

BLOCK bool ftrl_block(size_t dim, const struct dp_ftrl *at, struct avx2_lanes lanes, float *row_w,
                      const void *gradient, size_t i)
{
    float *row_z = row_w + dim, *row_n = row_z + dim;
    const __m256 zero = _mm256_setzero_ps(), sign = all(-0.0f);
    __m256 w = get(lanes, row_w + i), z = get(lanes, row_z + i), n = get(lanes, row_n + i);
    __m256 g = get_gradient(lanes, gradient, i);
    if (at->first) {
        z = _mm256_fmadd_ps(w, all(at->minus_first_den), with_sign(at->l1, _mm256_xor_ps(sign, w)));
        z = _mm256_and_ps(z, _mm256_cmp_ps(w, zero, _CMP_NEQ_UQ));
    }
    __m256 square = _mm256_mul_ps(g, g);
    __m256 sum = _mm256_add_ps(n, square);
    __m256 root = _mm256_sqrt_ps(sum);
    __m256 roots = _mm256_add_ps(root, _mm256_sqrt_ps(n));
    __m256 minus_sigma = _mm256_mul_ps(_mm256_div_ps(square, roots), all(at->minus_per_rate));
    minus_sigma = _mm256_and_ps(minus_sigma, _mm256_cmp_ps(roots, zero, _CMP_GT_OQ));
    z = _mm256_add_ps(z, _mm256_fmadd_ps(minus_sigma, w, g));
    __m256 denominator = _mm256_fmadd_ps(_mm256_add_ps(all(at->beta), root), all(at->per_rate), all(at->l2));
    __m256 closed = _mm256_div_ps(_mm256_sub_ps(with_sign(at->l1, z), z), denominator);
    __m256 beyond = _mm256_cmp_ps(_mm256_andnot_ps(sign, z), all(at->l1), _CMP_NLE_UQ);
    w = _mm256_and_ps(closed, beyond);
    if (overflows(_mm256_add_ps(sum, w)))
        return false;
    put(lanes, row_n + i, sum);
    put(lanes, row_z + i, z);
    put(lanes, row_w + i, w);
    return true;
}

AVX2 static bool sgd(const struct dp_optimizer *o, void *row, const void *gradient, float rate)
{
    (void)dp_step_next(row);
    float *w = dp_row_weights(row);
    const size_t dim = o->dim;
    size_t i = 0;
    for (; i + 8 <= dim; i += 8)
        if (!sgd_block(o, whole_lanes(), w, gradient, i, rate))
            return o->rest(o, row, gradient, rate, (uint32_t)i);
    if (i < dim && !sgd_block(o, some_lanes((uint32_t)(dim - i)), w, gradient, i, rate))
        return o->rest(o, row, gradient, rate, (uint32_t)i);
    return false;
}

AVX2 static bool momentum(const struct dp_optimizer *o, void *row, const void *gradient, float rate)
{
    (void)dp_step_next(row);
    float *w = dp_row_weights(row);
    const size_t dim = o->dim;
    size_t i = 0;
    for (; i + 8 <= dim; i += 8)
        if (!momentum_block(o, dim, whole_lanes(), w, gradient, i, rate))
            return o->rest(o, row, gradient, rate, (uint32_t)i);
    if (i < dim && !momentum_block(o, dim, some_lanes((uint32_t)(dim - i)), w, gradient, i, rate))
        return o->rest(o, row, gradient, rate, (uint32_t)i);
    return false;
}

AVX2 static bool adagrad(const struct dp_optimizer *o, void *row, const void *gradient, float rate)
{
    (void)dp_step_next(row);
    float *w = dp_row_weights(row);
    const size_t dim = o->dim;
    size_t i = 0;
    for (; i + 8 <= dim; i += 8)
        if (!adagrad_block(o, dim, whole_lanes(), w, gradient, i, rate))
            return o->rest(o, row, gradient, rate, (uint32_t)i);
    if (i < dim && !adagrad_block(o, dim, some_lanes((uint32_t)(dim - i)), w, gradient, i, rate))
        return o->rest(o, row, gradient, rate, (uint32_t)i);
    return false;
}

AVX2 static bool adam(const struct dp_optimizer *o, void *row, const void *gradient, float rate)
{
    const struct dp_adam at = dp_adam_at(o, dp_step_next(row), rate);
    float *w = dp_row_weights(row);
    const size_t dim = o->dim;
    size_t i = 0;
    for (; i + 8 <= dim; i += 8)
        if (!adam_block(dim, &at, whole_lanes(), w, gradient, i))
            return o->rest(o, row, gradient, rate, (uint32_t)i);
    if (i < dim && !adam_block(dim, &at, some_lanes((uint32_t)(dim - i)), w, gradient, i))
        return o->rest(o, row, gradient, rate, (uint32_t)i);
    return false;
}

AVX2 static bool ftrl(const struct dp_optimizer *o, void *row, const void *gradient, float rate)
{
    const struct dp_ftrl at = dp_ftrl_at(o, dp_step_next(row), rate);
    float *w = dp_row_weights(row);
    const size_t dim = o->dim;
    size_t i = 0;
    for (; i + 8 <= dim; i += 8)
        if (!ftrl_block(dim, &at, whole_lanes(), w, gradient, i))
            return o->rest(o, row, gradient, rate, (uint32_t)i);
    if (i < dim && !ftrl_block(dim, &at, some_lanes((uint32_t)(dim - i)), w, gradient, i))
        return o->rest(o, row, gradient, rate, (uint32_t)i);
    return false;
}

dp_apply dp_optimizer_avx2(const struct dp_optimizer_spec *spec)
{
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return NULL;
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

#else

dp_apply dp_optimizer_avx2(const struct dp_optimizer_spec *spec)
{
    (void)spec;
    return NULL;
}

#endif
