/* Goal    each value is counted in the one bucket that has it; quantiles, sums and differences are those of the values. */
#include "tests/lib/test.h"

#include "common/base/histogram.h"

#include <math.h>

static void numbers_fall_into_powers_of_two(void **state)
{
    struct dp_histogram h;
    dp_histogram_init_numbers(&h, "n");
    assert_int_equal(h.buckets, 17);
    assert_true(isinf(h.upper[16]) && h.upper[15] == 32767);
    for (uint64_t v = 0; v < 40000; v++)
        dp_histogram_add(&h, (double)v);
    assert_true(h.count[0] == 1 && h.count[1] == 1 && h.count[16] == 40000 - 32768);
    for (uint32_t b = 2; b < 16; b++)
        assert_int_equal(h.count[b], 1u << (b - 1));
    assert_int_equal(dp_histogram_total(&h), 40000);
    assert_int_equal(dp_histogram_quantile(&h, 0.5), 15); /* 16,384 to 32,767 */
    assert_int_equal(dp_histogram_least(&h, 15), 16384);
    assert_int_equal(dp_histogram_least(&h, 0), 0);
    dp_histogram_add(&h, (double)UINT64_MAX);
    assert_int_equal(h.count[16], 40000 - 32768 + 1);
}

static void shares_fall_into_percents(void **state)
{
    struct dp_histogram h;
    const double values[] = {0, 1e-9, 0.01, 0.011, 0.05, 0.1, 0.100001, 0.95, 1};
    const uint64_t want[13] = {1, 2, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 2};
    dp_histogram_init_shares(&h, "s");
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        dp_histogram_add(&h, values[i]);
    assert_int_equal(h.buckets, 13);
    assert_memory_equal(h.count, want, sizeof want);
}

static void quantiles_are_the_values_buckets(void **state)
{
    struct dp_histogram h;
    dp_histogram_init_numbers(&h, "n");
    assert_int_equal(dp_histogram_quantile(&h, 0.99), 0);
    for (int i = 0; i < 99; i++)
        dp_histogram_add(&h, 1);
    dp_histogram_add(&h, 100);
    assert_int_equal(dp_histogram_quantile(&h, 0), 1);
    assert_int_equal(dp_histogram_quantile(&h, 0.99), 1);
    assert_int_equal(dp_histogram_quantile(&h, 0.995), 7);
    assert_int_equal(dp_histogram_quantile(&h, 1), 7);
}

static void they_add_up_and_are_told_since(void **state)
{
    struct dp_histogram a, b, other;
    dp_histogram_init_numbers(&a, "n");
    dp_histogram_init_numbers(&b, "n");
    dp_histogram_init_shares(&other, "n");
    assert_true(dp_histogram_alike(&a, &b) && !dp_histogram_alike(&a, &other));
    dp_histogram_add(&a, 3);
    dp_histogram_add(&b, 3);
    dp_histogram_add(&b, 5);
    dp_histogram_merge(&a, &b);
    assert_true(a.count[2] == 2 && a.count[3] == 1);
    assert_true(dp_histogram_since(&a, &b) && a.count[2] == 1 && a.count[3] == 0);
    assert_false(dp_histogram_since(&a, &b)); /* it counts anew */
    assert_int_equal(a.count[2], 1);
    dp_histogram_init_numbers(&b, "m");
    assert_false(dp_histogram_alike(&a, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_fall_into_powers_of_two), cmocka_unit_test(shares_fall_into_percents),
        cmocka_unit_test(quantiles_are_the_values_buckets), cmocka_unit_test(they_add_up_and_are_told_since)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
