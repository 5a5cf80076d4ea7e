/* Held pulls: what they take, and leave to others: sessions, places, memory. */
#include "tests/unit/server/shard/member_bed.h"

#include "server/shard/blocked_pulls.h"

#include <stdlib.h>

#define MS UINT64_C(1000000)

static void a_session_with_nothing_but_a_held_pull_is_kept(void **state)
{
    struct bed bed;
    member_bed_start_two(&bed);
    uint64_t held = member_bed_pull_step(&bed, 2, 0, 1);
    bed_turn(&bed);
    bed.now_ns += MS;
    for (uint64_t session = 10; session < 10 + 2 * DP_SESSIONS_MAX; session++)
        bed_meet(&bed, session);
    bed_meet(&bed, 2);
    (void)member_bed_push_step(&bed, 1, 1, 0);
    struct dp_membership self = member_bed_member(0, 0);
    (void)member_bed_push(&bed, 10 + 2 * DP_SESSIONS_MAX - 1, 1, &self, 0);
    bed_turn(&bed);
    assert_true(member_bed_is_answered(&bed, held));
    bed_close(&bed);
}

/* As many as may wait in all: pushes go on while they are held, and when all of them go back at once. */
static void held_pulls_leave_room_for_pushes(void **state)
{
    struct bed bed;
    member_bed_start_two(&bed);
    struct dp_membership member = member_bed_member(0, 1);
    for (uint64_t session = 10; session < 26; session++)
        bed_meet(&bed, session);
    for (uint64_t session = 10; session < 26; session++)
        for (uint64_t sequence = 1; sequence <= DP_SESSION_WINDOW; sequence++) {
            (void)member_bed_pull(&bed, session, sequence, &member);
            bed_turn(&bed);
        }
    assert_int_equal(bed_counter(&bed, "pulls_held_now"), 1024);
    uint64_t first = member_bed_push_step(&bed, 2, 0, 0);
    bed_turn(&bed);
    bed_expect(&bed, first, DP_OK);
    uint64_t pulls = bed_counter(&bed, "pulls");
    uint64_t last = member_bed_push_step(&bed, 1, 1, 0);
    assert_true(bed_one_turn(&bed)); /* they go back from the next turn on */
    bed_expect(&bed, last, DP_OK);
    assert_true(bed_one_turn(&bed));
    uint64_t between = member_bed_push_step(&bed, 2, 1, 1);
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
    struct bed bed;
    member_bed_start_two(&bed);
    for (uint64_t sequence = 2; sequence < 2 + DP_SESSION_WINDOW; sequence++) {
        (void)member_bed_pull_step(&bed, sequence, 0, 1);
        bed_turn(&bed);
    }
    uint64_t over = member_bed_pull_step(&bed, 66, 0, 1), pushed = member_bed_push_step(&bed, 67, 0, 0);
    bed_turn(&bed);
    bed_expect_wait(&bed, over, DP_AGAIN, QUEUE);
    bed_expect(&bed, pushed, DP_OK);
    assert_int_equal(bed_counter(&bed, "pulls_held_now"), 64);
    (void)member_bed_push_step(&bed, 1, 1, 0);
    bed_turn(&bed);
    bed.next_id = over;
    (void)member_bed_pull_step(&bed, 66, 0, 1);
    bed_turn(&bed);
    assert_int_equal(member_bed_count(&bed, over, DP_OK), 1);
    bed_close(&bed);
}

static void no_more_than_the_bound_is_held(void **state)
{
    struct bed bed;
    member_bed_start_two(&bed);
    struct dp_membership member = member_bed_member(0, 1);
    for (uint64_t session = 10; session < 74; session++) {
        bed_meet(&bed, session);
        for (uint64_t sequence = 1; sequence <= DP_SESSION_WINDOW; sequence++)
            (void)member_bed_pull(&bed, session, sequence, &member);
        bed_turn(&bed);
    }
    assert_int_equal(bed_counter(&bed, "pulls_held_now"), 4096);
    uint64_t over = member_bed_pull_step(&bed, 2, 0, 1), pushed = member_bed_push_step(&bed, 3, 0, 0);
    bed_turn(&bed);
    bed_expect_wait(&bed, over, DP_AGAIN, QUEUE);
    bed_expect(&bed, pushed, DP_OK);
    bed_close(&bed);
}

static void count_reply(void *context, const struct dp_peer *to, struct dp_message **message)
{
    struct dp_reply reply;
    struct dp_error err = {0};
    assert_int_equal(dp_reply_decode(*message, &reply, &err), DP_OK);
    ((uint32_t *)context)[reply.status == DP_HELD]++;
    dp_message_free(message);
}

static uint64_t stands_still(void *self)
{
    return 1;
}

/* Without a shard around it: pulls that say they are of 100 MB. */
static void no_more_bytes_than_the_bound_are_held(void **state)
{
    uint32_t heard[2] = {0};
    struct dp_shard_base *base = calloc(1, sizeof *base);
    struct dp_steps *steps = calloc(1, sizeof *steps);
    struct dp_sessions *sessions = NULL;
    struct dp_schedule schedule = {0};
    struct member_bed_view made = member_bed_view(DP_SSP, 0, 2);
    struct dp_view view;
    assert_true(base && steps && dp_sessions_new(&sessions) == DP_OK);
    base->clock = (struct dp_clock){stands_still, NULL};
    made.view.member = made.member;
    assert_int_equal(dp_view_copy(&made.view, &view, NULL), DP_OK);
    dp_steps_take(steps, &view, 1);
    const struct dp_replies replies = {.base = base, .reply = count_reply, .context = heard};
    struct dp_blocked_pulls held = {.base = base,
                                    .steps = steps,
                                    .replies = &replies,
                                    .schedule = &schedule,
                                    .sessions = sessions,
                                    .released_max = 10};
    struct dp_session *session = dp_sessions_add(sessions, 1);
    for (uint64_t sequence = 1; sequence <= 7; sequence++) {
        struct dp_waiting *pulled = calloc(1, sizeof *pulled);
        assert_non_null(pulled);
        *pulled = (struct dp_waiting){.bytes = 100u << 20, .deadline_ns = 10};
        pulled->request.kind = DP_REQUEST_PULL;
        pulled->request.id = pulled->request.sequence = sequence;
        pulled->request.session = 1;
        pulled->request.member = member_bed_member(0, 1);
        session->done = sequence;
        dp_blocked_pulls_add(&held, session, &pulled);
        assert_null(pulled);
    }
    assert_true(heard[true] == 5 && heard[false] == 2 && held.count == 5 && session->held == 5);
    dp_blocked_pulls_clear(&held);
    dp_steps_clear(steps);
    dp_sessions_free(&sessions);
    free(steps);
    free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_with_nothing_but_a_held_pull_is_kept),
        cmocka_unit_test(held_pulls_leave_room_for_pushes),
        cmocka_unit_test(a_pull_that_cannot_be_held_lets_pushes_pass),
        cmocka_unit_test(no_more_than_the_bound_is_held),
        cmocka_unit_test(no_more_bytes_than_the_bound_are_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
