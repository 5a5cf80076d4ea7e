/* Held pulls: what ssp answers and what it holds, and that what is held stands in nobody's way: not in its own session's, nor in
 * that of pushes; it is answered once, whatever came between. One row, which each push makes smaller by 1. */
#include "tests/unit/server/shard/member_bed.h"

#include "common/model/mix.h"
#include "server/shard/sessions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)

static uint64_t pull(struct bed *bed, uint64_t sequence, uint32_t rank, uint64_t step)
{
    struct dp_membership member = member_bed_member(rank, step);
    return member_bed_pull(bed, 1 + rank, sequence, &member);
}

/* Each member has numbers of its own. */
static uint64_t push(struct bed *bed, uint64_t sequence, uint32_t rank, uint64_t step)
{
    struct dp_membership member = member_bed_member(rank, step);
    return member_bed_push(bed, 1 + rank, sequence, &member, rank * 1000 + step);
}

/* Two members, ssp:0. */
static void start(struct bed *bed)
{
    struct member_bed_view view = member_bed_view(DP_SSP, 0, 2);
    member_bed_start(bed, &view);
}

static void pass(struct bed *bed, uint64_t ns)
{
    bed->now_ns += ns;
    bed_turn(bed);
}

/* The push of step 0 stands behind the pull that waits for it. */
static void a_pull_waits_for_what_its_own_session_sends_behind_it(void **state)
{
    (void)state;
    struct bed bed;
    start(&bed);
    uint64_t held = pull(&bed, 2, 0, 1), pushed = push(&bed, 3, 0, 0);
    bed_turn(&bed);
    assert_false(member_bed_is_answered(&bed, held));
    bed_expect(&bed, pushed, DP_OK);
    const struct bed_reply *said = member_bed_last(&bed, held, DP_HELD);
    assert_int_equal(said->reply.wait.reason, DP_WAIT_STEP);
    assert_true(said->reply.wait.done == 0 && said->reply.wait.total == 1);
    pass(&bed, 40 * MS);
    uint64_t other = push(&bed, 1, 1, 0);
    bed_turn(&bed);
    bed_expect(&bed, other, DP_OK);
    assert_true(member_bed_is_answered(&bed, held));
    const struct bed_reply *answer = member_bed_last(&bed, held, DP_OK);
    assert_true(answer->value[0] == -2); /* it sees both */
    assert_int_equal(answer->reply.held_ms, 40);
    assert_true(answer->reply.lsn >= 2);
    assert_int_equal(bed_counter(&bed, "pulls_held"), 1);
    assert_int_equal(bed_counter(&bed, "pulls_held_ms"), 40);
    assert_int_equal(bed_counter(&bed, "pulls_held_now"), 0);
    bed_close(&bed);
}

static void a_held_pull_hears_so_four_times_a_second(void **state)
{
    (void)state;
    struct bed bed;
    start(&bed);
    uint64_t held = pull(&bed, 2, 0, 1);
    (void)push(&bed, 3, 0, 0);
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
    (void)push(&bed, 1, 1, 0);
    bed_turn(&bed);
    assert_true(member_bed_is_answered(&bed, held));
    assert_int_equal(dp_shard_rest_ms(bed.host.shard), UINT32_MAX);
    bed_close(&bed);
}

/* Whichever way the copies come: one is held, and each hears that it is. */
static void a_resend_of_a_held_pull_renews_it(void **state)
{
    (void)state;
    struct bed bed;
    start(&bed);
    bed.timeout_ms = 2000;
    uint64_t held = pull(&bed, 2, 0, 1);
    bed.next_id = held;
    (void)pull(&bed, 2, 0, 1); /* before the first was looked at */
    bed_turn(&bed);
    assert_int_equal(member_bed_count(&bed, held, DP_HELD), 2);
    for (uint32_t i = 0; i < 30; i++) {
        uint32_t before = member_bed_count(&bed, held, DP_HELD);
        bed.now_ns += 100 * MS;
        bed.next_id = held;
        (void)pull(&bed, 2, 0, 1);
        assert_int_equal(member_bed_count(&bed, held, DP_HELD), before + 1); /* at once */
        bed_turn(&bed);
        assert_int_equal(bed_counter(&bed, "pulls_held_now"), 1);
    }
    assert_int_equal(member_bed_count(&bed, held, DP_TIMEOUT), 0); /* 3 s: each resend renewed its deadline */
    bed.next_id = held + 1;
    (void)push(&bed, 3, 0, 0);
    (void)push(&bed, 1, 1, 0);
    bed_turn(&bed);
    assert_true(member_bed_is_answered(&bed, held));
    assert_int_equal(bed_counter(&bed, "pulls_held"), 1);
    bed_close(&bed);
}

static void a_held_pull_ends_at_its_deadline(void **state)
{
    (void)state;
    struct bed bed;
    start(&bed);
    bed.timeout_ms = 600;
    uint64_t held = pull(&bed, 2, 0, 1);
    bed_turn(&bed);
    pass(&bed, 600 * MS);
    assert_int_equal(member_bed_count(&bed, held, DP_TIMEOUT), 0);
    assert_in_range(dp_shard_rest_ms(bed.host.shard), 1, 6);
    pass(&bed, 6 * MS);
    const struct bed_reply *late = member_bed_last(&bed, held, DP_TIMEOUT);
    assert_true(late->reply.wait.reason == DP_WAIT_STEP && late->reply.wait.subject == 0);
    assert_int_equal(bed_counter(&bed, "pulls_held_now"), 0);
    uint64_t behind = push(&bed, 3, 0, 0); /* it has not turned the order back */
    bed_turn(&bed);
    bed_expect(&bed, behind, DP_OK);
    bed.next_id = held;
    (void)pull(&bed, 2, 0, 1);
    bed.next_id = behind + 1;
    (void)push(&bed, 1, 1, 0);
    bed_turn(&bed);
    assert_true(member_bed_is_answered(&bed, held));
    bed_close(&bed);
}

static void a_session_with_nothing_but_a_held_pull_is_kept(void **state)
{
    (void)state;
    struct bed bed;
    start(&bed);
    uint64_t held = pull(&bed, 2, 0, 1);
    bed_turn(&bed);
    bed.now_ns += MS;
    for (uint64_t session = 10; session < 10 + 2 * DP_SESSIONS_MAX; session++)
        bed_meet(&bed, session);
    bed_meet(&bed, 2);
    (void)push(&bed, 1, 1, 0);
    struct dp_membership self = member_bed_member(0, 0);
    (void)member_bed_push(&bed, 10 + 2 * DP_SESSIONS_MAX - 1, 1, &self, 0);
    bed_turn(&bed);
    assert_true(member_bed_is_answered(&bed, held));
    bed_close(&bed);
}

/* As many as may wait in all: pushes go on while they are held, and when all of them go back at once. */
static void held_pulls_leave_room_for_pushes(void **state)
{
    (void)state;
    struct bed bed;
    start(&bed);
    struct dp_membership member = member_bed_member(0, 1);
    for (uint64_t session = 10; session < 26; session++)
        bed_meet(&bed, session);
    for (uint64_t session = 10; session < 26; session++)
        for (uint64_t sequence = 1; sequence <= DP_SESSION_WINDOW; sequence++) {
            (void)member_bed_pull(&bed, session, sequence, &member);
            bed_turn(&bed);
        }
    assert_int_equal(bed_counter(&bed, "pulls_held_now"), 1024);
    uint64_t first = push(&bed, 2, 0, 0);
    bed_turn(&bed);
    bed_expect(&bed, first, DP_OK);
    uint64_t pulls = bed_counter(&bed, "pulls");
    uint64_t last = push(&bed, 1, 1, 0);
    assert_true(bed_one_turn(&bed)); /* they go back from the next turn on */
    bed_expect(&bed, last, DP_OK);
    assert_true(bed_one_turn(&bed));
    uint64_t between = push(&bed, 2, 1, 1);
    assert_true(bed_one_turn(&bed));
    bed_expect(&bed, between, DP_OK);
    bed_turn(&bed);
    assert_int_equal(bed_counter(&bed, "pulls") - pulls, 1024);
    assert_int_equal(bed_counter(&bed, "requests_postponed"), 0);
    bed_close(&bed);
}

/* Whoever is over a bound hears AGAIN, and what stands behind it is done: it is what the pull waits for. */
static void a_pull_that_cannot_be_held_lets_pushes_pass(void **state)
{
    (void)state;
    struct bed bed;
    start(&bed);
    for (uint64_t sequence = 2; sequence < 2 + DP_SESSION_WINDOW; sequence++) {
        (void)pull(&bed, sequence, 0, 1);
        bed_turn(&bed);
    }
    uint64_t over = pull(&bed, 66, 0, 1), pushed = push(&bed, 67, 0, 0);
    bed_turn(&bed);
    bed_expect_wait(&bed, over, DP_AGAIN, QUEUE);
    bed_expect(&bed, pushed, DP_OK);
    assert_int_equal(bed_counter(&bed, "pulls_held_now"), 64);
    (void)push(&bed, 1, 1, 0);
    bed_turn(&bed);
    bed.next_id = over;
    (void)pull(&bed, 66, 0, 1);
    bed_turn(&bed);
    assert_int_equal(member_bed_count(&bed, over, DP_OK), 1);
    bed_close(&bed);
}

static void no_more_than_the_bound_is_held(void **state)
{
    (void)state;
    struct bed bed;
    start(&bed);
    struct dp_membership member = member_bed_member(0, 1);
    for (uint64_t session = 10; session < 74; session++) {
        bed_meet(&bed, session);
        for (uint64_t sequence = 1; sequence <= DP_SESSION_WINDOW; sequence++)
            (void)member_bed_pull(&bed, session, sequence, &member);
        bed_turn(&bed);
    }
    assert_int_equal(bed_counter(&bed, "pulls_held_now"), 4096);
    uint64_t over = pull(&bed, 2, 0, 1), pushed = push(&bed, 3, 0, 0);
    bed_turn(&bed);
    bed_expect_wait(&bed, over, DP_AGAIN, QUEUE);
    bed_expect(&bed, pushed, DP_OK);
    bed_close(&bed);
}

static void who_ends_first_holds_nobody(void **state)
{
    (void)state;
    struct bed bed;
    struct member_bed_view view = member_bed_view(DP_SSP, 1, 2);
    member_bed_start(&bed, &view);
    uint64_t sequence = 2;
    for (uint64_t step = 0; step < 2; step++)
        (void)push(&bed, sequence++, 0, step);
    uint64_t held = pull(&bed, sequence++, 0, 2);
    (void)push(&bed, 1, 1, 0);
    bed_turn(&bed);
    assert_true(member_bed_is_answered(&bed, held)); /* one step behind may it be */
    held = pull(&bed, sequence++, 0, 9);
    bed_turn(&bed);
    assert_false(member_bed_is_answered(&bed, held));
    for (uint64_t step = 2; step < 8; step++)
        (void)push(&bed, sequence++, 0, step);
    bed_turn(&bed);
    assert_false(member_bed_is_answered(&bed, held));
    view.view.number = 2;
    view.member[1].until = 1; /* it had one step only */
    bed_expect(&bed, member_bed_put(&bed, &view), DP_OK);
    bed_turn(&bed);
    assert_true(member_bed_is_answered(&bed, held));
    uint64_t refused = push(&bed, 2, 1, 1);
    bed_turn(&bed);
    bed_expect(&bed, refused, DP_INVALID);
    bed_close(&bed);
}

/* Its requests, waiting or new, change nothing; what it would have pushed its successor pushes under the same number. */
static void a_process_whose_place_was_taken_ends(void **state)
{
    (void)state;
    struct bed bed;
    struct member_bed_view view = member_bed_view(DP_SSP, 0, 2);
    member_bed_start(&bed, &view);
    uint64_t held = pull(&bed, 1, 1, 1);
    bed_turn(&bed);
    view.view.number = 2;
    view.member[1].incarnation = 555;
    bed_expect(&bed, member_bed_put(&bed, &view), DP_OK);
    bed_turn(&bed);
    assert_int_equal(member_bed_count(&bed, held, DP_REPLACED), 1);
    assert_int_equal(bed_counter(&bed, "pulls_held_now"), 0);
    uint64_t dead = push(&bed, 2, 1, 0), dead_pull = pull(&bed, 3, 1, 0);
    bed_turn(&bed);
    bed_expect(&bed, dead, DP_REPLACED);
    bed_expect(&bed, dead_pull, DP_REPLACED);
    struct dp_membership successor = member_bed_member(1, 0);
    successor.incarnation = 555;
    successor.view = 2;
    bed_meet(&bed, 9);
    uint64_t alive = member_bed_push(&bed, 9, 1, &successor, 1000);
    bed_turn(&bed);
    assert_false(bed_expect(&bed, alive, DP_OK)->reply.repeated);
    assert_true(bed_value(&bed, 9, 2, dp_mix(7)) == -1);
    bed_close(&bed);
}

/* With the slack S and a member that stopped after m steps the others come as far as the pull of step m + S, and no further. */
static void others_come_slack_steps_past_a_member_that_stopped(void **state)
{
    (void)state;
    for (uint32_t slack = 0; slack < 4; slack++)
        for (uint64_t stops = 0; stops < 4; stops++) {
            struct bed bed;
            struct member_bed_view view = member_bed_view(DP_SSP, slack, 3);
            member_bed_start(&bed, &view);
            uint64_t sequence[3] = {2, 1, 1}, gap = 0;
            for (uint64_t step = 0; step <= stops + slack; step++)
                for (uint32_t rank = 0; rank < 3; rank++) {
                    if (rank == 2 && step >= stops)
                        continue;
                    uint64_t pulled = pull(&bed, sequence[rank]++, rank, step);
                    bed_turn(&bed);
                    bed_expect(&bed, pulled, DP_OK);
                    uint64_t pushed = push(&bed, sequence[rank]++, rank, step);
                    bed_turn(&bed);
                    const struct bed_reply *reply = bed_expect(&bed, pushed, DP_OK);
                    gap = reply->reply.gap > gap ? reply->reply.gap : gap;
                    assert_true(reply->reply.gap <= slack);
                }
            uint64_t held[2];
            for (uint32_t rank = 0; rank < 2; rank++)
                held[rank] = pull(&bed, sequence[rank]++, rank, stops + slack + 1);
            bed_turn(&bed);
            for (uint32_t rank = 0; rank < 2; rank++) {
                assert_false(member_bed_is_answered(&bed, held[rank]));
                const struct bed_reply *said = member_bed_last(&bed, held[rank], DP_HELD);
                assert_true(said->reply.wait.subject == 2 && said->reply.wait.done == stops &&
                            said->reply.wait.total == stops + 1);
            }
            assert_int_equal(gap, slack);
            assert_int_equal(bed_counter(&bed, "clock_gap_max"), slack);
            (void)push(&bed, sequence[2]++, 2, stops);
            bed_turn(&bed);
            for (uint32_t rank = 0; rank < 2; rank++)
                assert_true(member_bed_is_answered(&bed, held[rank]));
            bed_close(&bed);
        }
}

static void a_drain_ends_held_pulls(void **state)
{
    (void)state;
    struct bed bed;
    struct dp_error err = {0};
    start(&bed);
    uint64_t held = pull(&bed, 2, 0, 1);
    bed_turn(&bed);
    uint64_t late = pull(&bed, 3, 0, 1); /* it waits for its turn when the drain begins */
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
    (void)state;
    struct bed bed;
    start(&bed);
    (void)push(&bed, 2, 0, 0);
    bed_turn(&bed);
    bed_restart(&bed); /* the row is in the store only */
    struct member_bed_view view = member_bed_view(DP_SSP, 0, 2);
    bed_meet(&bed, 1);
    bed_meet(&bed, 2);
    view.view.number = 2;
    bed_expect(&bed, member_bed_put(&bed, &view), DP_OK);
    uint64_t held = pull(&bed, 1, 0, 1);
    bed_turn(&bed);
    dp_fake_store_hold(bed.fake, true);
    dp_fake_store_fail(bed.fake, DP_STORE_READ, 1, DP_IO);
    uint64_t parked = push(&bed, 2, 0, 1);
    bed_turn(&bed);
    uint64_t dropped = push(&bed, 3, 0, 2);
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
    uint64_t again = push(&bed, 2, 0, 1);
    bed_turn(&bed);
    bed_expect(&bed, again, DP_OK);
    bed_close(&bed);
}

/* The push found in the push ids is one that its member has finished, whoever applied it. */
static void a_repeated_push_counts_as_a_finished_step(void **state)
{
    (void)state;
    struct bed bed;
    start(&bed);
    uint64_t first = push(&bed, 2, 0, 0);
    bed_turn(&bed);
    bed_expect(&bed, first, DP_OK);
    struct dp_membership other = member_bed_member(1, 0);
    uint64_t same = member_bed_push(&bed, 2, 1, &other, 0);
    uint64_t next = pull(&bed, 3, 0, 1);
    bed_turn(&bed);
    assert_true(bed_expect(&bed, same, DP_OK)->reply.repeated);
    bed_expect(&bed, next, DP_OK);
    bed_close(&bed);
}

static void who_is_no_member_is_never_held(void **state)
{
    (void)state;
    struct bed bed;
    start(&bed);
    (void)pull(&bed, 2, 0, 1);
    bed_turn(&bed);
    assert_true(bed_value(&bed, 2, 1, dp_mix(7)) == 0);
    bed_close(&bed);
}

/* ---- crashes */

static void what_a_member_finished_survives_a_crash(void **state)
{
    (void)state;
    struct bed bed;
    struct member_bed_view view = member_bed_view(DP_SSP, 0, 2);
    member_bed_start_journaled(&bed, &view);
    uint64_t pushed = push(&bed, 2, 0, 0);
    bed_turn(&bed);
    bed_expect(&bed, pushed, DP_OK);
    pushed = push(&bed, 1, 1, 0);
    bed_turn(&bed);
    bed_expect(&bed, pushed, DP_OK);
    member_bed_crash(&bed);
    uint64_t goes = pull(&bed, 1, 0, 1), held = pull(&bed, 2, 0, 2);
    bed_turn(&bed);
    bed_turn(&bed);
    bed_expect(&bed, goes, DP_OK);
    assert_false(member_bed_is_answered(&bed, held));
    bed_close(&bed);
}

/* Others wait for that step, before a crash and after. */
static void a_push_that_was_refused_finishes_no_step(void **state)
{
    (void)state;
    struct bed bed;
    struct member_bed_view view = member_bed_view(DP_SSP, 0, 1);
    member_bed_start_journaled(&bed, &view);
    uint64_t key = dp_mix(7);
    struct dp_request request = {.kind = DP_REQUEST_PUSH,
                                 .session = 1,
                                 .sequence = 2,
                                 .member = member_bed_member(0, 0),
                                 .stream = MEMBER_BED_STREAM,
                                 .rate = 1,
                                 .sections = 1,
                                 .section = {{.table = dp_table_id("t"), .rows = 1}}};
    const float gradient[2] = {(float)NAN, 1};
    struct dp_frame frames[2] = {dp_frame_copy(&key, sizeof key), dp_frame_copy(gradient, sizeof gradient)};
    uint64_t refused = bed_send(&bed, &request, frames, 2), held = pull(&bed, 3, 0, 1);
    bed_turn(&bed);
    bed_expect(&bed, refused, DP_NOT_FINITE);
    assert_false(member_bed_is_answered(&bed, held));
    member_bed_crash(&bed);
    held = pull(&bed, 1, 0, 1);
    bed_turn(&bed);
    assert_false(member_bed_is_answered(&bed, held));
    bed_close(&bed);
}

static void who_was_replaced_is_so_after_a_crash(void **state)
{
    (void)state;
    struct bed bed;
    struct member_bed_view view = member_bed_view(DP_SSP, 0, 2);
    member_bed_start_journaled(&bed, &view);
    view.view.number = 2;
    view.member[1].incarnation = 555;
    bed_expect(&bed, member_bed_put(&bed, &view), DP_OK);
    uint64_t pushed = push(&bed, 2, 0, 0); /* whose answer shows that what is before it is durable */
    bed_turn(&bed);
    bed_expect(&bed, pushed, DP_OK);
    member_bed_crash(&bed);
    uint64_t dead = push(&bed, 1, 1, 0);
    bed_turn(&bed);
    bed_expect(&bed, dead, DP_REPLACED);
    bed_close(&bed);
}

/* ---- views */

static void a_newer_view_is_asked_for(void **state)
{
    (void)state;
    struct bed bed;
    start(&bed);
    struct dp_membership member = member_bed_member(0, 0);
    member.view = 4;
    uint64_t pulled = member_bed_pull(&bed, 1, 2, &member);
    uint64_t dropped = push(&bed, 3, 0, 0);
    bed_turn(&bed);
    const struct bed_reply *again = bed_expect(&bed, pulled, DP_AGAIN);
    assert_true(again->reply.wait.reason == DP_WAIT_VIEW && again->reply.wait.subject == 3 &&
                again->reply.wait.done == 1 && again->reply.wait.total == 4);
    assert_null(bed_reply_to(&bed, dropped));
    struct member_bed_view view = member_bed_view(DP_SSP, 0, 2);
    view.view.number = 5;
    assert_int_equal(bed_expect(&bed, member_bed_put(&bed, &view), DP_OK)->reply.version, 5);
    pulled = member_bed_pull(&bed, 1, 2, &member);
    bed_turn(&bed);
    bed_expect(&bed, pulled, DP_OK);
    view.view.number = 4; /* it comes late */
    assert_int_equal(bed_expect(&bed, member_bed_put(&bed, &view), DP_OK)->reply.version, 5);
    bed_close(&bed);
}

static void what_is_no_view_is_refused(void **state)
{
    (void)state;
    struct bed bed;
    struct dp_request request = {.kind = DP_REQUEST_VIEW_PUT};
    struct member_bed_view view = member_bed_view(DP_SSP, 1, 2);
    start(&bed);
    struct dp_frame frame = dp_frame_copy("no view", 7);
    bed_expect(&bed, bed_send(&bed, &request, &frame, 1), DP_INVALID);
    view.view.number = 2;
    bed_expect(&bed, member_bed_put(&bed, &view), DP_INVALID); /* ssp:1, but the run began with ssp:0 */
    view = member_bed_view(DP_SSP, 0, 2);
    view.view.run = 2;
    bed_expect(&bed, member_bed_put(&bed, &view), DP_REPLACED);
    uint64_t pulled = pull(&bed, 2, 0, 0);
    bed_turn(&bed);
    bed_expect(&bed, pulled, DP_OK);
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pull_waits_for_what_its_own_session_sends_behind_it),
        cmocka_unit_test(a_held_pull_hears_so_four_times_a_second),
        cmocka_unit_test(a_resend_of_a_held_pull_renews_it),
        cmocka_unit_test(a_held_pull_ends_at_its_deadline),
        cmocka_unit_test(a_session_with_nothing_but_a_held_pull_is_kept),
        cmocka_unit_test(held_pulls_leave_room_for_pushes),
        cmocka_unit_test(a_pull_that_cannot_be_held_lets_pushes_pass),
        cmocka_unit_test(no_more_than_the_bound_is_held),
        cmocka_unit_test(who_ends_first_holds_nobody),
        cmocka_unit_test(a_process_whose_place_was_taken_ends),
        cmocka_unit_test(others_come_slack_steps_past_a_member_that_stopped),
        cmocka_unit_test(a_drain_ends_held_pulls),
        cmocka_unit_test(an_again_of_a_later_request_loses_no_held_pull),
        cmocka_unit_test(a_repeated_push_counts_as_a_finished_step),
        cmocka_unit_test(who_is_no_member_is_never_held),
        cmocka_unit_test(what_a_member_finished_survives_a_crash),
        cmocka_unit_test(a_push_that_was_refused_finishes_no_step),
        cmocka_unit_test(who_was_replaced_is_so_after_a_crash),
        cmocka_unit_test(a_newer_view_is_asked_for),
        cmocka_unit_test(what_is_no_view_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
