/* Shards that do not begin to copy. Goal: the text names the cause that there can be: without a synchronous run it is the disk, which has
 * longer than a close. */
#include "deploy/checkpoint/left_waiting.h"
#include "tests/lib/test.h"

#include <string.h>

static void without_a_synchronous_run_it_is_the_disk(void **state)
{
    struct dp_error err = {0};
    (void)state;
    assert_int_equal(dp_left_waiting_fail(false, 3, 10000, "", &err), DP_TIMEOUT);
    assert_non_null(strstr(err.text, "journal of shard 3"));
    assert_null(strstr(err.text, "synchronous"));
    assert_true(dp_left_waiting_ms(false) > dp_left_waiting_ms(true));
}

static void in_a_synchronous_run_it_is_the_step(void **state)
{
    struct dp_error err = {0};
    (void)state;
    assert_int_equal(dp_left_waiting_fail(true, 3, 10000, "push 5", &err), DP_TIMEOUT);
    assert_non_null(strstr(err.text, "shard 3 waited 10 s"));
    assert_non_null(strstr(err.text, ", and for push 5"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_synchronous_run_it_is_the_disk),
        cmocka_unit_test(in_a_synchronous_run_it_is_the_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
