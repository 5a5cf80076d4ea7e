/* Goal: different values are counted exactly up to the limit, and no further. Method: all limits about the
 * sizes of the table. */
#include "worker/read/value_set.h"

#include "common/model/mix.h"
#include "tests/lib/test.h"

static void counted_up_to_the_limit(void **state)
{
    for (uint32_t max = 1; max <= 70; max++)
        for (uint32_t values = 0; values <= 75; values++) {
            struct dp_value_set set = {.max = max};
            struct dp_error err = {0};
            for (uint32_t twice = 0; twice < 2; twice++)
                for (uint32_t i = 0; i < values; i++) /* a hash of 0 is one too */
                    assert_int_equal(dp_value_set_see(&set, i ? dp_mix(i) : 0, &err), DP_OK);
            assert_int_equal(set.count, values < max ? values : max);
            assert_int_equal(set.full, values > max);
            assert_int_equal(set.cells, values > max ? max : 2 * values);
            dp_value_set_clear(&set);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counted_up_to_the_limit)};
    return cmocka_run_group_tests_name("value set", tests, NULL, NULL);
}
