/* Goal    every moment is given to one kind, once; sums are of the host's kinds. Method  a clock that is told the time. */
#include "tests/lib/test.h"
#include "worker/spent.h"

#include <math.h>
#include <string.h>

static uint64_t told(void *self)
{
    return *(uint64_t *)self;
}

static void test_laps(void **state)
{
    (void)state;
    uint64_t now = 5000000000;
    const struct dp_clock clock = {.now_ns = told, .self = &now};
    struct dp_spent spent = {0}, twice = {0};
    struct dp_stopwatch watch = dp_stopwatch_start(&clock, &spent);
    for (int i = 0; i < 2; i++) {
        now += 1000000000;
        dp_stopwatch_lap(&watch, DP_SPENT_READ);
        now += 3000000000;
        dp_stopwatch_lap(&watch, DP_SPENT_WAITING_PULL);
        dp_stopwatch_lap(&watch, DP_SPENT_PUSH);
    }
    assert_true(fabs(spent.seconds[DP_SPENT_READ] - 2) < 1e-9);
    assert_true(fabs(spent.seconds[DP_SPENT_WAITING_PULL] - 6) < 1e-9);
    assert_true(spent.seconds[DP_SPENT_PUSH] == 0);
    spent.seconds[DP_SPENT_DEVICE_COPY_IN] = 4;
    assert_true(fabs(dp_spent_sum(&spent) - 8) < 1e-9);
    dp_spent_merge(&twice, &spent);
    dp_spent_merge(&twice, &spent);
    assert_true(fabs(dp_spent_sum(&twice) - 16) < 1e-9);
    assert_true(twice.seconds[DP_SPENT_DEVICE_COPY_IN] == 8);
}

static void test_text(void **state)
{
    (void)state;
    struct dp_spent spent = {0};
    char text[128];
    dp_spent_text(&spent, text, sizeof text);
    assert_string_equal(text, "");
    spent.seconds[DP_SPENT_READ] = 1;
    spent.seconds[DP_SPENT_COMPUTE] = 3;
    spent.seconds[DP_SPENT_PUSH] = 0.01;
    dp_spent_text(&spent, text, sizeof text);
    assert_string_equal(text, "read 25%, compute 75%");
    for (size_t size = 1; size < 22; size++) {
        dp_spent_text(&spent, text, size);
        assert_true(strlen(text) < size);
    }
    for (int i = 0; i < DP_SPENT_KINDS; i++)
        assert_non_null(dp_spent_name((enum dp_spent_on)i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_laps), cmocka_unit_test(test_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
