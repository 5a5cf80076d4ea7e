/* optimizer forms: AVX2 and portable give equal bits for every optimizer, every width of 1 .. 67 and 256, any
 * alignment of the gradient, any hyperparameters and step count; nothing beyond row and gradient is touched.
 */
#include "tests/lib/test.h"

#include "common/base/status.h"
#include "common/model/optimizer_forms.h"
#include "tests/unit/model/random.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A hyperparameter of 0 half the time, or spread over powers of ten. */
static float some(uint64_t *seed, double low, double high)
{
    return random_u64(seed) & 1 ? fabsf(random_log(seed, low, high)) : 0;
}

static struct dp_table_spec random_spec(uint64_t *seed, enum dp_optimizer_kind kind, uint32_t dim)
{
    struct dp_table_spec spec = {.name = "t", .dim = dim};
    struct dp_optimizer_spec *set = &spec.optimizer;
    *set = dp_optimizer_defaults(kind);
    set->l2 = some(seed, -8, 1);
    if (kind == DP_OPT_SGD)
        set->momentum = random_u64(seed) & 1 ? (float)random_unit(seed) * 0.99f : 0;
    if (kind == DP_OPT_ADAGRAD)
        set->accumulator = some(seed, -6, 1);
    if (kind == DP_OPT_ADAM) {
        set->decay = some(seed, -6, 0);
        /* The last two fill the table of corrections and need more: rare, because it takes milliseconds. */
        static const float betas[] = {0, 0.5f, 0.9f, 0.999f, 0.99999f, 0x1.fffffep-1f};
        set->beta1 = betas[random_u64(seed) % (random_u64(seed) % 16 ? 4 : 6)];
        set->beta2 = betas[random_u64(seed) % (random_u64(seed) % 16 ? 4 : 6)];
        set->epsilon = fabsf(random_log(seed, -14, 1));
    }
    if (kind == DP_OPT_FTRL) {
        set->l1 = random_u64(seed) & 3 ? some(seed, -6, 1) : -0.0f;
        set->ftrl_beta = fabsf(random_log(seed, -8, 1));
    }
    return spec;
}

/* Ordinary numbers, zeros of both signs, subnormals, and (wild) ones whose squares overflow. */
static float random_value(uint64_t *seed, bool wild)
{
    switch (random_u64(seed) % 16) {
    case 0:
        return 0.0f;
    case 1:
        return -0.0f;
    case 2:
        return random_log(seed, -44, -37);
    case 3:
        return wild ? random_log(seed, 15, 38) : 1.0f;
    default:
        return random_log(seed, -6, 1);
    }
}

static void random_row(uint64_t *seed, const struct dp_table_spec *spec, void *row, bool wild)
{
    static const uint32_t steps[] = {0,     1,     2,     100,      17000,          17319,     17320,
                                     65534, 65535, 65536, 1u << 20, UINT32_MAX - 1, UINT32_MAX};
    float *values = dp_row_weights(row);
    size_t dim = spec->dim, len = dim * (1 + dp_row_slots(&spec->optimizer));
    for (size_t i = 0; i < len; i++)
        values[i] = random_value(seed, wild);
    /* Sums of squares are not negative: the last slot of all but SGD. */
    for (size_t i = len - dim; i < len && spec->optimizer.kind != DP_OPT_SGD; i++)
        values[i] = fabsf(values[i]);
    dp_row_set_lsn(row, 77);
    dp_row_set_step(row, steps[random_u64(seed) % (sizeof steps / sizeof steps[0])]);
    dp_store_u32le((char *)row + 12, DP_ROW_FORMAT);
}

/* Exact blocks of the heap, so that the address sanitizer sees a byte too many. */
static void agree(uint64_t *seed, const struct dp_table_spec *spec, const struct dp_optimizer *portable,
                  const struct dp_optimizer *avx2, bool wild)
{
    size_t bytes = dp_row_bytes(spec), shift = random_u64(seed) % 16;
    char *one = malloc(4 + bytes), *two = malloc(4 + bytes), *block = malloc(shift + spec->dim * 4);
    assert_true(one && two && block);
    char *gradient = block + shift;
    random_row(seed, spec, one + 4, wild); /* off every vector's alignment */
    memcpy(two + 4, one + 4, bytes);
    uint32_t step = dp_row_step(one + 4);
    for (int push = 0; push < 3; push++) {
        for (uint32_t i = 0; i < spec->dim; i++) {
            float value = random_value(seed, wild);
            memcpy(gradient + (size_t)i * 4, &value, 4);
        }
        float rate = fabsf(random_log(seed, -6, 1));
        dp_optimizer_apply(portable, one + 4, gradient, rate);
        dp_optimizer_apply(avx2, two + 4, gradient, rate);
        assert_memory_equal(one + 4, two + 4, bytes);
        step += step < UINT32_MAX;
        assert_true(dp_row_step(one + 4) == step && dp_row_lsn(one + 4) == 77 &&
                    dp_row_format(one + 4) == DP_ROW_FORMAT);
    }
    free(one);
    free(two);
    free(block);
}

static void check_forms(enum dp_optimizer_kind kind, bool wild)
{
    uint64_t seed = 100 + (uint64_t)kind;
    for (uint32_t dim = 1; dim <= 68; dim++) {
        for (int settings = 0; settings < 8; settings++) {
            struct dp_table_spec spec = random_spec(&seed, kind, dim == 68 ? 256 : dim);
            struct dp_error err = {0};
            struct dp_optimizer *portable = NULL, *avx2 = NULL;
            enum dp_status st = dp_optimizer_new(&spec, DP_FORM_AVX2, &avx2, &err);
            if (st == DP_UNSUPPORTED) {
                print_message("no AVX2 with FMA here: nothing to compare\n");
                skip();
            }
            assert_int_equal(st, DP_OK);
            assert_int_equal(dp_optimizer_new(&spec, DP_FORM_PORTABLE, &portable, &err), DP_OK);
            for (int row = 0; row < 8; row++)
                agree(&seed, &spec, portable, avx2, wild);
            dp_optimizer_free(&portable);
            dp_optimizer_free(&avx2);
        }
    }
}

static void forms_of_every_optimizer_agree(void **state)
{
    static const enum dp_optimizer_kind kinds[] = {DP_OPT_SGD, DP_OPT_ADAGRAD, DP_OPT_ADAM, DP_OPT_FTRL};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        print_message("%s\n", dp_optimizer_name(kinds[i]));
        check_forms(kinds[i], false);
        check_forms(kinds[i], true);
    }
}

/* A call for many rows is one for each of them, in the portable form: whatever rows it leaves out, and
 * whether values are beyond their bound. Rows are exact blocks of the heap. */
static void check_rows(uint64_t *seed, const struct dp_table_spec *spec, bool wild)
{
    enum { ROWS = 32 };
    const size_t bytes = dp_row_bytes(spec), width = (size_t)spec->dim * 4;
    struct dp_optimizer *portable = NULL, *best = NULL;
    void *one[ROWS], *many[ROWS], *called[ROWS];
    char *gradients = malloc(ROWS * width);
    uint32_t bounded = 0;
    float rate = fabsf(random_log(seed, -6, 1));
    assert_int_equal(dp_optimizer_new(spec, DP_FORM_PORTABLE, &portable, NULL), DP_OK);
    assert_int_equal(dp_optimizer_new_like(spec, DP_FORM_BEST, portable, &best, NULL), DP_OK);
    assert_non_null(gradients);
    for (size_t r = 0; r < ROWS; r++) {
        one[r] = malloc(bytes);
        many[r] = malloc(bytes);
        assert_true(one[r] && many[r]);
        random_row(seed, spec, one[r], wild);
        memcpy(many[r], one[r], bytes);
        called[r] = random_u64(seed) % 8 == 0 ? NULL : many[r];
        for (size_t i = 0; i < spec->dim; i++) {
            float value = random_value(seed, wild);
            memcpy(gradients + r * width + i * 4, &value, 4);
        }
        bounded += called[r] && dp_optimizer_apply(portable, one[r], gradients + r * width, rate);
    }
    assert_int_equal(dp_optimizer_apply_rows(best, called, ROWS, gradients, rate), bounded);
    for (size_t r = 0; r < ROWS; r++) {
        assert_memory_equal(one[r], many[r], bytes);
        free(one[r]);
        free(many[r]);
    }
    free(gradients);
    dp_optimizer_free(&portable);
    dp_optimizer_free(&best);
}

static void many_rows_are_each_of_them(void **state)
{
    static const enum dp_optimizer_kind kinds[] = {DP_OPT_SGD, DP_OPT_ADAGRAD, DP_OPT_ADAM, DP_OPT_FTRL};
    uint64_t seed = 7;
    for (uint32_t dim = 1; dim <= 40; dim++)
        for (uint32_t i = 0; i < 40; i++) { /* 51,200 rows in all */
            struct dp_table_spec spec = random_spec(&seed, kinds[i % 4], dim);
            check_rows(&seed, &spec, i / 4 % 2);
        }
}

/* The table of Adam's corrections, and what stands for it behind its end, are the formula's to the last bit that an f32 rate can
 * show, at each step, whichever of the two means is the slower one. */
static void adams_corrections_hold_at_each_step(void **state)
{
    static const float betas[][2] = {{0.9f, 0.999f}, {0.999f, 0.9f}, {0.999f, 0.999f}, {0, 0.99f},
                                     {0.99f, 0},     {0, 0},         {0.9f, 0.99999f}, {0.99999f, 0.9f}};
    for (size_t i = 0; i < sizeof betas / sizeof betas[0]; i++) {
        struct dp_table_spec spec = {.name = "t", .dim = 1, .optimizer = dp_optimizer_defaults(DP_OPT_ADAM)};
        struct dp_optimizer *optimizer = NULL;
        spec.optimizer.beta1 = betas[i][0];
        spec.optimizer.beta2 = betas[i][1];
        assert_int_equal(dp_optimizer_new(&spec, DP_FORM_PORTABLE, &optimizer, NULL), DP_OK);
        for (uint32_t step = 1; step < 70000; step++) {
            struct dp_adam adam = dp_adam_of(optimizer, 1.0f);
            dp_adam_correct(optimizer, step, 1.0f, &adam);
            struct dp_correction want = dp_correction_at(&spec.optimizer, step);
            double scale = fabs((double)-adam.minus_rate / want.scale - 1);
            double epsilon = fabs((double)adam.epsilon / (double)want.epsilon - 1);
            if (!(scale <= 0x1p-24 && epsilon <= 0x1p-24))
                fail_msg("beta1 %g, beta2 %g: step %u is off by %g and %g", (double)betas[i][0],
                         (double)betas[i][1], step, scale, epsilon);
        }
        dp_optimizer_free(&optimizer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_of_every_optimizer_agree),
        cmocka_unit_test(many_rows_are_each_of_them),
        cmocka_unit_test(adams_corrections_hold_at_each_step),
    };
    return cmocka_run_group_tests_name("optimizer forms", tests, NULL, NULL);
}
