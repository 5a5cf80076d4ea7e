/* Goal    the rate of a step is what rate.h's formulas say, at each end and in the middle.
 * Method  the formulas, written down again in the test as numbers.                                       */
#include "tests/lib/test.h"
#include "worker/schedule/rate.h"

#include <math.h>

static struct dp_rate schedule(enum dp_decay decay, uint64_t warmup, uint64_t steps, double end)
{
    const struct dp_cluster_training training = {
        .rate = 0.5, .rate_end = end, .decay = decay, .warmup_steps = warmup};
    return dp_rate_of(&training, steps);
}

static void assert_rate(const struct dp_rate *rate, uint64_t step, double want)
{
    double have = (double)dp_rate_at(rate, step);
    if (fabs(have - want) > 1e-6)
        fail_msg("step %llu: %.9g instead of %.9g", (unsigned long long)step, have, want);
}

static void test_none(void **state)
{
    struct dp_rate rate = schedule(DP_DECAY_NONE, 0, 100, 0);
    assert_rate(&rate, 0, 0.5);
    assert_rate(&rate, 99, 0.5);
}

static void test_warmup(void **state)
{
    struct dp_rate rate = schedule(DP_DECAY_NONE, 10, 100, 0);
    assert_rate(&rate, 0, 0.05);
    assert_rate(&rate, 4, 0.25);
    assert_rate(&rate, 9, 0.5);
    assert_rate(&rate, 10, 0.5);
}

static void test_linear(void **state)
{
    struct dp_rate rate = schedule(DP_DECAY_LINEAR, 20, 120, 0.1);
    assert_rate(&rate, 20, 0.5);
    assert_rate(&rate, 70, 0.3);
    assert_rate(&rate, 119, 0.104);
    assert_rate(&rate, 120, 0.1);
    assert_rate(&rate, 500, 0.1); /* past the end it stays */
}

static void test_cosine(void **state)
{
    struct dp_rate rate = schedule(DP_DECAY_COSINE, 0, 100, 0.1);
    assert_rate(&rate, 0, 0.5);
    assert_rate(&rate, 25, 0.1 + 0.4 * 0.5 * (1 + sqrt(0.5)));
    assert_rate(&rate, 50, 0.3);
    assert_rate(&rate, 100, 0.1);
}

static void test_inverse_sqrt(void **state)
{
    struct dp_rate rate = schedule(DP_DECAY_INVERSE_SQRT, 100, 1000, 0);
    assert_rate(&rate, 99, 0.5);
    assert_rate(&rate, 100, 0.5);
    assert_rate(&rate, 400, 0.25);
    rate = schedule(DP_DECAY_INVERSE_SQRT, 0, 1000, 0);
    assert_rate(&rate, 0, 0.5);
    assert_rate(&rate, 3, 0.25);
}

/* Two epochs after three: the last two of five, if earlier runs count; else the first two of two. */
static void test_further_run(void **state)
{
    struct dp_cluster_training training = {
        .rate = 0.5, .rate_end = 0.1, .decay = DP_DECAY_LINEAR, .warmup_steps = 20, .epochs = 5};
    const struct dp_rate once = dp_rate_of(&training, 50);
    training.epochs = 2;
    const struct dp_rate restarted = dp_rate_of(&training, 20);
    training.first_epoch = 3;
    struct dp_rate further = dp_rate_of(&training, 20);
    for (uint64_t step = 0; step < 20; step++)
        assert_rate(&further, step, (double)dp_rate_at(&restarted, step));
    training.schedule = DP_SCHEDULE_CONTINUE;
    further = dp_rate_of(&training, 20);
    for (uint64_t step = 0; step < 20; step++)
        assert_rate(&further, step, (double)dp_rate_at(&once, 30 + step));
}

/* A push is refused without a rate above 0: also where the formula gives 0, or the warm-up outlasts all. */
static void test_never_zero(void **state)
{
    const enum dp_decay kinds[] = {DP_DECAY_NONE, DP_DECAY_LINEAR, DP_DECAY_COSINE, DP_DECAY_INVERSE_SQRT};
    for (size_t k = 0; k < 4; k++) {
        for (uint64_t warmup = 0; warmup <= 30; warmup += 5) {
            struct dp_rate rate = schedule(kinds[k], warmup, 20, 0);
            for (uint64_t step = 0; step <= 20; step++)
                assert_true(dp_rate_at(&rate, step) > 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none),         cmocka_unit_test(test_warmup),
        cmocka_unit_test(test_linear),       cmocka_unit_test(test_cosine),
        cmocka_unit_test(test_inverse_sqrt), cmocka_unit_test(test_never_zero),
        cmocka_unit_test(test_further_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
