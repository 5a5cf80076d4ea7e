/* The AVX2 form: eight coordinates at a time. The last few are put together from pieces of 4, 2 and 1, so
 * that no byte beyond the row or the gradient is read or written. (Masked stores are microcoded on AMD's Zen,
 * and masked loads reach into the next line.) Operation for operation the same as optimizer_portable.c:
 * change both or neither.
 * Bounds    Only that file bounds values. Here a block is stored if nothing overflowed. Otherwise the
 *           portable form computes that block and the rest of the row. A block tests the weight and the sum
 *           of squares: one of them is infinite or NaN if a value is beyond its bound. The weight alone
 *           would hide an infinite sum (g / inf is 0). */
#include "common/model/optimizer_forms.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX2  __attribute__((target("avx2,fma")))
#define BLOCK AVX2 static inline __attribute__((always_inline))

BLOCK __m128 get_one(const void *at)
{
    float value;
    memcpy(&value, at, sizeof value);
    return _mm_set_ss(value);
}

/* The first 1 .. 4 lanes, of any alignment; the others are 0. n is a constant after inlining. */
BLOCK __m128 get_some(const void *at, uint32_t n)
{
    if (n == 4)
        return _mm_loadu_ps(at);
    if (n == 1)
        return get_one(at);
    __m128 two = _mm_castsi128_ps(_mm_loadl_epi64(at));
    return n == 2 ? two : _mm_movelh_ps(two, get_one((const char *)at + 8));
}

BLOCK void put_some(float *at, __m128 values, uint32_t n)
{
    if (n == 4)
        _mm_storeu_ps(at, values);
    if (n == 1 || n == 3)
        _mm_store_ss(at + n - 1, n == 1 ? values : _mm_movehl_ps(values, values));
    if (n == 2 || n == 3)
        _mm_storel_epi64((__m128i *)(void *)at, _mm_castps_si128(values));
}

/* The first n of 8 lanes, 1 .. 8. */
BLOCK __m256 get(uint32_t n, const void *at)
{
    if (n == 8)
        return _mm256_loadu_ps(at);
    if (n <= 4)
        return _mm256_zextps128_ps256(get_some(at, n));
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(at)),
                                get_some((const char *)at + 16, n - 4), 1);
}

BLOCK __m256 get_gradient(uint32_t n, const void *gradient, size_t i)
{
    return get(n, (const char *)gradient + i * 4);
}

BLOCK void put(uint32_t n, float *at, __m256 values)
{
    if (n == 8)
        _mm256_storeu_ps(at, values);
    else
        put_some(at, _mm256_castps256_ps128(values), n < 4 ? n : 4);
    if (n > 4 && n < 8)
        put_some(at + 4, _mm256_extractf128_ps(values, 1), n - 4);
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

/* What a call works with: the optimizer, and the scalars that depend on the rate and on a row's step. */
struct avx2_call {
    const struct dp_optimizer *o;
    float rate;
    struct dp_adam adam;
    struct dp_ftrl ftrl;
};

/* Each returns whether it stored its block of n lanes. */
BLOCK bool sgd_block(const struct avx2_call *call, uint32_t n, float *row_w, const void *gradient, size_t i)
{
    __m256 w = get(n, row_w + i);
    __m256 g = _mm256_fmadd_ps(all(call->o->set.l2), w, get_gradient(n, gradient, i));
    w = _mm256_fmadd_ps(all(-call->rate), g, w);
    if (overflows(w))
        return false;
    put(n, row_w + i, w);
    return true;
}

BLOCK bool momentum_block(const struct avx2_call *call, uint32_t n, float *row_w, const void *gradient,
                          size_t i)
{
    float *row_v = row_w + call->o->dim;
    __m256 w = get(n, row_w + i);
    __m256 g = _mm256_fmadd_ps(all(call->o->set.l2), w, get_gradient(n, gradient, i));
    __m256 v = _mm256_fmadd_ps(all(call->o->set.momentum), get(n, row_v + i), g);
    v = _mm256_andnot_ps(are_tiny(v), v);
    w = _mm256_fmadd_ps(all(-call->rate), v, w);
    if (overflows(w))
        return false;
    put(n, row_v + i, v);
    put(n, row_w + i, w);
    return true;
}

BLOCK bool adagrad_block(const struct avx2_call *call, uint32_t n, float *row_w, const void *gradient,
                         size_t i)
{
    float *row_n = row_w + call->o->dim;
    __m256 w = get(n, row_w + i);
    __m256 g = _mm256_fmadd_ps(all(call->o->set.l2), w, get_gradient(n, gradient, i));
    __m256 sum = _mm256_fmadd_ps(g, g, get(n, row_n + i));
    __m256 step = _mm256_div_ps(g, _mm256_add_ps(_mm256_sqrt_ps(sum), all(call->o->set.epsilon)));
    w = _mm256_fmadd_ps(all(-call->rate), step, w);
    if (overflows(_mm256_add_ps(sum, w)))
        return false;
    put(n, row_n + i, sum);
    put(n, row_w + i, w);
    return true;
}

BLOCK bool adam_block(const struct avx2_call *call, uint32_t n, float *row_w, const void *gradient, size_t i)
{
    const struct dp_adam *at = &call->adam;
    float *row_m = row_w + call->o->dim, *row_v = row_m + call->o->dim;
    __m256 w = get(n, row_w + i);
    __m256 g = _mm256_fmadd_ps(all(at->l2), w, get_gradient(n, gradient, i));
    __m256 m = _mm256_fmadd_ps(all(at->beta1), get(n, row_m + i), _mm256_mul_ps(all(at->rest1), g));
    __m256 square = _mm256_mul_ps(_mm256_mul_ps(all(at->rest2), g), g);
    __m256 v = _mm256_fmadd_ps(all(at->beta2), get(n, row_v + i), square);
    __m256 gone = are_tiny(m);
    m = _mm256_andnot_ps(gone, m);
    v = _mm256_andnot_ps(_mm256_and_ps(gone, are_tiny(v)), v);
    __m256 decayed = _mm256_fmadd_ps(all(at->minus_decay), w, w);
    __m256 step = _mm256_div_ps(m, _mm256_add_ps(_mm256_sqrt_ps(v), all(at->epsilon)));
    w = _mm256_fmadd_ps(all(at->minus_rate), step, decayed);
    if (overflows(_mm256_add_ps(v, w)))
        return false;
    put(n, row_m + i, m);
    put(n, row_v + i, v);
    put(n, row_w + i, w);
    return true;
}

BLOCK bool ftrl_block(const struct avx2_call *call, uint32_t n, float *row_w, const void *gradient, size_t i)
{
    const struct dp_ftrl *at = &call->ftrl;
    float *row_z = row_w + call->o->dim, *row_n = row_z + call->o->dim;
    const __m256 zero = _mm256_setzero_ps(), sign = all(-0.0f);
    __m256 w = get(n, row_w + i), z = get(n, row_z + i), sums = get(n, row_n + i);
    __m256 g = get_gradient(n, gradient, i);
    if (at->first) {
        z = _mm256_fmadd_ps(w, all(at->minus_first_den), with_sign(at->l1, _mm256_xor_ps(sign, w)));
        z = _mm256_and_ps(z, _mm256_cmp_ps(w, zero, _CMP_NEQ_UQ));
    }
    __m256 square = _mm256_mul_ps(g, g);
    __m256 sum = _mm256_add_ps(sums, square);
    __m256 root = _mm256_sqrt_ps(sum);
    __m256 roots = _mm256_add_ps(root, _mm256_sqrt_ps(sums));
    __m256 minus_sigma = _mm256_mul_ps(_mm256_div_ps(square, roots), all(at->minus_per_rate));
    minus_sigma = _mm256_and_ps(minus_sigma, _mm256_cmp_ps(roots, zero, _CMP_GT_OQ));
    z = _mm256_add_ps(z, _mm256_fmadd_ps(minus_sigma, w, g));
    __m256 denominator = _mm256_fmadd_ps(_mm256_add_ps(all(at->beta), root), all(at->per_rate), all(at->l2));
    __m256 closed = _mm256_div_ps(_mm256_sub_ps(with_sign(at->l1, z), z), denominator);
    __m256 beyond = _mm256_cmp_ps(_mm256_andnot_ps(sign, z), all(at->l1), _CMP_NLE_UQ);
    w = _mm256_and_ps(closed, beyond);
    if (overflows(_mm256_add_ps(sum, w)))
        return false;
    put(n, row_n + i, sum);
    put(n, row_z + i, z);
    put(n, row_w + i, w);
    return true;
}

typedef bool (*avx2_block)(const struct avx2_call *call, uint32_t n, float *row_w, const void *gradient,
                           size_t i);
/* Sets the scalars of a row's step. */
typedef void (*avx2_step)(struct avx2_call *call, uint32_t step);

BLOCK void any_step(struct avx2_call *call, uint32_t step)
{
    (void)call;
    (void)step;
}

BLOCK void adam_step(struct avx2_call *call, uint32_t step)
{
    dp_adam_correct(call->o, step, call->rate, &call->adam);
}

BLOCK void ftrl_step(struct avx2_call *call, uint32_t step)
{
    call->ftrl.first = step == 1;
}

/* tail: dim % 8. Returns whether a value stayed at its bound. */
BLOCK bool apply_row(const struct avx2_call *call, avx2_block block, uint32_t tail, void *row,
                     const void *gradient)
{
    const size_t whole = call->o->dim - tail;
    float *w = dp_row_weights(row);
    size_t i = 0;
    while (i < whole && block(call, 8, w, gradient, i))
        i += 8;
    if (i == whole && (tail == 0 || block(call, tail, w, gradient, i)))
        return false;
    return call->o->rest(call->o, row, gradient, call->rate, (uint32_t)i);
}

BLOCK uint32_t apply_rows(struct avx2_call *call, avx2_block block, avx2_step step, uint32_t tail,
                          void *const *rows, uint32_t n, const void *gradients)
{
    const size_t bytes = (size_t)call->o->dim * 4;
    const char *gradient = gradients;
    uint32_t bounded = 0;
    for (uint32_t r = 0; r < n; r++, gradient += bytes)
        if (rows[r]) {
            step(call, dp_step_next(rows[r]));
            bounded += apply_row(call, block, tail, rows[r], gradient);
        }
    return bounded;
}

/* A loop for each tail, in which it is a constant. */
BLOCK uint32_t apply(struct avx2_call call, avx2_block block, avx2_step step, void *const *rows, uint32_t n,
                     const void *gradients)
{
    switch (call.o->dim % 8) {
    case 0:
        return apply_rows(&call, block, step, 0, rows, n, gradients);
    case 1:
        return apply_rows(&call, block, step, 1, rows, n, gradients);
    case 2:
        return apply_rows(&call, block, step, 2, rows, n, gradients);
    case 3:
        return apply_rows(&call, block, step, 3, rows, n, gradients);
    case 4:
        return apply_rows(&call, block, step, 4, rows, n, gradients);
    case 5:
        return apply_rows(&call, block, step, 5, rows, n, gradients);
    case 6:
        return apply_rows(&call, block, step, 6, rows, n, gradients);
    default:
        return apply_rows(&call, block, step, 7, rows, n, gradients);
    }
}

AVX2 static uint32_t sgd(const struct dp_optimizer *o, void *const *rows, uint32_t n, const void *gradients,
                         float rate)
{
    return apply((struct avx2_call){.o = o, .rate = rate}, sgd_block, any_step, rows, n, gradients);
}

AVX2 static uint32_t momentum(const struct dp_optimizer *o, void *const *rows, uint32_t n,
                              const void *gradients, float rate)
{
    return apply((struct avx2_call){.o = o, .rate = rate}, momentum_block, any_step, rows, n, gradients);
}

AVX2 static uint32_t adagrad(const struct dp_optimizer *o, void *const *rows, uint32_t n,
                             const void *gradients, float rate)
{
    return apply((struct avx2_call){.o = o, .rate = rate}, adagrad_block, any_step, rows, n, gradients);
}

AVX2 static uint32_t adam(const struct dp_optimizer *o, void *const *rows, uint32_t n, const void *gradients,
                          float rate)
{
    const struct avx2_call call = {.o = o, .rate = rate, .adam = dp_adam_of(o, rate)};
    return apply(call, adam_block, adam_step, rows, n, gradients);
}

AVX2 static uint32_t ftrl(const struct dp_optimizer *o, void *const *rows, uint32_t n, const void *gradients,
                          float rate)
{
    const struct avx2_call call = {.o = o, .rate = rate, .ftrl = dp_ftrl_of(o, rate)};
    return apply(call, ftrl_block, ftrl_step, rows, n, gradients);
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
