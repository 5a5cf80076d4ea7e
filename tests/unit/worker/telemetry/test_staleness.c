/* Goal    means and buckets of what pushes answer. */
#include "tests/lib/test.h"
#include "worker/telemetry/staleness.h"

static void test_add(void **state)
{
    struct dp_staleness s = {0};
    const uint64_t worst[] = {0, 1, 2, 3, 4, 7, 8};
    for (size_t i = 0; i < 7; i++) {
        const struct dp_outcome outcome = {.measured = 2,
                                           .staleness_sum = worst[i],
                                           .staleness_max = worst[i],
                                           .gaps = i < 2 ? 2 : 0,
                                           .gap_sum = i < 2 ? 3 : 0,
                                           .gap_max = i < 2 ? 3 - i : 0,
                                           .rows = i < 4 ? 100 : 0,
                                           .changed_rows = i < 4 ? 2 * i : 0,
                                           .divided = i < 2 ? 2 : 0,
                                           .divisor_sum = i < 2 ? 2 * (double)(i + 1) : 0};
        dp_staleness_add(&s, &outcome, i % 3);
    }
    const struct dp_outcome silent = {.repeated = true};
    dp_staleness_add(&s, &silent, 9);
    assert_int_equal(s.pushes, 7);
    assert_int_equal(s.repeated, 1);
    assert_int_equal(s.max, 8);
    assert_true(dp_staleness_mean(&s) == 25.0 / 14.0);
    assert_int_equal(s.gap_max, 3);
    assert_true(dp_staleness_gap(&s) == 6.0 / 4.0);
    assert_true(dp_staleness_changed(&s) == 12.0 / 400.0 && dp_staleness_divisor(&s) == 1.5);
    assert_true(s.gap.count[2] == 2 && dp_histogram_total(&s.gap) == 2);
    assert_true(s.changed.count[0] == 1 && s.changed.count[2] == 2 && s.changed.count[3] == 1);
    assert_true(dp_staleness_own(&s) == 6.0 / 7.0 && s.own_max == 2); /* without the silent one */
    assert_true(dp_staleness_quantile(&s, 0.5) == 3 && dp_staleness_quantile(&s, 0.9) == 8);
    assert_true(dp_staleness_quantile(&s, 0) == 0 && dp_staleness_quantile(&s, 6.0 / 7.0) == 7);
    const uint64_t want[] = {1, 1, 2, 2, 1};
    uint64_t counts[DP_STALENESS_BUCKETS];
    assert_int_equal(dp_staleness_histogram(&s, counts), 5);
    assert_memory_equal(counts, want, sizeof want);

    struct dp_staleness other = {
        .measured = 1, .sum = UINT32_MAX, .max = UINT32_MAX, .pushes = 1, .gaps = 6, .gap_sum = 14};
    other.fine[DP_STALENESS_FINE - 1] = 1;
    dp_staleness_merge(&other, &s);
    assert_int_equal(other.max, UINT32_MAX);
    assert_int_equal(other.pushes, 8);
    assert_int_equal(other.gap_max, 3);
    assert_true(dp_staleness_gap(&other) == 2);
    assert_true(other.fine[8] == 1 && other.own_sum == 6 && other.own_max == 2);
    assert_true(other.gap.count[2] == 2 && other.changed.count[2] == 2 && other.rows == 400);
    assert_true(dp_staleness_changed(&other) == 0.03 && dp_staleness_divisor(&other) == 1.5);
    assert_true(dp_staleness_histogram(&other, counts) == 19 && counts[3] == 2 && counts[18] == 1);
}

static void test_largest_has_a_bucket(void **state)
{
    struct dp_staleness s = {0};
    const struct dp_outcome outcome = {.measured = 1, .staleness_sum = 1, .staleness_max = UINT64_MAX};
    dp_staleness_add(&s, &outcome, 0);
    assert_int_equal(s.fine[DP_STALENESS_FINE - 1], 1);
    dp_staleness_add(&s, &(struct dp_outcome){.measured = 1}, 1); /* its pull showed its own */
    assert_int_equal(s.own_max, 0);
    const struct dp_staleness none = {0};
    uint64_t counts[DP_STALENESS_BUCKETS];
    assert_int_equal(dp_staleness_histogram(&none, counts), 0);
    assert_true(dp_staleness_mean(&none) == 0 && dp_staleness_gap(&none) == 0);
    assert_true(dp_staleness_changed(&none) == 0 && dp_staleness_divisor(&none) == 0);
}

/* Each value is in the bucket that begins at or below it, and no bucket is wider than 3%. */
static void fine_buckets_are_narrow(void **state)
{
    for (uint64_t value = 0; value < (UINT64_C(1) << 18); value++) {
        uint32_t bucket = dp_staleness_fine_of(value);
        uint64_t least = dp_staleness_fine_least(bucket);
        assert_true(bucket < DP_STALENESS_FINE && least <= value && value - least <= value / 32);
        assert_int_equal(dp_staleness_fine_of(least), bucket);
    }
    assert_true(dp_staleness_fine_least(63) == 63 && dp_staleness_fine_least(64) == 64);
    assert_int_equal(dp_staleness_quantile(&(struct dp_staleness){0}, 0.5), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_add),
                                       cmocka_unit_test(test_largest_has_a_bucket),
                                       cmocka_unit_test(fine_buckets_are_narrow)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
