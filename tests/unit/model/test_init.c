/* init: the values are pinned bit by bit (worked out by another program, with another libm), depend on each
 * of seed, name, key and column, and have the distribution that the kind says. */
#include "tests/lib/test.h"

#include "common/model/init.h"
#include "common/model/row.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct dp_table_spec spec_of(enum dp_init_kind kind, float scale, uint32_t dim)
{
    struct dp_table_spec spec = {.name = "items", .dim = dim, .seed = 7};
    spec.init = (struct dp_init_spec){.kind = kind, .scale = scale};
    return spec;
}

static void pinned(const struct dp_table_spec *spec, uint64_t key, const uint32_t *want)
{
    float weights[3];
    uint32_t bits[3];
    dp_init_weights(spec, key, weights);
    memcpy(bits, weights, sizeof bits);
    for (int i = 0; i < 3; i++)
        assert_int_equal(bits[i], want[i]);
}

static void values_are_pinned(void **state)
{
    struct dp_table_spec spec = spec_of(DP_INIT_NORMAL, 0.01f, 3);
    pinned(&spec, 0, (uint32_t[]){0xbc113c5f, 0xbc5cd557, 0xbc236131});
    pinned(&spec, 1, (uint32_t[]){0xbc1c9b11, 0xbb9f04d3, 0x3bdea797});
    pinned(&spec, UINT64_MAX, (uint32_t[]){0xbb6b1bf8, 0x3be847d5, 0xba8743af});
    spec = spec_of(DP_INIT_UNIFORM, 0.25f, 3);
    pinned(&spec, 0, (uint32_t[]){0xbde94754, 0x3da13088, 0xbd80b7d4});
    pinned(&spec, 1, (uint32_t[]){0x3d00e9a8, 0x3d1920e0, 0x3e11ba98});
    pinned(&spec, UINT64_MAX, (uint32_t[]){0x3deadc18, 0xbdb3a530, 0x3e48ba84});
    spec.init = (struct dp_init_spec){.kind = DP_INIT_HE, .fan_in = 100};
    pinned(&spec, 5, (uint32_t[]){0xbdfc0ad4, 0x3e13387a, 0xbd89d1c3});
    spec.init = (struct dp_init_spec){.kind = DP_INIT_XAVIER, .fan_in = 300, .fan_out = 100};
    pinned(&spec, 5, (uint32_t[]){0xbcb7b502, 0xbd09c72f, 0xbd920ee3});
    spec = spec_of(DP_INIT_CONSTANT, -1.5f, 3);
    pinned(&spec, 5, (uint32_t[]){0xbfc00000, 0xbfc00000, 0xbfc00000});
}

/* A pair of columns, as a point of the plane: its radius and its angle give back two uniform draws. */
static void pairs_lie_evenly_around_the_origin(void **state)
{
    enum { DIM = 4096 };
    struct dp_table_spec spec = spec_of(DP_INIT_NORMAL, 1.0f, DIM);
    float *weights = malloc(DIM * sizeof *weights);
    assert_non_null(weights);
    for (uint64_t key = 0; key < 50; key++) {
        dp_init_weights(&spec, key, weights);
        double radii = 0, turns = 0;
        for (int i = 0; i < DIM; i += 2) {
            double x = (double)weights[i], y = (double)weights[i + 1];
            radii += exp(-(x * x + y * y) / 2);
            turns += atan2(y, x);
        }
        assert_true(fabs(radii / (DIM / 2) - 0.5) < 5 * 0.2887 / sqrt(DIM / 2));
        assert_true(fabs(turns / (DIM / 2)) < 5 * 1.8138 / sqrt(DIM / 2));
    }
    free(weights);
}

struct moments {
    double mean, deviation, skew, kurtosis, least, most;
};

static struct moments moments_of(const struct dp_table_spec *spec, uint64_t keys)
{
    float *weights = malloc(spec->dim * sizeof *weights);
    assert_non_null(weights);
    double s1 = 0, s2 = 0, s3 = 0, s4 = 0, n = (double)keys * spec->dim;
    struct moments m = {.least = HUGE_VAL, .most = -HUGE_VAL};
    for (uint64_t key = 0; key < keys; key++) {
        dp_init_weights(spec, key, weights);
        for (uint32_t i = 0; i < spec->dim; i++) {
            double x = (double)weights[i];
            s1 += x, s2 += x * x, s3 += x * x * x, s4 += x * x * x * x;
            m.least = fmin(m.least, x);
            m.most = fmax(m.most, x);
        }
    }
    free(weights);
    m.mean = s1 / n;
    m.deviation = sqrt(s2 / n);
    m.skew = s3 / n / pow(m.deviation, 3);
    m.kurtosis = s4 / n / pow(m.deviation, 4);
    return m;
}

static void normal_is_normal(void **state)
{
    struct dp_table_spec spec = spec_of(DP_INIT_NORMAL, 0.5f, 17);
    struct moments m = moments_of(&spec, 60000); /* 1,020,000 values */
    assert_true(fabs(m.mean) < 5 * 0.5 / 1010);
    assert_true(fabs(m.deviation / 0.5 - 1) < 5 * 0.7072 / 1010);
    assert_true(fabs(m.skew) < 5 * sqrt(15) / 1010);
    assert_true(fabs(m.kurtosis - 3) < 5 * sqrt(96) / 1010);
    /* Largest of a million: between 4.2 and 6.2 deviations but once in 10,000 seeds. */
    assert_true(m.most > 2.1 && m.most < 3.1 && m.least < -2.1 && m.least > -3.1);

    spec.init = (struct dp_init_spec){.kind = DP_INIT_HE, .fan_in = 50};
    m = moments_of(&spec, 60000);
    assert_true(fabs(m.deviation / 0.2 - 1) < 5 * 0.7072 / 1010);
}

static void uniform_fills_its_interval(void **state)
{
    struct dp_table_spec spec = spec_of(DP_INIT_UNIFORM, 0.25f, 17);
    struct moments m = moments_of(&spec, 60000);
    assert_true(fabs(m.mean) < 5 * 0.25 / sqrt(3) / 1010);
    assert_true(fabs(m.deviation * sqrt(3) / 0.25 - 1) < 5 * 0.4473 / 1010);
    assert_true(m.least >= -0.25 && m.least < -0.2499 && m.most < 0.25 && m.most > 0.2499);

    spec.init = (struct dp_init_spec){.kind = DP_INIT_XAVIER, .fan_in = UINT32_MAX, .fan_out = UINT32_MAX};
    double limit = sqrt(6.0 / (2.0 * UINT32_MAX));
    m = moments_of(&spec, 60000);
    assert_true(m.most <= limit && m.most > 0.9999 * limit && m.least > -1.0001 * limit);

    spec.init = (struct dp_init_spec){.kind = DP_INIT_ZERO};
    m = moments_of(&spec, 10);
    assert_true(m.least == 0 && m.most == 0);
}

static int by_bits(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* 200,000 keys, neighbours and multiples of powers of 2, have as many different first pairs of weights. */
static void every_key_has_values_of_its_own(void **state)
{
    enum { KEYS = 200000 };
    uint64_t *seen = malloc(KEYS * sizeof *seen);
    assert_non_null(seen);
    static const enum dp_init_kind kinds[] = {DP_INIT_NORMAL, DP_INIT_UNIFORM};
    for (int k = 0; k < 2; k++) {
        struct dp_table_spec spec = spec_of(kinds[k], 1.0f, 2);
        for (uint64_t i = 0; i < KEYS; i++) {
            float pair[2];
            dp_init_weights(&spec, i < KEYS / 2 ? i : i << 46, pair);
            memcpy(&seen[i], pair, sizeof pair);
        }
        qsort(seen, KEYS, sizeof *seen, by_bits);
        for (int i = 1; i < KEYS; i++)
            assert_true(seen[i] != seen[i - 1]);
    }
    free(seen);
}

static void seed_name_and_key_each_count(void **state)
{
    struct dp_table_spec a = spec_of(DP_INIT_NORMAL, 1.0f, 64), b = a, c = a, narrow = a;
    float first[64], second[64];
    b.seed = 8;
    memcpy(c.name, "itemt", 6);
    const struct dp_table_spec *others[] = {&b, &c, &a};
    dp_init_weights(&a, 0, first);
    for (int i = 0; i < 3; i++) {
        dp_init_weights(others[i], i == 2, second);
        double product = 0;
        for (int k = 0; k < 64; k++)
            product += (double)first[k] * (double)second[k];
        assert_true(fabs(product / 64) < 5.0 / 8); /* not correlated */
        assert_memory_not_equal(first, second, sizeof first);
    }
    /* A column does not depend on the width. */
    for (narrow.dim = 1; narrow.dim < 64; narrow.dim++) {
        dp_init_weights(&narrow, 0, second);
        assert_memory_equal(first, second, narrow.dim * sizeof *first);
    }
}

static void fresh_row_is_whole(void **state)
{
    struct dp_table_spec spec = spec_of(DP_INIT_NORMAL, 1.0f, 5);
    spec.optimizer = dp_optimizer_defaults(DP_OPT_ADAGRAD);
    spec.optimizer.accumulator = 0.125f;
    float want[5];
    dp_init_weights(&spec, 3, want);
    _Alignas(8) char row[4 + 16 + 40];
    memset(row, 0xee, sizeof row);
    dp_init_row(&spec, 3, row + 4); /* 4-byte aligned only */
    assert_true(dp_row_lsn(row + 4) == 0);
    assert_int_equal(dp_row_step(row + 4), 0);
    assert_int_equal(dp_row_format(row + 4), DP_ROW_FORMAT);
    assert_memory_equal(dp_row_weights_const(row + 4), want, sizeof want);
    for (int i = 0; i < 5; i++)
        assert_true(dp_row_weights_const(row + 4)[5 + i] == 0.125f);

    spec.dim = 2;
    spec.optimizer = dp_optimizer_defaults(DP_OPT_ADAM);
    memset(row, 0xee, sizeof row);
    dp_init_row(&spec, 3, row);
    static const char zeros[16];
    assert_memory_equal(row + 16 + 8, zeros, 16);
    assert_int_equal((unsigned char)row[dp_row_bytes(&spec)], 0xee);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_pinned),
        cmocka_unit_test(pairs_lie_evenly_around_the_origin),
        cmocka_unit_test(normal_is_normal),
        cmocka_unit_test(uniform_fills_its_interval),
        cmocka_unit_test(every_key_has_values_of_its_own),
        cmocka_unit_test(seed_name_and_key_each_count),
        cmocka_unit_test(fresh_row_is_whole),
    };
    return cmocka_run_group_tests_name("init", tests, NULL, NULL);
}
