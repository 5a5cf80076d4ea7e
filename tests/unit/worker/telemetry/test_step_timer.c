/* Goal    every moment is given to one kind, once; sums are of the host's kinds. Method  a clock that is told the time. */
#include "tests/lib/test.h"
#include "worker/telemetry/step_timer.h"

#include <math.h>
#include <string.h>

static uint64_t told(void *self)
{
    return *(uint64_t *)self;
}

static void test_laps(void **state)
{
    uint64_t now = 5000000000;
    const struct dp_clock clock = {.now_ns = told, .self = &now};
    struct dp_step_times times = {0}, twice = {0};
    struct dp_step_timer watch = dp_step_timer_start(&clock, &times);
    for (int i = 0; i < 2; i++) {
        now += 1000000000;
        dp_step_timer_lap(&watch, DP_PHASE_READ);
        now += 3000000000;
        dp_step_timer_lap(&watch, DP_PHASE_WAITING_PULL);
        dp_step_timer_lap(&watch, DP_PHASE_PUSH);
    }
    assert_true(fabs(times.seconds[DP_PHASE_READ] - 2) < 1e-9);
    assert_true(fabs(times.seconds[DP_PHASE_WAITING_PULL] - 6) < 1e-9);
    assert_true(times.seconds[DP_PHASE_PUSH] == 0);
    times.seconds[DP_PHASE_DEVICE_COPY_IN] = 4;
    assert_true(fabs(dp_step_times_sum(&times) - 8) < 1e-9);
    dp_step_times_merge(&twice, &times);
    dp_step_times_merge(&twice, &times);
    assert_true(fabs(dp_step_times_sum(&twice) - 16) < 1e-9);
    assert_true(twice.seconds[DP_PHASE_DEVICE_COPY_IN] == 8);
}

static void test_text(void **state)
{
    struct dp_step_times times = {0};
    char text[128];
    dp_step_times_text(&times, text, sizeof text);
    assert_string_equal(text, "");
    times.seconds[DP_PHASE_READ] = 1;
    times.seconds[DP_PHASE_COMPUTE] = 3;
    times.seconds[DP_PHASE_PUSH] = 0.01;
    dp_step_times_text(&times, text, sizeof text);
    assert_string_equal(text, "read 25%, compute 75%");
    for (size_t size = 1; size < 22; size++) {
        dp_step_times_text(&times, text, size);
        assert_true(strlen(text) < size);
    }
    for (int i = 0; i < DP_PHASE_KINDS; i++)
        assert_non_null(dp_step_phase_name((enum dp_step_phase)i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_laps), cmocka_unit_test(test_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
