/* Goal    a worker that is behind goes on at the greatest step that a pull told, and never back. */
#include "tests/lib/test.h"
#include "worker/loop/behind.h"

static uint64_t now_of(void *self)
{
    return *(uint64_t *)self;
}

/* Planted: a later pull takes the open step back; the open step itself is passed over. */
static void the_open_step_only_rises(void **state)
{
    (void)state;
    uint64_t now = 1;
    const struct dp_clock clock = {now_of, &now};
    struct dp_behind behind = {0};
    assert_false(dp_behind_is(&behind, 0));
    dp_behind_hears(&behind, 5, 0, &clock); /* another mode */
    dp_behind_hears(&behind, 5, 5, &clock); /* as it asked */
    assert_false(dp_behind_is(&behind, 0));
    dp_behind_hears(&behind, 5, 9, &clock);
    assert_true(dp_behind_is(&behind, 8));
    assert_false(dp_behind_is(&behind, 9));
    dp_behind_hears(&behind, 6, 7, &clock); /* issued before; another shard answered last */
    assert_true(dp_behind_is(&behind, 8));
    dp_behind_hears(&behind, 9, 10, &clock);
    assert_true(dp_behind_is(&behind, 9));
    assert_false(dp_behind_is(&behind, 10));
    assert_true(behind.told_ns == 1);
    now += UINT64_C(9000000000);
    dp_behind_hears(&behind, 10, 11, &clock);
    assert_true(behind.told_ns == 1); /* the log is not filled with it */
    now += UINT64_C(1000000000);
    dp_behind_hears(&behind, 11, 12, &clock);
    assert_true(behind.told_ns == now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_open_step_only_rises),
    };
    return cmocka_run_group_tests_name("passing_over", tests, NULL, NULL);
}
