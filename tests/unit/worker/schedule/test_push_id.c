/* Goal    no two pushes of a training have one id, and one that is made again has the same.
 * Method  all runs, epochs and workers of small trainings, marked in a table.                            */
#include "tests/lib/test.h"
#include "worker/schedule/group.h"
#include "worker/schedule/push_id.h"

#include <string.h>

static void test_stream(void **state)
{
    (void)state;
    assert_int_equal(dp_push_stream(1, 0), UINT64_C(0x8000000100000000));
    assert_int_equal(dp_push_stream(0x7fffffff, 0xffffffff), UINT64_C(0xffffffffffffffff));
    assert_true(dp_push_stream(1, 2) != dp_push_stream(2, 1));
}

static void test_one_batch_a_push_is_the_minibatch(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers < 5; workers++) {
        for (uint32_t worker = 0; worker < workers; worker++) {
            const struct dp_share share = {.batches = 17, .worker = worker, .workers = workers};
            for (uint64_t i = 0; i < dp_share_positions(share); i++)
                assert_int_equal(dp_push_number(worker, workers, i), dp_share_number(share, i));
        }
    }
}

static void test_numbers_differ(void **state)
{
    (void)state;
    for (uint32_t every = 1; every <= 7; every++) {
        bool seen[64] = {false};
        for (uint32_t worker = 0; worker < 3; worker++) {
            const struct dp_share share = {.batches = 40, .worker = worker, .workers = 3};
            uint64_t groups = dp_groups(dp_share_positions(share), every);
            for (uint64_t g = 0; g < groups; g++) {
                uint64_t number = dp_push_number(worker, 3, g);
                assert_true(number <
                            40); /* no sparser than the minibatches: the servers' window is bounded */
                assert_false(seen[number]);
                seen[number] = true;
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stream),
                                       cmocka_unit_test(test_one_batch_a_push_is_the_minibatch),
                                       cmocka_unit_test(test_numbers_differ)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
