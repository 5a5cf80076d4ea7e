#include "common/model/init.h"

#include "common/base/hash.h"
#include "common/model/row.h"

#include <math.h>
#include <string.h>

/* The bits of draw number `draw` of a row. Mixed twice, with the row's own number between, so that two rows
 * whose numbers happen to lie near each other do not share a stretch of draws. */
static uint64_t bits_of(uint64_t row, uint64_t draw)
{
    return dp_hash_mix(dp_hash_mix(row + (draw + 1) * DP_HASH_GOLDEN) ^ row);
}

static uint64_t row_number(const struct dp_table_spec *spec, uint64_t key)
{
    uint64_t table = dp_hash_mix(spec->seed + DP_HASH_GOLDEN) ^ dp_hash_mix(dp_hash_text(spec->name));
    return dp_hash_mix(dp_hash_mix(table) ^ dp_hash_mix(key + DP_HASH_GOLDEN));
}

/* -ln(v 2^-53), 1 <= v <= 2^53. v = 2^e m, sqrt(1/2) <= m < sqrt(2); ln m = 2 artanh((m-1)/(m+1)), whose
 * series ends below 1e-15 here. */
static double minus_log(uint64_t v)
{
    int exponent = 63 - __builtin_clzll(v);
    uint64_t m_bits = (v << (63 - exponent) << 1 >> 12) | 0x3ff0000000000000u;
    double m;
    memcpy(&m, &m_bits, sizeof m);
    if (m >= 1.4142135623730951) {
        m *= 0.5;
        exponent++;
    }
    double s = (m - 1.0) / (m + 1.0), s2 = s * s;
    double series = 1.0 / 17.0;
    series = series * s2 + 1.0 / 15.0;
    series = series * s2 + 1.0 / 13.0;
    series = series * s2 + 1.0 / 11.0;
    series = series * s2 + 1.0 / 9.0;
    series = series * s2 + 1.0 / 7.0;
    series = series * s2 + 1.0 / 5.0;
    series = series * s2 + 1.0 / 3.0;
    series = series * s2 + 1.0;
    return (double)(53 - exponent) * 0.69314718055994531 - 2.0 * s * series;
}

/* Cosine and sine of the angle turn 2^-64 of a whole turn: the nearest quarter, and the Taylor series of what
 * is left (at most 1/8 turn). */
static void cos_sin(uint64_t turn, double *cosine, double *sine)
{
    uint64_t quarter = (turn + ((uint64_t)1 << 61)) >> 62;
    int64_t rest = (int64_t)(turn - (quarter << 62));
    double x = (double)rest * (1.5707963267948966 / 4611686018427387904.0), x2 = x * x;
    double c = 1.0 / 20922789888000.0, s = -1.0 / 1307674368000.0; /* 1/16!, -1/15! */
    c = c * x2 - 1.0 / 87178291200.0, s = s * x2 + 1.0 / 6227020800.0;
    c = c * x2 + 1.0 / 479001600.0, s = s * x2 - 1.0 / 39916800.0;
    c = c * x2 - 1.0 / 3628800.0, s = s * x2 + 1.0 / 362880.0;
    c = c * x2 + 1.0 / 40320.0, s = s * x2 - 1.0 / 5040.0;
    c = c * x2 - 1.0 / 720.0, s = s * x2 + 1.0 / 120.0;
    c = c * x2 + 1.0 / 24.0, s = s * x2 - 1.0 / 6.0;
    c = c * x2 - 1.0 / 2.0, s = s * x2 + 1.0;
    c = c * x2 + 1.0, s *= x;
    double cosines[4] = {c, -s, -c, s}, sines[4] = {s, c, -s, -c};
    *cosine = cosines[quarter & 3];
    *sine = sines[quarter & 3];
}

/* Box and Muller 1958: columns 2j and 2j+1 are the two normal numbers of draws 2j and 2j+1. */
static void normal_weights(uint64_t row, double deviation, uint32_t dim, float *weights)
{
    for (uint32_t i = 0; i < dim; i += 2) {
        double radius = deviation * sqrt(2.0 * minus_log((bits_of(row, i) >> 11) + 1));
        double cosine, sine;
        cos_sin(bits_of(row, i + 1), &cosine, &sine);
        weights[i] = (float)(radius * cosine);
        if (i + 1 < dim)
            weights[i + 1] = (float)(radius * sine);
    }
}

/* 24 bits: the product with the limit cannot be rounded up to the limit itself. */
static void uniform_weights(uint64_t row, float limit, uint32_t dim, float *weights)
{
    for (uint32_t i = 0; i < dim; i++) {
        int32_t drawn = (int32_t)(bits_of(row, i) >> 40) - (1 << 23);
        weights[i] = (float)drawn * 0x1p-23f * limit;
    }
}

void dp_init_weights(const struct dp_table_spec *spec, uint64_t key, float *weights)
{
    const struct dp_init_spec *init = &spec->init;
    uint64_t row = init->kind == DP_INIT_ZERO ? 0 : row_number(spec, key);
    switch (init->kind) {
    case DP_INIT_ZERO:
        memset(weights, 0, (size_t)spec->dim * 4);
        break;
    case DP_INIT_CONSTANT:
        for (uint32_t i = 0; i < spec->dim; i++)
            weights[i] = init->scale;
        break;
    case DP_INIT_NORMAL:
        normal_weights(row, (double)init->scale, spec->dim, weights);
        break;
    case DP_INIT_UNIFORM:
        uniform_weights(row, init->scale, spec->dim, weights);
        break;
    case DP_INIT_XAVIER:
        uniform_weights(row, (float)sqrt(6.0 / ((double)init->fan_in + (double)init->fan_out)), spec->dim,
                        weights);
        break;
    case DP_INIT_HE:
        normal_weights(row, sqrt(2.0 / (double)init->fan_in), spec->dim, weights);
        break;
    }
}

void dp_init_row(const struct dp_table_spec *spec, uint64_t key, void *row)
{
    dp_row_set_lsn(row, 0);
    dp_row_set_step(row, 0);
    dp_store_u32le((char *)row + 12, DP_ROW_FORMAT);
    float *weights = dp_row_weights(row), *slots = weights + spec->dim;
    dp_init_weights(spec, key, weights);
    size_t slots_len = (size_t)spec->dim * dp_row_slots(&spec->optimizer);
    float start = spec->optimizer.accumulator; /* 0 where the kind has none */
    for (size_t i = 0; i < slots_len; i++)
        slots[i] = start;
}
