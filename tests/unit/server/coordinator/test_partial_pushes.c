/* Pushes that a checkpoint gives up, and those that it fails for. Goal: pushes of earlier runs and those that the checkpoint before gave
 * up are over, and no others; only clients that do not train are given up; the text names the worker, or the cause that there can be. */
#include "common/model/stream.h"
#include "server/coordinator/partial_pushes.h"
#include "tests/lib/test.h"

#include <string.h>

static void earlier_runs_and_what_was_given_up_are_over(void **state)
{
    const struct dp_copy_push earlier = {dp_stream_of_run(1, 4), 3}, now = {dp_stream_of_run(2, 1), 5},
                              client = {9, 1}, next = {9, 2};
    struct dp_copy_push before[] = {{8, 1}, {9, 1}};
    const struct dp_partial_known known = {.before = {before, 2}, .last_run = 2}, first = {.last_run = 1};
    assert_true(dp_partial_is_over(&known, &earlier) && dp_partial_is_over(&known, &client));
    assert_false(dp_partial_is_over(&known, &now) || dp_partial_is_over(&known, &next));
    assert_false(dp_partial_is_over(&first, &earlier) || dp_partial_is_over(&first, &client));
    assert_true(dp_partial_is_of_client(NULL, &client));
    assert_false(dp_partial_is_of_client(NULL, &now));
}

static void expect(const struct dp_partial_wait *wait, const char *text)
{
    struct dp_error err = {0};
    assert_int_equal(dp_partial_fail(wait, &err), DP_TIMEOUT);
    if (!strstr(err.text, text))
        fail_msg("no '%s' in: %s", text, err.text);
}

static void the_worker_is_named(void **state)
{
    struct dp_cluster_training training = {.run = 2, .workers = 3, .work = DP_CLUSTER_FIXED};
    const struct dp_copy_push push = {dp_stream_of_run(2, 1), 8};
    const struct dp_partial_wait wait = {
        .training = &training, .shard = 1, .wait_ms = 10000, .lacking = &push};
    expect(&wait, "shard 1 waited 10 s for push 8 of epoch 2 of run 2");
    expect(&wait, "worker 2 is down");
    training.work = DP_CLUSTER_LEASED; /* any worker may have taken it */
    expect(&wait, "its worker is down");
}

static void else_it_is_the_step_or_the_disk(void **state)
{
    struct dp_partial_wait wait = {.shard = 3, .wait_ms = 10000};
    expect(&wait, "journal of shard 3");
    wait.has_sync = true;
    expect(&wait, "shard 3 waited 10 s for the close of a synchronous step");
    assert_true(dp_partial_grace_ms(false) > dp_partial_grace_ms(true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(earlier_runs_and_what_was_given_up_are_over),
        cmocka_unit_test(the_worker_is_named),
        cmocka_unit_test(else_it_is_the_step_or_the_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
