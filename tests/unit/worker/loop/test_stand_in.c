/* Stand-in: what a worker that left has not trained. (Leaving itself: tests/system/test_leaves.c.) */
#include "tests/lib/test.h"

#include "worker/loop/stand_in.h"

static struct dp_rounds rounds_of(uint64_t batches, uint32_t worker, uint32_t workers, uint32_t every)
{
    struct dp_cluster_training training = {
        .workers = workers, .consistency = "sync", .push_every = every, .fetch_every = 1, .accumulate = 1};
    return dp_rounds_of(&training,
                        (struct dp_share){.batches = batches, .worker = worker, .workers = workers});
}

static void what_is_undone_is_counted_to_the_minibatch(void **state)
{
    (void)state;
    struct dp_rounds r = rounds_of(90, 2, 3, 1); /* 30 of its own, in 30 steps */
    assert_int_equal(dp_stand_in_undone(&r, 0, 2), 60);
    assert_int_equal(dp_stand_in_undone(&r, 1, 2), 59);
    assert_int_equal(dp_stand_in_undone(&r, 30, 2), 30);
    assert_int_equal(dp_stand_in_undone(&r, 59, 2), 1);
    assert_int_equal(dp_stand_in_undone(&r, 60, 2), 0);
    assert_int_equal(dp_stand_in_undone(&r, 60, 1), 0);
    r = rounds_of(10, 2, 3, 1); /* 3 of its own, in 4 steps: the last one is empty */
    assert_int_equal(r.count, 4);
    assert_int_equal(dp_stand_in_undone(&r, 3, 1), 0);
    assert_int_equal(dp_stand_in_undone(&r, 4, 2), 3);
    assert_int_equal(dp_stand_in_undone(&r, 6, 2), 1);
    r = rounds_of(21, 0, 2, 4); /* 11 of its own, in steps of 4, 4 and 3 */
    assert_int_equal(r.count, 3);
    assert_int_equal(dp_stand_in_undone(&r, 1, 1), 7);
    assert_int_equal(dp_stand_in_undone(&r, 2, 1), 3);
    assert_int_equal(dp_stand_in_undone(&r, 3, 2), 11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_undone_is_counted_to_the_minibatch),
    };
    return cmocka_run_group_tests_name("stand-in", tests, NULL, NULL);
}
