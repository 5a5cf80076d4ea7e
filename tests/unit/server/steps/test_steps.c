/* Steps: views taken and refused, who may speak, and the verdicts of each mode. */
#include "tests/lib/test.h"

#include "server/modes/step_rules.h"

#include <stdlib.h>
#include <string.h>

#define MEMBERS_MAX 5u
#define NOW         UINT64_C(5000000000)

static enum dp_step_verdict push_rule(const struct dp_steps *steps, const struct dp_membership *member,
                                      struct dp_error *err)
{
    const struct dp_step_rules *rules = dp_step_rules_of(steps);
    return rules->push ? rules->push(steps, member, err) : DP_STEP_GO;
}

/* Member r has the incarnation 100 + r, and has not left. */
static struct dp_view view_of(enum dp_consistency mode, uint32_t slack, uint32_t members)
{
    struct dp_view view = {.run = 3,
                           .number = 2,
                           .mode = mode,
                           .slack = slack,
                           .first_step = 10,
                           .members = members,
                           .member = calloc(members, sizeof *view.member)};
    assert_non_null(view.member);
    for (uint32_t r = 0; r < members; r++)
        view.member[r] = (struct dp_member){.incarnation = 100 + r, .until = UINT64_MAX, .from = 10};
    return view;
}

static struct dp_steps *steps_of(enum dp_consistency mode, uint32_t slack, uint32_t members)
{
    struct dp_steps *steps = calloc(1, sizeof *steps);
    struct dp_view view = view_of(mode, slack, members);
    assert_non_null(steps);
    assert_int_equal(dp_steps_look(steps, &view, NULL), DP_VIEW_NEW_RUN);
    dp_steps_take(steps, &view, NOW);
    assert_null(view.member);
    return steps;
}

static void end(struct dp_steps *steps)
{
    dp_steps_clear(steps);
    free(steps);
}

static struct dp_membership member(uint32_t rank, uint64_t step)
{
    return (struct dp_membership){
        .given = true, .run = 3, .rank = rank, .view = 2, .incarnation = 100 + rank, .step = step};
}

static enum dp_step_verdict pull(const struct dp_steps *steps, uint32_t rank, uint64_t step)
{
    struct dp_membership who = member(rank, step);
    struct dp_error err = {0};
    enum dp_step_verdict verdict = dp_step_rules_pull(steps, &who, &err);
    assert_int_equal(verdict == DP_STEP_REFUSED, err.status == DP_INVALID);
    return verdict;
}

static enum dp_step_verdict push(const struct dp_steps *steps, uint32_t rank, uint64_t step)
{
    struct dp_membership who = member(rank, step);
    struct dp_error err = {0};
    enum dp_step_verdict verdict = push_rule(steps, &who, &err);
    assert_int_equal(verdict == DP_STEP_REFUSED, err.status == DP_INVALID);
    return verdict;
}

static enum dp_status check(const struct dp_steps *steps, struct dp_membership who, struct dp_error *err)
{
    *err = (struct dp_error){0};
    enum dp_status st = dp_steps_check(steps, &who, err);
    assert_int_equal(st, err->status);
    return st;
}

/* ---- views */

static void a_later_view_of_the_run_keeps_the_steps(void **state)
{
    struct dp_steps *steps = steps_of(DP_SSP, 0, 3);
    dp_steps_pushed(steps, 1, 14);
    struct dp_view view = view_of(DP_SSP, 0, 3);
    view.number = 3;
    view.member[2].incarnation = 999;
    assert_int_equal(dp_steps_look(steps, &view, NULL), DP_VIEW_NEWER);
    uint64_t changes = steps->changes;
    dp_steps_take(steps, &view, NOW + 7);
    assert_true(steps->changes > changes);
    assert_true(steps->next[0] == 10 && steps->next[1] == 15 && steps->next[2] == 10);
    assert_true(steps->heard_ns[1] == NOW && steps->heard_ns[2] == NOW + 7); /* a process that just joined */
    view = view_of(DP_SSP, 0, 3);
    assert_int_equal(dp_steps_look(steps, &view, NULL), DP_VIEW_KNOWN); /* number 2 again */
    dp_view_clear(&view);
    end(steps);
}

static void a_later_run_begins_anew(void **state)
{
    struct dp_steps *steps = steps_of(DP_SYNC, 0, 2);
    dp_steps_pushed(steps, 0, 10);
    dp_steps_pushed(steps, 1, 10);
    dp_steps_closed(steps);
    struct dp_view view = view_of(DP_SSP, 4, 3);
    view.run = 4;
    view.number = 1;
    view.first_step = 2;
    for (uint32_t r = 0; r < 3; r++)
        view.member[r].from = 2;
    assert_int_equal(dp_steps_look(steps, &view, NULL), DP_VIEW_NEW_RUN);
    dp_steps_take(steps, &view, NOW);
    assert_int_equal(steps->open, 2);
    for (uint32_t r = 0; r < 3; r++)
        assert_int_equal(steps->next[r], 2);
    struct dp_error err = {0};
    view = view_of(DP_SYNC, 0, 2);
    view.number = 99;
    assert_int_equal(dp_steps_look(steps, &view, &err), DP_VIEW_REFUSED);
    assert_int_equal(err.status, DP_REPLACED);
    dp_view_clear(&view);
    end(steps);
}

/* Else an acknowledged push could be dropped, or be missing where it counts again. */
static void a_member_leaves_once_and_behind_its_steps(void **state)
{
    struct dp_steps *steps = steps_of(DP_SYNC, 0, 2);
    dp_steps_pushed(steps, 0, steps->view.first_step);
    uint64_t next = steps->next[0];
    static const struct {
        int64_t until; /* beyond next */
        bool refused;
    } views[] = {{-1, true}, {1, false}, {2, true}, {0, true}, {INT64_MAX, true}, {1, false}};
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        struct dp_error err = {0};
        struct dp_view view = view_of(DP_SYNC, 0, 2);
        view.number = 10 + i;
        view.member[0].until = views[i].until == INT64_MAX ? UINT64_MAX : next + (uint64_t)views[i].until;
        enum dp_view_news news = dp_steps_look(steps, &view, &err);
        assert_int_equal(news, views[i].refused ? DP_VIEW_REFUSED : DP_VIEW_NEWER);
        assert_int_equal(err.status, views[i].refused ? DP_INVALID : DP_OK);
        if (news == DP_VIEW_NEWER)
            dp_steps_take(steps, &view, NOW);
        dp_view_clear(&view);
    }
    end(steps);
}

static void what_a_run_began_with_stays(void **state)
{
    struct dp_steps *steps = steps_of(DP_SSP, 4, 3);
    for (uint32_t what = 0; what < 4; what++) {
        struct dp_error err = {0};
        struct dp_view view = view_of(what == 0 ? DP_SYNC : DP_SSP, what == 1 ? 5 : 4, what == 2 ? 2 : 3);
        view.first_step += what == 3;
        view.number = 3;
        assert_int_equal(dp_steps_look(steps, &view, &err), DP_VIEW_REFUSED);
        assert_int_equal(err.status, DP_INVALID);
        dp_view_clear(&view);
    }
    end(steps);
}

static void marks_restore_what_was(void **state)
{
    struct dp_steps *steps = calloc(1, sizeof *steps);
    const struct dp_steps_place place[] = {{17, 10, 0}, {15, 10, 0}, {16, 10, 0}};
    struct dp_view view = view_of(DP_SSP, 1, 3);
    view.number = 8;
    assert_non_null(steps);
    dp_steps_restore(steps, &view, 12, place, NOW);
    assert_true(steps->view.number == 8 && steps->open == 12);
    for (uint32_t r = 0; r < 3; r++)
        assert_int_equal(steps->next[r], place[r].next);
    assert_true(steps->least == 15 && steps->least_rank == 1);
    assert_int_equal(pull(steps, 0, 17), DP_STEP_HELD);
    assert_int_equal(pull(steps, 0, 16), DP_STEP_GO);
    end(steps);
}

/* ---- who may speak */

static void only_todays_members_may_speak(void **state)
{
    struct dp_error err;
    struct dp_membership who = member(1, 12);
    struct dp_steps *steps = calloc(1, sizeof *steps);
    assert_non_null(steps);
    assert_int_equal(check(steps, who, &err), DP_AGAIN); /* there is no view at all */
    assert_true(err.wait.reason == DP_WAIT_VIEW && err.wait.subject == 3 && err.wait.done == 0 &&
                err.wait.total == 2);
    end(steps);
    steps = steps_of(DP_SSP, 0, 2);
    assert_int_equal(check(steps, who, &err), DP_OK);
    who.view = 1; /* what it knew then is true of it still */
    assert_int_equal(check(steps, who, &err), DP_OK);
    who.view = 3;
    assert_int_equal(check(steps, who, &err), DP_AGAIN);
    assert_true(err.wait.reason == DP_WAIT_VIEW && err.wait.subject == 3 && err.wait.done == 2 &&
                err.wait.total == 3);
    who.run = 4;
    who.view = 1;
    assert_int_equal(check(steps, who, &err), DP_AGAIN);
    assert_true(err.wait.subject == 4 && err.wait.done == 0 && err.wait.total == 1);
    who.run = 2;
    assert_int_equal(check(steps, who, &err), DP_REPLACED);
    who = member(1, 12);
    who.incarnation = 7;
    assert_int_equal(check(steps, who, &err), DP_REPLACED);
    assert_non_null(strstr(err.text, "worker 1"));
    assert_int_equal(check(steps, member(2, 12), &err), DP_INVALID);
    assert_int_equal(check(steps, member(1, 9), &err), DP_INVALID);
    end(steps);
}

static void who_has_left_takes_part_in_no_later_step(void **state)
{
    struct dp_error err;
    struct dp_steps *steps = steps_of(DP_SSP, 0, 2);
    struct dp_view view = view_of(DP_SSP, 0, 2);
    view.number = 3;
    view.member[0].until = 13;
    dp_steps_take(steps, &view, NOW);
    assert_int_equal(check(steps, member(0, 12), &err), DP_OK);
    assert_int_equal(check(steps, member(0, 13), &err), DP_INVALID);
    assert_int_equal(check(steps, member(1, 13), &err), DP_OK);
    end(steps);
}

/* ---- ssp */

static void a_held_pull_says_for_whom(void **state)
{
    struct dp_steps *steps = steps_of(DP_SSP, 1, 3);
    struct dp_membership who = member(2, 10);
    struct dp_error err = {0};
    dp_steps_pushed(steps, 0, 11);
    dp_steps_pushed(steps, 2, 11);
    dp_steps_heard(steps, &who, NOW + UINT64_C(20000000000));
    who = member(0, 12);
    assert_int_equal(dp_step_rules_pull(steps, &who, &err), DP_STEP_HELD);
    assert_int_equal(dp_steps_say_held(steps, &who, NOW + UINT64_C(12340000000), &err), 12340);
    assert_string_equal(
        err.text, "step 12 waits for worker 1, which has finished 10 steps and was last heard 12.3 s ago");
    assert_true(err.wait.subject == 1 && err.wait.done == 10 && err.wait.total == 11);
    struct dp_view view = view_of(DP_SSP, 1, 3);
    view.number = 3;
    view.member[1].incarnation = 0;
    dp_steps_take(steps, &view, NOW);
    (void)dp_steps_say_held(steps, &who, NOW, &err);
    assert_string_equal(err.text, "step 12 waits for worker 1, which has not joined yet");
    end(steps);
}

/* Planted: said of the first steps, too; said of a shard that has steps of the member. */
static void a_shard_that_lost_the_run_says_so(void **state)
{
    struct dp_steps *steps = steps_of(DP_SSP, 1, 2);
    struct dp_membership who = member(0, 10 + 1 + 128);
    struct dp_error err = {0};
    (void)dp_steps_say_held(steps, &who, NOW, &err);
    assert_null(strstr(err.text, "replaced"));
    who = member(0, 10 + 1 + 128 + 1);
    (void)dp_steps_say_held(steps, &who, NOW, &err);
    assert_non_null(
        strstr(err.text, "step 140 waits for worker 0; but this shard knows no step of the run, of worker 0 "
                         "either, which pulls: was its store replaced?"));
    dp_steps_pushed(steps, 0, 10);
    (void)dp_steps_say_held(steps, &who, NOW, &err);
    assert_string_equal(
        err.text, "step 140 waits for worker 1, which has finished 10 steps and was last heard 0.0 s ago");
    end(steps);
}

static void no_step_is_too_small_to_go(void **state)
{
    struct dp_steps *steps = calloc(1, sizeof *steps);
    struct dp_view view = view_of(DP_SSP, 4, 1);
    view.first_step = view.member[0].from = 0;
    assert_non_null(steps);
    dp_steps_take(steps, &view, NOW);
    for (uint64_t step = 0; step < 8; step++)
        assert_int_equal(pull(steps, 0, step), step <= 4 ? DP_STEP_GO : DP_STEP_HELD);
    end(steps);
}

static void a_step_pushed_again_takes_nothing_back(void **state)
{
    struct dp_steps *steps = steps_of(DP_SSP, 0, 1);
    dp_steps_pushed(steps, 0, 15);
    dp_steps_pushed(steps, 0, 11);
    assert_int_equal(steps->next[0], 16);
    end(steps);
}

static void async_holds_nobody(void **state)
{
    struct dp_steps *steps = steps_of(DP_ASYNC, 0, 2);
    assert_int_equal(pull(steps, 0, 1000), DP_STEP_GO);
    assert_int_equal(push(steps, 0, 1000), DP_STEP_GO);
    dp_steps_pushed(steps, 0, 1000);
    assert_int_equal(dp_steps_gap(steps, 1000), 990);
    end(steps);
}

/* ---- sync */

static void a_synchronous_pull_sees_the_steps_before_it_only(void **state)
{
    struct dp_steps *steps = steps_of(DP_SYNC, 0, 2);
    struct dp_membership who = member(0, 11);
    struct dp_error err = {0};
    assert_int_equal(pull(steps, 0, 10), DP_STEP_GO);
    assert_int_equal(pull(steps, 0, 11), DP_STEP_HELD);
    dp_steps_pushed(steps, 0, 10);
    assert_int_equal(pull(steps, 0, 10), DP_STEP_GO); /* it starts again within the step */
    assert_int_equal(pull(steps, 0, 11), DP_STEP_HELD);
    (void)dp_steps_say_held(steps, &who, NOW, &err);
    assert_true(err.wait.subject == 1 && err.wait.done == 10 && err.wait.total == 11);
    assert_false(dp_steps_is_gathered(steps));
    dp_steps_pushed(steps, 1, 10);
    assert_true(dp_steps_is_gathered(steps));
    assert_int_equal(pull(steps, 0, 11), DP_STEP_HELD); /* not before the close */
    (void)dp_steps_say_held(steps, &who, NOW, &err);
    assert_true(err.wait.reason == DP_WAIT_STEP && err.wait.done == 11 && err.wait.total == 11);
    assert_string_equal(err.text, "step 11 waits until step 10 is closed: all its pushes are there");
    uint64_t changes = steps->changes;
    dp_steps_closed(steps);
    assert_true(steps->changes > changes && steps->open == 11 && !dp_steps_is_gathered(steps));
    assert_int_equal(pull(steps, 0, 11), DP_STEP_GO);
    assert_int_equal(pull(steps, 1, 10), DP_STEP_OLD);
    dp_steps_pushed(steps, 0, 11);
    dp_steps_pushed(steps, 1, 11);
    dp_steps_closed(steps);
    assert_int_equal(pull(steps, 1, 10), DP_STEP_REFUSED);
    end(steps);
}

static void each_synchronous_step_is_pushed_once_in_order(void **state)
{
    struct dp_steps *steps = steps_of(DP_SYNC, 0, 2);
    assert_int_equal(push(steps, 0, 11), DP_STEP_REFUSED);
    assert_int_equal(push(steps, 0, 10), DP_STEP_KEEP);
    dp_steps_pushed(steps, 0, 10);
    assert_int_equal(push(steps, 0, 10), DP_STEP_REFUSED);
    assert_int_equal(push(steps, 0, 11), DP_STEP_KEEP); /* an empty one comes ahead of the close */
    assert_int_equal(push(steps, 1, 10), DP_STEP_KEEP);
    end(steps);
}

static void who_has_left_is_not_waited_for(void **state)
{
    struct dp_steps *steps = steps_of(DP_SYNC, 0, 3);
    struct dp_view view = view_of(DP_SYNC, 0, 3);
    view.number = 3;
    view.member[2].until = 10;
    dp_steps_take(steps, &view, NOW);
    dp_steps_pushed(steps, 0, 10);
    assert_false(dp_steps_is_gathered(steps));
    assert_int_equal(pull(steps, 0, 11), DP_STEP_HELD);
    dp_steps_pushed(steps, 1, 10);
    assert_true(dp_steps_is_gathered(steps));
    dp_steps_closed(steps);
    view = view_of(DP_SYNC, 0, 3);
    view.number = 4;
    for (uint32_t r = 0; r < 3; r++)
        view.member[r].until = r < 2 ? 11 : 10;
    assert_true(dp_steps_has_open(steps));
    dp_steps_take(steps, &view, NOW);
    assert_false(dp_steps_has_open(steps) || dp_steps_is_gathered(steps)); /* nobody is left to close it */
    assert_true(steps->least == UINT64_MAX);
    end(steps);
}

/* ---- sync:B */

static void a_step_is_gathered_without_its_backups(void **state)
{
    for (uint32_t members = 2; members <= MEMBERS_MAX; members++)
        for (uint32_t backups = 0; backups < members; backups++) {
            struct dp_steps *steps = steps_of(DP_SYNC, backups, members);
            for (uint32_t rank = 0; rank < members; rank++) {
                assert_true(dp_steps_is_gathered(steps) == (rank >= members - backups));
                dp_steps_pushed(steps, rank, 10);
                dp_steps_pushed(steps, rank, 10); /* again: counts once */
            }
            dp_steps_closed(steps);
            assert_true(steps->open == 11 && !dp_steps_is_gathered(steps));
            end(steps);
        }
}

static void what_comes_late_is_dropped(void **state)
{
    struct dp_steps *steps = steps_of(DP_SYNC, 1, 2);
    dp_steps_pushed(steps, 0, 10);
    dp_steps_closed(steps);
    dp_steps_pushed(steps, 0, 11);
    dp_steps_closed(steps);
    assert_int_equal(pull(steps, 1, 10), DP_STEP_GO); /* and sees the open one */
    assert_int_equal(pull(steps, 1, 11), DP_STEP_GO);
    assert_int_equal(pull(steps, 1, 12), DP_STEP_GO);
    assert_int_equal(pull(steps, 1, 13), DP_STEP_HELD);
    assert_int_equal(push(steps, 1, 11), DP_STEP_REFUSED); /* in order */
    assert_int_equal(push(steps, 1, 10), DP_STEP_DROP);
    dp_steps_pushed(steps, 1, 10);
    assert_false(dp_steps_is_gathered(steps));
    assert_int_equal(push(steps, 1, 10),
                     DP_STEP_DROP); /* new by its id: a restored shard may know less of those */
    assert_int_equal(push(steps, 1, 11), DP_STEP_DROP);
    dp_steps_pushed(steps, 1, 11);
    assert_false(dp_steps_is_gathered(steps));
    assert_int_equal(push(steps, 1, 12), DP_STEP_KEEP);
    dp_steps_pushed(steps, 1, 12);
    assert_true(dp_steps_is_gathered(steps));
    end(steps);
}

static void fewer_members_want_fewer_pushes(void **state)
{
    struct dp_steps *steps = steps_of(DP_SYNC, 2, 4);
    struct dp_view view = view_of(DP_SYNC, 2, 4);
    const struct dp_steps_place place[4] = {{11, 10, 0}, {10, 10, 0}, {10, 10, 0}, {10, 10, 0}};
    dp_steps_pushed(steps, 0, 10);
    assert_false(dp_steps_is_gathered(steps));
    view.number = 3;
    view.member[3].until = 10;
    dp_steps_take(steps, &view, NOW);
    assert_true(dp_steps_is_gathered(steps)); /* one of three */
    assert_int_equal(dp_view_copy(&steps->view, &view, NULL), DP_OK);
    end(steps);
    steps = calloc(1, sizeof *steps); /* as marks tell it */
    assert_non_null(steps);
    dp_steps_restore(steps, &view, 10, place, NOW);
    assert_true(dp_steps_is_gathered(steps) && steps->wanted == 1 && steps->pushed == 1);
    view = view_of(DP_SYNC, 2, 4);
    view.number = 4;
    for (uint32_t rank = 1; rank < 4; rank++)
        view.member[rank].until = 10;
    dp_steps_take(steps, &view, NOW);
    assert_true(steps->wanted == 1 && dp_steps_is_gathered(steps)); /* never fewer than one */
    end(steps);
}

static void who_is_missing_is_named(void **state)
{
    struct dp_steps *steps = steps_of(DP_SYNC, 1, 5);
    struct dp_view view = view_of(DP_SYNC, 1, 5);
    struct dp_membership who = member(1, 10);
    struct dp_error err = {0};
    view.number = 3;
    view.member[2].incarnation = 0;
    dp_steps_take(steps, &view, NOW);
    dp_steps_heard(steps, &who, NOW + UINT64_C(3000000000));
    dp_steps_pushed(steps, 0, 10);
    who = member(0, 11);
    assert_int_equal(dp_steps_say_held(steps, &who, NOW + UINT64_C(4200000000), &err), 4200);
    assert_string_equal(
        err.text, "step 11 waits until all but 1 of 5 workers have pushed step 10: missing are worker 1 "
                  "(last heard 1.2 s ago), worker 2 (not joined yet), worker 3 (last heard 4.2 s ago) and "
                  "1 more");
    assert_true(err.status == DP_HELD && err.wait.reason == DP_WAIT_STEP && err.wait.subject == 3 &&
                err.wait.done == 10 && err.wait.total == 11);
    for (uint32_t rank = 3; rank < 5; rank++)
        dp_steps_pushed(steps, rank, 10);
    (void)dp_steps_say_held(steps, &who, NOW + UINT64_C(4200000000), &err);
    assert_string_equal(
        err.text, "step 11 waits until all but 1 of 5 workers have pushed step 10: missing are worker 1 "
                  "(last heard 1.2 s ago), worker 2 (not joined yet)");
    assert_true(err.wait.subject == 1);
    dp_steps_pushed(steps, 1, 10);
    (void)dp_steps_say_held(steps, &who, NOW, &err);
    assert_string_equal(err.text, "step 11 waits until step 10 is closed: all its pushes are there");
    end(steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_later_view_of_the_run_keeps_the_steps),
        cmocka_unit_test(a_later_run_begins_anew),
        cmocka_unit_test(a_member_leaves_once_and_behind_its_steps),
        cmocka_unit_test(what_a_run_began_with_stays),
        cmocka_unit_test(marks_restore_what_was),
        cmocka_unit_test(only_todays_members_may_speak),
        cmocka_unit_test(who_has_left_takes_part_in_no_later_step),
        cmocka_unit_test(a_held_pull_says_for_whom),
        cmocka_unit_test(a_shard_that_lost_the_run_says_so),
        cmocka_unit_test(no_step_is_too_small_to_go),
        cmocka_unit_test(a_step_pushed_again_takes_nothing_back),
        cmocka_unit_test(async_holds_nobody),
        cmocka_unit_test(a_synchronous_pull_sees_the_steps_before_it_only),
        cmocka_unit_test(each_synchronous_step_is_pushed_once_in_order),
        cmocka_unit_test(who_has_left_is_not_waited_for),
        cmocka_unit_test(a_step_is_gathered_without_its_backups),
        cmocka_unit_test(what_comes_late_is_dropped),
        cmocka_unit_test(fewer_members_want_fewer_pushes),
        cmocka_unit_test(who_is_missing_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
