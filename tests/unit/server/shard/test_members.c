/* Members of a run on a shard: the view that they hand over, who may speak by it, what counts as a finished step, and that all of
 * it is there after a crash. One row, which each push makes smaller by 1. */
#include "tests/unit/server/shard/member_bed.h"

#include "common/model/mix.h"

#include <math.h>

/* Its requests, waiting or new, change nothing; what it would have pushed its successor pushes under the same number. */
static void a_process_whose_place_was_taken_ends(void **state)
{
    struct bed bed;
    struct member_bed_view view = member_bed_view(DP_SSP, 0, 2);
    member_bed_start(&bed, &view);
    uint64_t held = member_bed_pull_step(&bed, 1, 1, 1);
    bed_turn(&bed);
    view.view.number = 2;
    view.member[1].incarnation = 555;
    bed_expect(&bed, member_bed_put(&bed, &view), DP_OK);
    bed_turn(&bed);
    assert_int_equal(member_bed_count(&bed, held, DP_REPLACED), 1);
    assert_int_equal(bed_counter(&bed, "pulls_held_now"), 0);
    uint64_t dead = member_bed_push_step(&bed, 2, 1, 0), dead_pull = member_bed_pull_step(&bed, 3, 1, 0);
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

/* The push found in the push ids is one that its member has finished, whoever applied it. */
static void a_repeated_push_counts_as_a_finished_step(void **state)
{
    struct bed bed;
    member_bed_start_two(&bed);
    uint64_t first = member_bed_push_step(&bed, 2, 0, 0);
    bed_turn(&bed);
    bed_expect(&bed, first, DP_OK);
    struct dp_membership other = member_bed_member(1, 0);
    uint64_t same = member_bed_push(&bed, 2, 1, &other, 0);
    uint64_t next = member_bed_pull_step(&bed, 3, 0, 1);
    bed_turn(&bed);
    assert_true(bed_expect(&bed, same, DP_OK)->reply.repeated);
    bed_expect(&bed, next, DP_OK);
    bed_close(&bed);
}

/* Others wait for that step, before a crash and after. */
static void a_push_that_was_refused_finishes_no_step(void **state)
{
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
    uint64_t refused = bed_send(&bed, &request, frames, 2), held = member_bed_pull_step(&bed, 3, 0, 1);
    bed_turn(&bed);
    bed_expect(&bed, refused, DP_NOT_FINITE);
    assert_false(member_bed_is_answered(&bed, held));
    member_bed_crash(&bed);
    held = member_bed_pull_step(&bed, 1, 0, 1);
    bed_turn(&bed);
    assert_false(member_bed_is_answered(&bed, held));
    bed_close(&bed);
}

/* Who was answered has joined, whatever happens. Planted: answered at once. */
static void who_was_replaced_is_so_after_a_crash(void **state)
{
    struct bed bed;
    struct member_bed_view view = member_bed_view(DP_SSP, 0, 2);
    member_bed_start_journaled(&bed, &view);
    view.view.number = 2;
    view.member[1].incarnation = 555;
    uint64_t put = member_bed_put_once(&bed, &view);
    const struct bed_reply *again = bed_expect(&bed, put, DP_AGAIN);
    assert_true(again->reply.wait.reason == DP_WAIT_DISK);
    uint64_t gone = member_bed_push_step(&bed, 1, 1, 0); /* it acts on it, though */
    bed_turn(&bed);
    bed_expect(&bed, gone, DP_REPLACED);
    assert_int_equal(bed_expect(&bed, member_bed_put_once(&bed, &view), DP_OK)->reply.version, 2);
    member_bed_crash(&bed);
    uint64_t dead = member_bed_push_step(&bed, 1, 1, 0);
    bed_turn(&bed);
    bed_expect(&bed, dead, DP_REPLACED);
    bed_close(&bed);
}

static uint64_t ask_to_return(struct bed *bed, struct member_bed_view *view, uint32_t rank)
{
    struct dp_request request = {.kind = DP_REQUEST_VIEW_PUT, .returns = true, .rank = rank};
    view->view.member = view->member;
    struct dp_frame frame = dp_frame_new(dp_view_bytes(&view->view));
    dp_view_pack(&view->view, frame.data);
    return bed_send(bed, &request, &frame, 1);
}

static const struct dp_reply *returned(struct bed *bed, struct member_bed_view *view, uint32_t rank)
{
    uint64_t id = ask_to_return(bed, view, rank);
    for (int tries = 0; tries < 9 && member_bed_count(bed, id, DP_AGAIN) > 0; tries++) {
        bed_turn(bed);
        id = ask_to_return(bed, view, rank);
    }
    return &bed_expect(bed, id, DP_OK)->reply;
}

/* It hears whether the shard has passed its step, also after a crash; and where the shard is. */
static void who_returns_hears_whether_it_takes_part(void **state)
{
    struct bed bed;
    struct member_bed_view view = member_bed_view(DP_SSP, 0, 2);
    member_bed_start_journaled(&bed, &view);
    (void)member_bed_push_step(&bed, 1, 0, 0);
    (void)member_bed_push_step(&bed, 2, 0, 1);
    bed_turn(&bed);
    bed_turn(&bed);
    view.view.number = 2;
    view.member[1].until = 0;
    const struct dp_reply *reply = returned(&bed, &view, 1);
    assert_true(reply->version == 2 && reply->begun && reply->begin == 2);
    view.view.number = 3;
    view.member[1] = (struct dp_member){.incarnation = 555, .until = UINT64_MAX, .from = 1};
    uint64_t first = ask_to_return(&bed, &view, 1);
    assert_int_equal(bed_expect(&bed, first, DP_AGAIN)->reply.wait.reason,
                     DP_WAIT_DISK); /* not durable yet */
    reply = returned(&bed, &view, 1);
    assert_true(reply->version == 3 && !reply->begun && reply->begin == 2);
    member_bed_crash(&bed);
    reply = returned(&bed, &view, 1);
    assert_true(reply->version == 3 && !reply->begun && reply->begin == 2);
    assert_true(returned(&bed, &view, 0)->begun);
    view.view.number = 4;
    view.member[1].from = 3;
    reply = returned(&bed, &view, 1);
    assert_true(reply->version == 4 && reply->begun && reply->begin == 2);
    view.view.number = 3; /* an older one: what is said is of the newest */
    view.member[1].from = 1;
    reply = returned(&bed, &view, 1);
    assert_true(reply->version == 4 && reply->begun);
    bed_expect(&bed, ask_to_return(&bed, &view, 2), DP_INVALID);
    const struct bed_reply *plain = bed_expect(&bed, member_bed_put(&bed, &view), DP_OK);
    assert_true(!plain->reply.begun && plain->reply.begin == 0);
    bed_close(&bed);
}

/* By a field: what a process does that hears it depends on it. */
static void who_was_let_leave_hears_that_it_may_join_again(void **state)
{
    struct bed bed;
    struct member_bed_view view = member_bed_view(DP_SSP, 0, 2);
    member_bed_start(&bed, &view);
    for (uint64_t number = 2; number < 4; number++) {
        view.view.number = number;
        view.member[1].incarnation = 555;
        view.member[1].until = number == 2 ? UINT64_MAX : 7;
        bed_expect(&bed, member_bed_put(&bed, &view), DP_OK);
        uint64_t gone = member_bed_push_step(&bed, number - 1, 1, 0);
        bed_turn(&bed);
        const struct dp_wait *wait = &bed_expect(&bed, gone, DP_REPLACED)->reply.wait;
        assert_int_equal(wait->reason, number == 2 ? DP_WAIT_NONE : DP_WAIT_VIEW);
        assert_true(number == 2 || (wait->subject == 3 && wait->done == 3 && wait->total == 4));
    }
    bed_close(&bed);
}

/* Before the register has a view that no shard takes. */
static void who_has_not_pushed_all_does_not_return(void **state)
{
    struct bed bed;
    struct member_bed_view view = member_bed_view(DP_SYNC, 0, 2);
    member_bed_start_journaled(&bed, &view);
    view.view.number = 2;
    view.member[1].until = 3;
    bed_expect(&bed, member_bed_put(&bed, &view), DP_OK);
    bed_expect(&bed, ask_to_return(&bed, &view, 1), DP_INVALID);
    assert_true(returned(&bed, &view, 0)->begun);
    bed_close(&bed);
}

static void a_newer_view_is_asked_for(void **state)
{
    struct bed bed;
    member_bed_start_two(&bed);
    struct dp_membership member = member_bed_member(0, 0);
    member.view = 4;
    uint64_t pulled = member_bed_pull(&bed, 1, 2, &member);
    uint64_t dropped = member_bed_push_step(&bed, 3, 0, 0);
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
    struct bed bed;
    struct dp_request request = {.kind = DP_REQUEST_VIEW_PUT};
    struct member_bed_view view = member_bed_view(DP_SSP, 1, 2);
    member_bed_start_two(&bed);
    struct dp_frame frame = dp_frame_copy("no view", 7);
    bed_expect(&bed, bed_send(&bed, &request, &frame, 1), DP_INVALID);
    view.view.number = 2;
    bed_expect(&bed, member_bed_put(&bed, &view), DP_INVALID); /* ssp:1, but the run began with ssp:0 */
    view = member_bed_view(DP_SSP, 0, 2);
    view.member[1].incarnation = 555; /* of a register that is not the one which numbered view 1 */
    bed_expect(&bed, member_bed_put(&bed, &view), DP_INVALID);
    view = member_bed_view(DP_SSP, 0, 2);
    view.view.run = 2;
    bed_expect(&bed, member_bed_put(&bed, &view), DP_REPLACED);
    uint64_t pulled = member_bed_pull_step(&bed, 2, 0, 0);
    bed_turn(&bed);
    bed_expect(&bed, pulled, DP_OK);
    bed_close(&bed);
}

/* Planted: any run; any number. */
static void no_view_shuts_out_later_ones(void **state)
{
    static const struct {
        uint32_t run;
        uint64_t number;
    } rubbish[] = {{UINT32_MAX, 1}, {INT32_MAX + UINT32_C(1), 1}, {INT32_MAX, 1},
                   {3, UINT64_MAX}, {3, 2 + (1 << 20)},           {4, UINT64_MAX}};
    struct bed bed;
    struct member_bed_view view = member_bed_view(DP_SSP, 0, 2);
    member_bed_start_two(&bed);
    for (size_t i = 0; i < sizeof rubbish / sizeof rubbish[0]; i++) {
        view.view.run = rubbish[i].run;
        view.view.number = rubbish[i].number;
        bed_expect(&bed, member_bed_put(&bed, &view), DP_INVALID);
    }
    view.view.run = 3;
    view.view.number = 1 + (1 << 20);
    bed_expect(&bed, member_bed_put(&bed, &view), DP_OK);
    view.view.run = 4;
    view.view.number = 1;
    bed_expect(&bed, member_bed_put(&bed, &view), DP_OK);
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_whose_place_was_taken_ends),
        cmocka_unit_test(a_repeated_push_counts_as_a_finished_step),
        cmocka_unit_test(a_push_that_was_refused_finishes_no_step),
        cmocka_unit_test(who_was_replaced_is_so_after_a_crash),
        cmocka_unit_test(who_returns_hears_whether_it_takes_part),
        cmocka_unit_test(who_was_let_leave_hears_that_it_may_join_again),
        cmocka_unit_test(who_has_not_pushed_all_does_not_return),
        cmocka_unit_test(a_newer_view_is_asked_for),
        cmocka_unit_test(what_is_no_view_is_refused),
        cmocka_unit_test(no_view_shuts_out_later_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
