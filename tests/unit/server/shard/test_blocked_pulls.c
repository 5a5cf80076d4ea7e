/* Held pulls: what ssp answers and what it holds, and that what is held stands in nobody's way: not in its own session's, nor in
 * that of a drain; it is answered once, whatever came between. One row, which each push makes smaller by 1. */
#include "tests/unit/server/shard/member_bed.h"

#include "common/model/mix.h"

#include <string.h>

#define MS UINT64_C(1000000)

static void pass(struct bed *bed, uint64_t ns)
{
    bed->now_ns += ns;
    bed_turn(bed);
}

static void a_held_pull_hears_so_four_times_a_second(void **state)
{
    struct bed bed;
    member_bed_start_two(&bed);
    uint64_t held = member_bed_pull_step(&bed, 2, 0, 1);
    (void)member_bed_push_step(&bed, 3, 0, 0);
    bed_turn(&bed);
    assert_int_equal(member_bed_count(&bed, held, DP_HELD), 1); /* at once */
    assert_in_range(dp_shard_rest_ms(bed.host.shard), 1, 251);
    for (uint32_t i = 0; i < 300; i++)
        pass(&bed, 10 * MS);
    assert_in_range(member_bed_count(&bed, held, DP_HELD), 12, 13);
    const struct bed_reply *said = member_bed_last(&bed, held, DP_HELD);
    assert_true(said->reply.wait.subject == 1 && said->reply.sequence == 2);
    assert_in_range(said->reply.silent_ms, 2700, 3010);
    assert_non_null(strstr(said->reply.reason, "waits for worker 1, which has finished 0 steps"));
    (void)member_bed_push_step(&bed, 1, 1, 0);
    bed_turn(&bed);
    assert_true(member_bed_is_answered(&bed, held));
    assert_int_equal(dp_shard_rest_ms(bed.host.shard), UINT32_MAX);
    bed_close(&bed);
}

/* Whichever way the copies come: one is held, and each hears that it is. */
static void a_resend_of_a_held_pull_renews_it(void **state)
{
    struct bed bed;
    member_bed_start_two(&bed);
    bed.timeout_ms = 2000;
    uint64_t held = member_bed_pull_step(&bed, 2, 0, 1);
    bed.next_id = held;
    (void)member_bed_pull_step(&bed, 2, 0, 1); /* before the first was looked at */
    bed_turn(&bed);
    assert_int_equal(member_bed_count(&bed, held, DP_HELD), 2);
    for (uint32_t i = 0; i < 30; i++) {
        uint32_t before = member_bed_count(&bed, held, DP_HELD);
        bed.now_ns += 100 * MS;
        bed.next_id = held;
        (void)member_bed_pull_step(&bed, 2, 0, 1);
        assert_int_equal(member_bed_count(&bed, held, DP_HELD), before + 1); /* at once */
        bed_turn(&bed);
        assert_int_equal(bed_counter(&bed, "pulls_held_now"), 1);
    }
    assert_int_equal(member_bed_count(&bed, held, DP_TIMEOUT), 0); /* 3 s: each resend renewed its deadline */
    bed.next_id = held + 1;
    (void)member_bed_push_step(&bed, 3, 0, 0);
    (void)member_bed_push_step(&bed, 1, 1, 0);
    bed_turn(&bed);
    assert_true(member_bed_is_answered(&bed, held));
    assert_int_equal(bed_counter(&bed, "pulls_held"), 1);
    bed_close(&bed);
}

static void a_held_pull_ends_at_its_deadline(void **state)
{
    struct bed bed;
    member_bed_start_two(&bed);
    bed.timeout_ms = 600;
    uint64_t held = member_bed_pull_step(&bed, 2, 0, 1);
    bed_turn(&bed);
    pass(&bed, 600 * MS);
    assert_int_equal(member_bed_count(&bed, held, DP_TIMEOUT), 0);
    assert_in_range(dp_shard_rest_ms(bed.host.shard), 1, 6);
    pass(&bed, 6 * MS);
    const struct bed_reply *late = member_bed_last(&bed, held, DP_TIMEOUT);
    assert_true(late->reply.wait.reason == DP_WAIT_STEP && late->reply.wait.subject == 0);
    assert_int_equal(bed_counter(&bed, "pulls_held_now"), 0);
    uint64_t behind = member_bed_push_step(&bed, 3, 0, 0); /* it has not turned the order back */
    bed_turn(&bed);
    bed_expect(&bed, behind, DP_OK);
    bed.next_id = held;
    (void)member_bed_pull_step(&bed, 2, 0, 1);
    bed.next_id = behind + 1;
    (void)member_bed_push_step(&bed, 1, 1, 0);
    bed_turn(&bed);
    assert_true(member_bed_is_answered(&bed, held));
    bed_close(&bed);
}

static void a_drain_ends_held_pulls(void **state)
{
    struct bed bed;
    struct dp_error err = {0};
    member_bed_start_two(&bed);
    uint64_t held = member_bed_pull_step(&bed, 2, 0, 1);
    bed_turn(&bed);
    uint64_t late = member_bed_pull_step(&bed, 3, 0, 1); /* it waits for its turn when the drain begins */
    dp_shard_drain(bed.host.shard);
    assert_int_equal(dp_shard_drained(bed.host.shard, &err), DP_AGAIN);
    assert_int_equal(bed_drained(&bed, &err), DP_OK);
    bed_expect(&bed, late, DP_HELD);
    assert_int_equal(member_bed_count(&bed, held, DP_STOPPING), 1);
    assert_int_equal(member_bed_count(&bed, late, DP_STOPPING), 1);
    struct member_bed_view view = member_bed_view(DP_SSP, 0, 2);
    bed_expect_wait(&bed, member_bed_put(&bed, &view), DP_STOPPING, STOPPING);
    bed_close(&bed);
}

/* It comes back behind a request that is parked, which then hears AGAIN: what is new behind that is dropped, the pull is not, as
 * nobody would send it again. */
static void an_again_of_a_later_request_loses_no_held_pull(void **state)
{
    struct bed bed;
    member_bed_start_two(&bed);
    (void)member_bed_push_step(&bed, 2, 0, 0);
    bed_turn(&bed);
    bed_restart(&bed); /* the row is in the store only */
    struct member_bed_view view = member_bed_view(DP_SSP, 0, 2);
    bed_meet(&bed, 1);
    bed_meet(&bed, 2);
    view.view.number = 2;
    bed_expect(&bed, member_bed_put(&bed, &view), DP_OK);
    uint64_t held = member_bed_pull_step(&bed, 1, 0, 1);
    bed_turn(&bed);
    dp_fake_store_hold(bed.fake, true);
    dp_fake_store_fail(bed.fake, DP_STORE_READ, 1, DP_IO);
    uint64_t parked = member_bed_push_step(&bed, 2, 0, 1);
    bed_turn(&bed);
    uint64_t dropped = member_bed_push_step(&bed, 3, 0, 2);
    struct dp_membership empty = member_bed_member(0, 0);
    bed_meet(&bed, 9);
    struct dp_request request = {.kind = DP_REQUEST_PUSH,
                                 .session = 9,
                                 .sequence = 1,
                                 .member = empty,
                                 .stream = MEMBER_BED_STREAM,
                                 .number = 500,
                                 .rate = 1};
    (void)bed_send(&bed, &request, NULL, 0);
    request.sequence = 2;
    request.member = member_bed_member(1, 0);
    request.number = 501;
    (void)bed_send(&bed, &request, NULL, 0);
    bed_turn(&bed);
    assert_int_equal(bed_counter(&bed, "pulls_held_now"), 0);
    assert_false(member_bed_is_answered(&bed, held)); /* it stands behind what is parked */
    dp_fake_store_hold(bed.fake, false);
    bed_turn(&bed);
    bed_expect(&bed, parked, DP_AGAIN);
    assert_null(bed_reply_to(&bed, dropped));
    bed_turn(&bed); /* its row was read */
    assert_true(member_bed_is_answered(&bed, held));
    uint64_t again = member_bed_push_step(&bed, 2, 0, 1);
    bed_turn(&bed);
    bed_expect(&bed, again, DP_OK);
    bed_close(&bed);
}

static void who_is_no_member_is_never_held(void **state)
{
    struct bed bed;
    member_bed_start_two(&bed);
    (void)member_bed_pull_step(&bed, 2, 0, 1);
    bed_turn(&bed);
    assert_true(bed_value(&bed, 2, 1, dp_mix(7)) == 0);
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_held_pull_hears_so_four_times_a_second),
        cmocka_unit_test(a_resend_of_a_held_pull_renews_it),
        cmocka_unit_test(a_held_pull_ends_at_its_deadline),
        cmocka_unit_test(a_drain_ends_held_pulls),
        cmocka_unit_test(an_again_of_a_later_request_loses_no_held_pull),
        cmocka_unit_test(who_is_no_member_is_never_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
