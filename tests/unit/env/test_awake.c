/* Goal    the awake clock goes on as the clock below it, but for what is longer than may pass between two looks.
 * Planted a long gap counts in full, or not at all; a clock that goes back moves it. */
#include "common/env/awake.h"
#include "tests/lib/test.h"

static uint64_t now_of(void *self)
{
    return *(uint64_t *)self;
}

static void a_gap_counts_for_no_more_than_may_pass(void **state)
{
    uint64_t now = 1000;
    struct dp_clock clock = {.now_ns = now_of, .self = &now};
    struct dp_awake awake = dp_awake_over(&clock, 100);
    assert_int_equal(dp_awake_ns(&awake), 1000);
    now += 99;
    assert_int_equal(dp_awake_ns(&awake), 1099);
    now += 100;
    assert_int_equal(dp_awake_ns(&awake), 1199);
    now += 101;
    assert_int_equal(dp_awake_ns(&awake), 1299);
    now += UINT64_MAX / 2;
    assert_int_equal(dp_awake_ns(&awake), 1399);
    assert_int_equal(dp_awake_ns(&awake), 1399); /* the gap counts once */
    now += 1;
    assert_int_equal(dp_awake_ns(&awake), 1400);
    now -= 50;
    assert_int_equal(dp_awake_ns(&awake), 1400);
    now += 2;
    assert_int_equal(dp_awake_ns(&awake), 1402);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gap_counts_for_no_more_than_may_pass),
    };
    return cmocka_run_group_tests_name("awake", tests, NULL, NULL);
}
