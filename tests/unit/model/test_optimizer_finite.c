/* optimizer, finite: whatever finite row, finite hyperparameters, gradient without NaN and rate come in, a finite row comes
 * out, in both forms the same; arithmetic that does not overflow is not touched; what is bounded is reported. */
#include "tests/lib/test.h"

#include "common/base/status.h"
#include "common/model/optimizer_forms.h"
#include "tests/unit/model/random.h"

#include <float.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 11 };

struct pair {
    struct dp_optimizer *form[2]; /* portable; AVX2 where it is there, else portable */
    char *row[2];
    size_t bytes, floats;
};

static struct pair pair_of(const struct dp_optimizer_spec *set)
{
    struct dp_table_spec spec = {.name = "t", .dim = DIM, .optimizer = *set};
    struct pair p = {.bytes = dp_row_bytes(&spec), .floats = DIM * (size_t)(1 + dp_row_slots(set))};
    struct dp_error err = {0};
    for (int f = 0; f < 2; f++) {
        if (dp_optimizer_new(&spec, f ? DP_FORM_BEST : DP_FORM_PORTABLE, &p.form[f], &err) != DP_OK)
            fail_msg("%s", err.text);
        p.row[f] = calloc(1, p.bytes);
        assert_non_null(p.row[f]);
    }
    return p;
}

static void pair_free(struct pair *p)
{
    for (int f = 0; f < 2; f++) {
        dp_optimizer_free(&p->form[f]);
        free(p->row[f]);
    }
}

/* Returns what the forms report. */
static bool apply(struct pair *p, const float *gradient, float rate)
{
    bool hit = dp_optimizer_apply(p->form[0], p->row[0], gradient, rate);
    assert_true(dp_optimizer_apply(p->form[1], p->row[1], gradient, rate) == hit);
    assert_memory_equal(p->row[0], p->row[1], p->bytes);
    return hit;
}

static struct dp_optimizer_spec momentum(void)
{
    struct dp_optimizer_spec set = dp_optimizer_defaults(DP_OPT_SGD);
    set.momentum = 0.9f;
    return set;
}

static void all_of(float *gradient, float value)
{
    for (int i = 0; i < DIM; i++)
        gradient[i] = value;
}

/* The row of the issue: two pushes of 3e38 at rate 1. What it says afterwards is still a direction to come back from. */
static void two_pushes_of_3e38_leave_a_row_that_trains_on(void **state)
{
    struct dp_optimizer_spec sets[] = {
        dp_optimizer_defaults(DP_OPT_SGD), momentum(), dp_optimizer_defaults(DP_OPT_ADAGRAD),
        dp_optimizer_defaults(DP_OPT_ADAM), dp_optimizer_defaults(DP_OPT_FTRL)};
    for (size_t s = 0; s < sizeof sets / sizeof sets[0]; s++) {
        struct pair p = pair_of(&sets[s]);
        const float *values = dp_row_weights(p.row[0]);
        float gradient[DIM];
        all_of(gradient, 3e38f);
        bool first = apply(&p, gradient, 1.0f), second = apply(&p, gradient, 1.0f);
        assert_true(first == (sets[s].kind != DP_OPT_SGD) &&
                    second); /* SGD: 3e38 itself is finite, twice that is not */
        assert_true(dp_all_finite_f32(values, p.floats));
        float before = values[0];
        assert_true(before < 0);
        if (sets[s].kind == DP_OPT_SGD)
            assert_true(before == -FLT_MAX);
        if (sets[s].kind == DP_OPT_ADAM ||
            sets[s].kind == DP_OPT_ADAGRAD) /* their steps are of the rate's size */
            assert_true(before >= -3.0f);
        all_of(gradient, -3e38f);
        for (int i = 0; i < 40; i++)
            (void)apply(&p, gradient, 1.0f);
        assert_true(values[0] > before && dp_all_finite_f32(values, p.floats));
        pair_free(&p);
    }
}

static float extreme(uint64_t *seed)
{
    static const float values[] = {0,       -0.0f,    1,       -1,     FLT_MAX, -FLT_MAX,
                                   FLT_MIN, -FLT_MIN, 1e-45f,  3e38f,  -3e38f,  1.8446743e19f,
                                   1.9e19f, -1.9e19f, 5.8e20f, 1e-20f, -1e30f,  0x1p-120f};
    return random_u64(seed) % 4 ? values[random_u64(seed) % (sizeof values / sizeof values[0])]
                                : random_log(seed, -40, 38);
}

/* In the range that table.c allows, its ends among them. */
static float extreme_setting(uint64_t *seed, float least)
{
    float value = fabsf(extreme(seed));
    return value < least ? least : value;
}

static struct dp_optimizer_spec extreme_set(uint64_t *seed, enum dp_optimizer_kind kind)
{
    static const float below_1[] = {0, 0.5f, 0.9f, 0.999f, 0.3f, 0x1.fffffep-1f};
    struct dp_optimizer_spec set = dp_optimizer_defaults(kind);
    set.l2 = random_u64(seed) & 1 ? extreme_setting(seed, 0) : 0;
    if (kind == DP_OPT_SGD)
        set.momentum = below_1[random_u64(seed) % 6];
    if (kind == DP_OPT_ADAM) {
        set.beta1 = below_1[random_u64(seed) % 5];
        set.beta2 = below_1[random_u64(seed) % 5];
        set.decay = random_u64(seed) & 1 ? extreme_setting(seed, 0) : 0;
    }
    if (kind == DP_OPT_ADAM || kind == DP_OPT_ADAGRAD)
        set.epsilon = extreme_setting(seed, 1e-15f);
    if (kind == DP_OPT_FTRL) {
        set.ftrl_beta = extreme_setting(seed, 1e-15f);
        set.l1 = extreme_setting(seed, 0);
    }
    return set;
}

static void a_row_that_comes_out_is_finite(void **state)
{
    for (uint64_t seed = 1; seed <= 4000; seed++) {
        uint64_t random = seed;
        enum dp_optimizer_kind kind = (enum dp_optimizer_kind)(seed % 4);
        struct dp_optimizer_spec set = extreme_set(&random, kind);
        struct pair p = pair_of(&set);
        float *values = dp_row_weights(p.row[0]);
        for (size_t i = 0; i < p.floats; i++)
            values[i] = extreme(&random);
        for (size_t i = p.floats - DIM; kind != DP_OPT_SGD && i < p.floats; i++)
            values[i] = fabsf(values[i]); /* sums of squares */
        dp_row_set_step(p.row[0], random_u64(&random) % 3 ? 0 : (uint32_t)(random_u64(&random) % 30000));
        memcpy(p.row[1], p.row[0], p.bytes);
        for (int push = 0; push < 8; push++) {
            float gradient[DIM], rate = extreme_setting(&random, FLT_MIN);
            for (int i = 0; i < DIM; i++) /* a sum of pushes may overflow */
                gradient[i] =
                    random_u64(&random) % 16 ? extreme(&random) : copysignf(INFINITY, extreme(&random));
            (void)apply(&p, gradient, rate);
            if (!dp_all_finite_f32(values, p.floats))
                fail_msg("seed %u: push %d to a row of %s leaves a value that is not finite", (unsigned)seed,
                         push, dp_optimizer_name(kind));
        }
        pair_free(&p);
    }
}

/* A row of an older store heals with its next push, and the forms agree how. */
static void a_row_that_is_not_finite_becomes_finite(void **state)
{
    static const float wild[] = {INFINITY, -INFINITY, NAN};
    for (int kind = DP_OPT_SGD; kind <= DP_OPT_FTRL; kind++)
        for (int w = 0; w < 3; w++) {
            struct dp_optimizer_spec set = dp_optimizer_defaults((enum dp_optimizer_kind)kind);
            struct pair p = pair_of(&set);
            float gradient[DIM];
            all_of(gradient, 1);
            for (int f = 0; f < 2; f++) {
                float *values = dp_row_weights(p.row[f]);
                for (size_t i = 0; i < p.floats; i++)
                    values[i] = wild[w];
                dp_row_set_step(p.row[f], 5);
            }
            assert_true(apply(&p, gradient, 0.1f));
            assert_true(dp_all_finite_f32(dp_row_weights(p.row[0]), p.floats));
            pair_free(&p);
        }
}

/* The bound is the first gradient whose square is infinite, not one less: below it nothing differs from the plain formula. */
static void the_bound_of_a_gradient_is_exact(void **state)
{
    static const float beta2s[] = {0, 0.5f, 0.9f, 0.999f, 0.3f, 0x1.fffffep-1f};
    for (int i = 0; i < 8; i++) {
        struct dp_optimizer_spec set = dp_optimizer_defaults(i == 6   ? DP_OPT_ADAGRAD
                                                             : i == 7 ? DP_OPT_FTRL
                                                                      : DP_OPT_ADAM);
        if (i < 6)
            set.beta2 = beta2s[i];
        float weight = i < 6 ? 1.0f - set.beta2 : 1.0f, gradient[DIM];
        struct pair p = pair_of(&set);
        float most = p.form[0]->gradient_max, above = nextafterf(most, INFINITY);
        assert_true(isfinite(weight * most * most) && isinf(weight * above * above));
        const float *squares = dp_row_weights(p.row[0]) + p.floats - DIM;
        all_of(gradient, -most);
        assert_false(apply(&p, gradient, 0.01f));
        assert_true(squares[0] == weight * most * most);
        pair_free(&p);
        p = pair_of(&set);
        all_of(gradient, above);
        assert_true(apply(&p, gradient, 0.01f));
        assert_true(dp_row_weights(p.row[0])[p.floats - DIM] == weight * most * most);
        pair_free(&p);
    }
}

/* Scalars of a call that overflow: infinity times 0 is NaN, which would move a weight that has no gradient. */
static void the_largest_rate_moves_nothing_without_a_gradient(void **state)
{
    for (int decays = 0; decays < 2; decays++) {
        struct dp_optimizer_spec set = dp_optimizer_defaults(DP_OPT_ADAM);
        set.beta1 = 0.9999f;
        set.beta2 = 0;
        set.decay = decays ? 2 : 0;
        struct pair p = pair_of(&set);
        const float gradient[DIM] = {0};
        assert_false(apply(&p, gradient, FLT_MAX));
        for (size_t i = 0; i < p.floats; i++)
            assert_true(dp_row_weights(p.row[0])[i] == 0);
        pair_free(&p);
    }
}

/* One coordinate of each place, the last ones behind whole blocks too, and each slot. */
static void one_bounded_value_is_reported(void **state)
{
    for (int kind = DP_OPT_SGD; kind <= DP_OPT_FTRL; kind++)
        for (int at = 0; at < DIM; at++) {
            struct dp_optimizer_spec set =
                kind == DP_OPT_SGD ? momentum() : dp_optimizer_defaults((enum dp_optimizer_kind)kind);
            struct pair p = pair_of(&set);
            float gradient[DIM];
            all_of(gradient, 0.5f);
            assert_false(apply(&p, gradient, 0.1f));
            gradient[at] = INFINITY;
            assert_true(apply(&p, gradient, 0.1f));
            gradient[at] = 0.5f;
            for (int f = 0; f < 2; f++)
                dp_row_weights(p.row[f])[p.floats - DIM + (size_t)at] = kind == DP_OPT_SGD ? -1 : INFINITY;
            assert_true(apply(&p, gradient, 0.1f) == (kind != DP_OPT_SGD));
            pair_free(&p);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_pushes_of_3e38_leave_a_row_that_trains_on),
        cmocka_unit_test(a_row_that_comes_out_is_finite),
        cmocka_unit_test(a_row_that_is_not_finite_becomes_finite),
        cmocka_unit_test(the_bound_of_a_gradient_is_exact),
        cmocka_unit_test(the_largest_rate_moves_nothing_without_a_gradient),
        cmocka_unit_test(one_bounded_value_is_reported),
    };
    return cmocka_run_group_tests_name("optimizer finite", tests, NULL, NULL);
}
