/* optimizer: each formula against itself in float64, after one step and after 1,000; Adam's first step
 * against the paper; FTRL's start and exact zeros; what a table's settings do. Both forms, where both are
 * there. */
#include "tests/lib/test.h"

#include "common/model/init.h"
#include "common/model/optimizer.h"
#include "common/model/row.h"
#include "tests/unit/model/random.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NAIVE naive_f64
#define REAL  double
#define SQRT  sqrt
#define POW   pow
#include "tests/unit/model/naive.h"
#undef NAIVE
#undef REAL
#undef SQRT
#undef POW
#define NAIVE naive_f32
#define REAL  float
#define SQRT  sqrtf
#define POW   powf
#include "tests/unit/model/naive.h"

enum { DIM = 256 };

struct setting {
    const char *what;
    struct dp_optimizer_spec set;
    float rate;
};

static const struct setting SETTINGS[] = {
    {"sgd", {.kind = DP_OPT_SGD}, 0.05f},
    {"sgd l2", {.kind = DP_OPT_SGD, .l2 = 0.01f}, 0.05f},
    {"sgd momentum", {.kind = DP_OPT_SGD, .momentum = 0.9f, .l2 = 0.001f}, 0.01f},
    {"adagrad", {.kind = DP_OPT_ADAGRAD, .epsilon = 1e-10f}, 0.1f},
    {"adagrad l2", {.kind = DP_OPT_ADAGRAD, .epsilon = 1e-6f, .accumulator = 0.1f, .l2 = 0.01f}, 0.05f},
    {"adam", {.kind = DP_OPT_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f}, 0.001f},
    {"adam l2", {.kind = DP_OPT_ADAM, .beta1 = 0.5f, .beta2 = 0.99f, .epsilon = 1e-4f, .l2 = 0.1f}, 0.1f},
    {"adamw", {.kind = DP_OPT_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f, .decay = 0.01f}, 0.01f},
    {"adam 0", {.kind = DP_OPT_ADAM, .beta1 = 0, .beta2 = 0.9999f, .epsilon = 1e-8f}, 0.001f},
    /* The first moment is the slower one: its correction is the last to settle. */
    {"adam b1 > b2", {.kind = DP_OPT_ADAM, .beta1 = 0.999f, .beta2 = 0.9f, .epsilon = 1e-8f}, 0.001f},
    {"ftrl", {.kind = DP_OPT_FTRL, .ftrl_beta = 1}, 0.1f},
    {"ftrl l1 l2", {.kind = DP_OPT_FTRL, .ftrl_beta = 1, .l1 = 0.5f, .l2 = 1}, 0.1f},
    {"ftrl l1", {.kind = DP_OPT_FTRL, .ftrl_beta = 1, .l1 = 3}, 0.05f},
};
#define SETTINGS_LEN (sizeof SETTINGS / sizeof SETTINGS[0])

struct bench {
    struct dp_table_spec spec;
    struct dp_optimizer *optimizer;
    uint32_t slots;
    char *row;
    float *values; /* weights, slots */
};

static struct bench bench_of(const struct dp_optimizer_spec *set, uint32_t dim, enum dp_optimizer_form form)
{
    struct bench b = {.spec = {.name = "t", .dim = dim, .optimizer = *set}};
    struct dp_error err = {0};
    enum dp_status st = dp_optimizer_new(&b.spec, form, &b.optimizer, &err);
    if (st == DP_UNSUPPORTED)
        skip();
    if (st != DP_OK)
        fail_msg("%s", err.text);
    b.slots = dp_row_slots(set);
    b.row = calloc(1, dp_row_bytes(&b.spec));
    assert_non_null(b.row);
    b.values = dp_row_weights(b.row);
    dp_init_row(&b.spec, 0, b.row);
    return b;
}

static void bench_free(struct bench *b)
{
    dp_optimizer_free(&b->optimizer);
    free(b->row);
}

/* A state that pushes could have led to: slots of the sizes that gradients near `size` leave behind. */
static void random_state(uint64_t *seed, struct bench *b, double size, uint32_t t, float rate)
{
    const struct dp_optimizer_spec *set = &b->spec.optimizer;
    for (uint32_t i = 0; i < b->spec.dim; i++) {
        float *w = &b->values[i], *x = &b->values[b->spec.dim + i], *y = &b->values[2 * b->spec.dim + i];
        double usual = size * (0.5 + random_unit(seed)), n = (double)t * usual * usual;
        *w = random_log(seed, -4, 1);
        if (set->kind == DP_OPT_SGD && b->slots)
            *x = (float)(usual * (random_unit(seed) - 0.5));
        if (set->kind == DP_OPT_ADAGRAD)
            *x = (float)n;
        if (set->kind == DP_OPT_ADAM) {
            *x = (float)(usual * (random_unit(seed) - 0.5) * (1 - pow((double)set->beta1, t)));
            *y = (float)(usual * usual * (1 - pow((double)set->beta2, t)));
        }
        if (set->kind == DP_OPT_FTRL) {
            double den = ((double)set->ftrl_beta + sqrt(n)) / (double)rate + (double)set->l2;
            *x = (float)-((double)*w * den + (double)copysignf(set->l1, *w));
            *y = (float)n;
        }
    }
    dp_row_set_step(b->row, t);
}

/* The largest error of one step from states of all ages, in units of max(|w|, rate). */
static double one_step_error(const struct setting *setting, enum dp_optimizer_form form)
{
    struct bench b = bench_of(&setting->set, DIM, form);
    uint64_t seed = 11;
    double worst = 0;
    static const uint32_t ages[] = {0, 1, 2, 3, 10, 100, 1000, 10000, 17319, 17320, 65535, 65536, 1000000};
    for (int round = 0; round < 13 * 20; round++) {
        uint32_t t = ages[round % 13];
        double size = pow(10, -4 + 5 * random_unit(&seed));
        random_state(&seed, &b, size, t, setting->rate);
        float gradient[DIM];
        double want[DIM];
        for (int i = 0; i < DIM; i++) {
            /* At times a surprise: a gradient far from what the slots have seen. */
            gradient[i] = random_log(&seed, log10(size) - 1, log10(size) + (i % 8 ? 0 : 2));
            double x[2] = {0};
            want[i] = (double)b.values[i];
            for (uint32_t s = 0; s < b.slots; s++)
                x[s] = (double)b.values[(s + 1) * DIM + (uint32_t)i];
            naive_f64(&setting->set, (double)setting->rate, t + 1, (double)gradient[i], &want[i], x);
        }
        float before[DIM];
        memcpy(before, b.values, sizeof before);
        dp_optimizer_apply(b.optimizer, b.row, gradient, setting->rate);
        assert_true(dp_row_step(b.row) == t + 1);
        for (int i = 0; i < DIM; i++) {
            double weight = fmax(fabs((double)before[i]), fabs(want[i]));
            double unit = fmax(weight, (double)setting->rate);
            worst = fmax(worst, fabs((double)b.values[i] - want[i]) / unit);
        }
    }
    bench_free(&b);
    return worst;
}

static void one_step(enum dp_optimizer_form form)
{
    for (size_t i = 0; i < SETTINGS_LEN; i++) {
        double error = one_step_error(&SETTINGS[i], form);
        if (!(error <= 1e-6))
            fail_msg("%s: one step is off by %g", SETTINGS[i].what, error);
    }
}

static void portable_is_float64_after_one_step(void **state)
{
    one_step(DP_FORM_PORTABLE);
}

static void avx2_is_float64_after_one_step(void **state)
{
    one_step(DP_FORM_AVX2);
}

/* Root of the mean squared error after 1,000 steps: ours, and the plain formula's in f32. */
static void thousand_steps_error(const struct setting *setting, double *ours, double *plain)
{
    struct bench b = bench_of(&setting->set, DIM, DP_FORM_BEST);
    float w32[DIM], x32[DIM][2] = {{0}};
    double w64[DIM], x64[DIM][2] = {{0}};
    uint64_t seed = 12;
    for (int i = 0; i < DIM; i++) {
        b.values[i] = w32[i] = random_log(&seed, -2, 0);
        w64[i] = (double)w32[i];
        x32[i][0] = setting->set.accumulator; /* 0 but for Adagrad */
        x64[i][0] = (double)setting->set.accumulator;
    }
    for (uint32_t t = 1; t <= 1000; t++) {
        float gradient[DIM];
        for (int i = 0; i < DIM; i++) {
            gradient[i] = random_log(&seed, -3, 0);
            naive_f32(&setting->set, setting->rate, t, gradient[i], &w32[i], x32[i]);
            naive_f64(&setting->set, (double)setting->rate, t, (double)gradient[i], &w64[i], x64[i]);
        }
        dp_optimizer_apply(b.optimizer, b.row, gradient, setting->rate);
    }
    *ours = *plain = 0;
    for (int i = 0; i < DIM; i++) {
        *ours += pow((double)b.values[i] - w64[i], 2) / DIM;
        *plain += pow((double)w32[i] - w64[i], 2) / DIM;
    }
    *ours = sqrt(*ours);
    *plain = sqrt(*plain);
    bench_free(&b);
}

static void thousand_steps_err_no_more_than_twice_plain_f32(void **state)
{
    for (size_t i = 0; i < SETTINGS_LEN; i++) {
        double ours, plain;
        thousand_steps_error(&SETTINGS[i], &ours, &plain);
        if (!(ours <= 2 * plain && plain < 1e-3))
            fail_msg("%s: after 1,000 steps off by %g, plain f32 by %g", SETTINGS[i].what, ours, plain);
    }
}

/* Kingma and Ba 2015: at t = 1 the corrected moments are g and g^2, so the step is rate g / (|g| + epsilon).
 */
static void adams_first_step_is_the_papers(void **state)
{
    struct dp_optimizer_spec set = dp_optimizer_defaults(DP_OPT_ADAM);
    for (int form = DP_FORM_BEST; form <= DP_FORM_PORTABLE; form++) {
        struct bench b = bench_of(&set, 5, (enum dp_optimizer_form)form);
        const float gradient[5] = {3.0f, -0.02f, 1e-6f, 0.0f, -1e-8f}, rate = 0.001f;
        const double want[5] = {-0.001, 0.001, -0.001 / 1.01, 0, 0.0005};
        dp_optimizer_apply(b.optimizer, b.row, gradient, rate);
        assert_int_equal(dp_row_step(b.row), 1);
        for (int i = 0; i < 5; i++)
            assert_true(fabs((double)b.values[i] - want[i]) < 1e-6 * (double)rate);
        for (int i = 0; i < 5; i++) { /* m = 0.1 g, v = 0.001 g^2 */
            double g = (double)gradient[i];
            assert_true(fabs((double)b.values[5 + i] - 0.1 * g) <= 1e-6 * fabs(g));
            assert_true(fabs((double)b.values[10 + i] - 0.001 * g * g) <= 1e-4 * g * g);
        }
        /* The same gradient again: both moments corrected give g and g^2 again, whatever t. */
        for (int t = 2; t <= 50; t++) {
            float before = b.values[0];
            dp_optimizer_apply(b.optimizer, b.row, gradient, rate);
            assert_true(fabs((double)before - (double)b.values[0] - 0.001) < 1e-7);
        }
        assert_int_equal(dp_row_step(b.row), 50);
        bench_free(&b);
    }
}

static void step_count_stays_at_its_end(void **state)
{
    struct dp_optimizer_spec set = dp_optimizer_defaults(DP_OPT_ADAM);
    struct bench b = bench_of(&set, 1, DP_FORM_BEST);
    const float gradient = 1.0f;
    dp_row_set_step(b.row, UINT32_MAX - 1);
    dp_row_set_lsn(b.row, 41);
    dp_optimizer_apply(b.optimizer, b.row, &gradient, 0.1f);
    dp_optimizer_apply(b.optimizer, b.row, &gradient, 0.1f);
    assert_true(dp_row_step(b.row) == UINT32_MAX && dp_row_lsn(b.row) == 41);
    assert_true(isfinite(b.values[0]));
    bench_free(&b);
}

/* Decay is decoupled: with a gradient of 0 the weight shrinks by rate * decay and the moments stay 0. */
static void adamw_decays_beside_the_moments(void **state)
{
    struct dp_optimizer_spec set = dp_optimizer_defaults(DP_OPT_ADAM);
    set.decay = 0.5f;
    struct bench b = bench_of(&set, 1, DP_FORM_BEST);
    const float gradient = 0.0f;
    b.values[0] = 8.0f;
    dp_optimizer_apply(b.optimizer, b.row, &gradient, 0.25f);
    assert_true(b.values[0] == 7.0f && b.values[1] == 0 && b.values[2] == 0);
    bench_free(&b);
}

/* A count kept by SGD at rate 1 is exact: ledgers stand on it. */
static void sgd_counts_exactly(void **state)
{
    struct dp_optimizer_spec set = dp_optimizer_defaults(DP_OPT_SGD);
    struct bench b = bench_of(&set, 3, DP_FORM_BEST);
    const float gradient[3] = {-1, -1, -1};
    for (int i = 0; i < 100000; i++)
        dp_optimizer_apply(b.optimizer, b.row, gradient, 1.0f);
    assert_true(b.values[0] == 100000 && b.values[2] == 100000);
    bench_free(&b);
}

/* The closed form at the first push's z and n = 0 is the initial weight: a gradient of 0 leaves it there. */
static void ftrl_starts_at_the_initial_weight(void **state)
{
    struct dp_optimizer_spec set = {.kind = DP_OPT_FTRL, .ftrl_beta = 1, .l1 = 0.25f, .l2 = 0.5f};
    for (int form = DP_FORM_BEST; form <= DP_FORM_PORTABLE; form++) {
        struct bench b = bench_of(&set, 4, (enum dp_optimizer_form)form);
        const float start[4] = {0.125f, -0.03f, 0.0f, 2.0f}, none[4] = {0};
        memcpy(b.values, start, sizeof start);
        dp_optimizer_apply(b.optimizer, b.row, none, 0.5f);
        for (int i = 0; i < 4; i++) {
            double z = start[i] != 0 ? -((double)start[i] * 2.5 + (double)copysignf(0.25f, start[i])) : 0;
            assert_true(fabs((double)b.values[i] - (double)start[i]) <= 1.2e-7);
            assert_true(fabs((double)b.values[4 + i] - z) <= 1e-6);
            assert_true(b.values[8 + i] == 0);
        }
        /* From the second push on z is the row's own. */
        memcpy(b.values, none, sizeof none);
        dp_optimizer_apply(b.optimizer, b.row, none, 0.5f);
        assert_true(fabs((double)b.values[0] - 0.125) < 1e-6);
        bench_free(&b);
    }
}

/* Coordinates without signal end at exactly 0, those with a signal do not; float64 agrees which. */
static void ftrls_l1_gives_exact_zeros(void **state)
{
    struct dp_optimizer_spec set = {.kind = DP_OPT_FTRL, .ftrl_beta = 1, .l1 = 5};
    for (int form = DP_FORM_BEST; form <= DP_FORM_PORTABLE; form++) {
        struct bench b = bench_of(&set, DIM, (enum dp_optimizer_form)form);
        double w[DIM] = {0}, x[DIM][2] = {{0}};
        uint64_t seed = 13;
        int zeros = 0;
        for (uint32_t t = 1; t <= 200; t++) {
            float gradient[DIM];
            for (int i = 0; i < DIM; i++) {
                gradient[i] = (float)(random_unit(&seed) - 0.5 + (i % 2 ? 0.25 : 0)) * 0.25f;
                naive_f64(&set, 0.1, t, (double)gradient[i], &w[i], x[i]);
            }
            dp_optimizer_apply(b.optimizer, b.row, gradient, 0.1f);
        }
        for (int i = 0; i < DIM; i++) {
            uint32_t bits;
            memcpy(&bits, &b.values[i], sizeof bits);
            assert_true((bits == 0) == (w[i] == 0));
            assert_true((i % 2 == 0) == (bits == 0));
            assert_true(fabs((double)b.values[i] - w[i]) < 1e-5);
            zeros += bits == 0;
        }
        assert_int_equal(zeros, DIM / 2);
        bench_free(&b);
    }
}

/* One push, then pushes of 0 until both means are gone: no value is ever subnormal (each operation on one costs a
 * hundred times as much), they end at 0, and the weight is float64's throughout. */
static void means_end_at_zero(void **state)
{
    static const struct dp_optimizer_spec sets[] = {
        {.kind = DP_OPT_SGD, .momentum = 0.9f},
        {.kind = DP_OPT_ADAM, .beta1 = 0.9f, .beta2 = 0.99f, .epsilon = 1e-8f},
        {.kind = DP_OPT_ADAM, .beta1 = 0.9f, .beta2 = 0.99f, .epsilon = 1e-15f},
    };
    for (uint32_t at = 0; at < 6; at++) {
        struct bench b = bench_of(&sets[at / 2], DIM, at % 2 ? DP_FORM_BEST : DP_FORM_PORTABLE);
        double w[DIM], x[DIM][2] = {{0}};
        float gradient[DIM];
        for (int i = 0; i < DIM; i++) {
            w[i] = (double)(b.values[i] = 0.5f);
            gradient[i] = (float)(i - 100) * 0.01f;
        }
        for (uint32_t t = 1; t <= 12000; t++) {
            dp_optimizer_apply(b.optimizer, b.row, gradient, 0.01f);
            for (uint32_t i = 0; i < DIM * (1 + b.slots); i++)
                assert_true(fpclassify(b.values[i]) != FP_SUBNORMAL);
            for (int i = 0; i < DIM; i++) {
                naive_f64(&sets[at / 2], 0.01, t, (double)gradient[i], &w[i], x[i]);
                assert_true(fabs((double)b.values[i] - w[i]) < 1e-5);
            }
            memset(gradient, 0, sizeof gradient);
        }
        for (uint32_t i = DIM; i < DIM * (1 + b.slots); i++)
            assert_true(b.values[i] == 0);
        bench_free(&b);
    }
}

static void forms_are_what_was_asked_for(void **state)
{
    struct dp_table_spec spec = {.name = "t", .dim = 0};
    struct dp_optimizer *optimizer = (struct dp_optimizer *)&spec;
    struct dp_error err = {0};
    assert_int_equal(dp_optimizer_new(&spec, DP_FORM_BEST, &optimizer, &err), DP_ARGUMENT);
    assert_null(optimizer);
    dp_optimizer_free(&optimizer);
    spec.dim = 1;
    assert_int_equal(dp_optimizer_new(&spec, DP_FORM_BEST, &optimizer, &err), DP_OK);
    dp_optimizer_free(&optimizer);
    assert_null(optimizer);
}

/* Planted: freed with the first; taken although beta2 differs. */
static void equal_optimizers_share_corrections(void **state)
{
    struct dp_error err = {0};
    const struct dp_optimizer_spec set = dp_optimizer_defaults(DP_OPT_ADAM);
    struct dp_optimizer_spec other = set;
    other.beta2 = 0.99f;
    struct bench own = bench_of(&set, 8, DP_FORM_BEST), far = bench_of(&other, 8, DP_FORM_BEST);
    const float gradient[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct dp_optimizer *first, *second, *third;
    assert_int_equal(dp_optimizer_new(&own.spec, DP_FORM_BEST, &first, &err), DP_OK);
    assert_int_equal(dp_optimizer_new_like(&own.spec, DP_FORM_BEST, first, &second, &err), DP_OK);
    assert_int_equal(dp_optimizer_new_like(&far.spec, DP_FORM_BEST, first, &third, &err), DP_OK);
    dp_optimizer_free(&first);
    char *row[2] = {calloc(1, dp_row_bytes(&own.spec)), calloc(1, dp_row_bytes(&far.spec))};
    assert_true(row[0] && row[1]);
    dp_init_row(&own.spec, 0, row[0]);
    dp_init_row(&far.spec, 0, row[1]);
    for (int step = 0; step < 5; step++) {
        (void)dp_optimizer_apply(own.optimizer, own.row, gradient, 0.1f);
        (void)dp_optimizer_apply(second, row[0], gradient, 0.1f);
        (void)dp_optimizer_apply(far.optimizer, far.row, gradient, 0.1f);
        (void)dp_optimizer_apply(third, row[1], gradient, 0.1f);
    }
    assert_memory_equal(row[0], own.row, dp_row_bytes(&own.spec));
    assert_memory_equal(row[1], far.row, dp_row_bytes(&far.spec));
    dp_optimizer_free(&second);
    dp_optimizer_free(&third);
    free(row[0]);
    free(row[1]);
    bench_free(&own);
    bench_free(&far);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(portable_is_float64_after_one_step),
        cmocka_unit_test(avx2_is_float64_after_one_step),
        cmocka_unit_test(thousand_steps_err_no_more_than_twice_plain_f32),
        cmocka_unit_test(adams_first_step_is_the_papers),
        cmocka_unit_test(step_count_stays_at_its_end),
        cmocka_unit_test(adamw_decays_beside_the_moments),
        cmocka_unit_test(sgd_counts_exactly),
        cmocka_unit_test(ftrl_starts_at_the_initial_weight),
        cmocka_unit_test(ftrls_l1_gives_exact_zeros),
        cmocka_unit_test(means_end_at_zero),
        cmocka_unit_test(forms_are_what_was_asked_for),
        cmocka_unit_test(equal_optimizers_share_corrections),
    };
    return cmocka_run_group_tests_name("optimizer", tests, NULL, NULL);
}
