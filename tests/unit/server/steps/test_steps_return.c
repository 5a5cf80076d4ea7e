/* Steps: members that leave and take part again, on one shard: when a return is accepted, what still counts of before, and what the mark
 * keeps of it. Several shards: sim/away. */
#include "tests/lib/test.h"

#include "common/base/bytes.h"
#include "server/steps/steps_mark.h"

#include <stdlib.h>
#include <string.h>

#define NOW   UINT64_C(5000000000)
#define NEVER UINT64_MAX

struct scene {
    struct dp_steps *steps;
    uint64_t number;
};

static struct dp_view view_of(enum dp_consistency mode, uint32_t slack, uint64_t number)
{
    struct dp_view view = {.run = 3,
                           .number = number,
                           .mode = mode,
                           .slack = slack,
                           .first_step = 10,
                           .members = 3,
                           .member = calloc(3, sizeof *view.member)};
    assert_non_null(view.member);
    for (uint32_t r = 0; r < 3; r++)
        view.member[r] = (struct dp_member){.incarnation = 100 + r, .until = NEVER, .from = 10};
    return view;
}

static struct scene begun(enum dp_consistency mode, uint32_t slack)
{
    struct scene s = {.steps = calloc(1, sizeof *s.steps), .number = 1};
    struct dp_view view = view_of(mode, slack, 1);
    assert_non_null(s.steps);
    dp_steps_take(s.steps, &view, NOW);
    return s;
}

static void end(struct scene *s)
{
    dp_steps_clear(s->steps);
    free(s->steps);
}

/* A view in which this member's slot is another. */
static enum dp_view_news set(struct scene *s, uint32_t rank, uint64_t from, uint64_t until)
{
    struct dp_view view;
    struct dp_error err = {0};
    assert_int_equal(dp_view_copy(&s->steps->view, &view, &err), DP_OK);
    view.number = ++s->number;
    view.member[rank].from = from;
    view.member[rank].until = until;
    enum dp_view_news news = dp_steps_look(s->steps, &view, &err);
    assert_int_equal(err.status, news == DP_VIEW_REFUSED ? DP_INVALID : DP_OK);
    if (news == DP_VIEW_NEWER)
        dp_steps_take(s->steps, &view, NOW);
    dp_view_clear(&view);
    return news;
}

static void accepted(struct scene *s, uint32_t rank, uint64_t from)
{
    assert_int_equal(set(s, rank, from, NEVER), DP_VIEW_NEWER);
    assert_true(dp_steps_has_begun(s->steps, rank) && s->steps->start[rank] == from);
    assert_int_equal(s->steps->next[rank], from);
}

static void passed(struct scene *s, uint32_t rank, uint64_t from)
{
    assert_int_equal(set(s, rank, from, NEVER), DP_VIEW_NEWER);
    assert_false(dp_steps_has_begun(s->steps, rank));
    for (uint64_t step = s->steps->open; step < from + 9; step++)
        assert_true(step < s->steps->former[rank] || !dp_steps_takes_part(s->steps, rank, step));
}

static void refused(struct scene *s, uint32_t rank, uint64_t from, uint64_t until)
{
    assert_int_equal(set(s, rank, from, until), DP_VIEW_REFUSED);
    s->number--;
}

/* Members `ranks`, a bit each, push the open step, and it is closed. */
static void close_with(struct scene *s, uint32_t ranks)
{
    uint64_t open = s->steps->open;
    for (uint32_t r = 0; r < 3; r++)
        if (ranks >> r & 1)
            dp_steps_pushed(s->steps, r, open);
    assert_true(dp_steps_is_gathered(s->steps));
    dp_steps_closed(s->steps);
}

static enum dp_status may(const struct scene *s, uint32_t rank, uint64_t step)
{
    const struct dp_membership who = {
        .given = true, .run = 3, .rank = rank, .view = 1, .incarnation = 100 + rank, .step = step};
    return dp_steps_check(s->steps, &who, NULL);
}

static void who_returns_may_speak_of_its_steps_only(void **state)
{
    struct scene s = begun(DP_SYNC, 0);
    close_with(&s, 7);
    assert_int_equal(set(&s, 2, 10, 11), DP_VIEW_NEWER);
    assert_int_equal(may(&s, 2, 10), DP_OK);
    passed(&s, 2, 11);
    assert_int_equal(may(&s, 2, 10), DP_INVALID);
    assert_int_equal(may(&s, 2, 11), DP_INVALID);
    assert_int_equal(may(&s, 2, 99), DP_INVALID);
    accepted(&s, 2, 14);
    assert_int_equal(may(&s, 2, 13), DP_INVALID);
    assert_int_equal(may(&s, 2, 14), DP_OK);
    assert_int_equal(set(&s, 2, 14, 15), DP_VIEW_NEWER);
    assert_int_equal(may(&s, 2, 14), DP_OK);
    assert_int_equal(may(&s, 2, 15), DP_INVALID);
    assert_int_equal(may(&s, 1, 11), DP_OK);
    end(&s);
}

/* It had pushed the open step before it left: its push is kept, and the step closes with it, as it did on other shards. */
static void what_it_pushed_before_counts_for_the_open_step(void **state)
{
    struct scene s = begun(DP_SYNC, 0);
    dp_steps_pushed(s.steps, 2, 10);
    assert_int_equal(set(&s, 2, 10, 11), DP_VIEW_NEWER);
    assert_true(s.steps->wanted == 3 && s.steps->pushed == 1);
    accepted(&s, 2, 12);
    assert_true(s.steps->wanted == 3 && s.steps->pushed == 1 && dp_steps_takes_part(s.steps, 2, 10));
    accepted(&s, 2, 13); /* moved */
    assert_true(dp_steps_takes_part(s.steps, 2, 10) && !dp_steps_takes_part(s.steps, 2, 11));
    close_with(&s, 3);
    assert_int_equal(s.steps->wanted, 2);
    end(&s);
}

static void nonsense_is_refused(void **state)
{
    struct scene s = begun(DP_SYNC, 0);
    close_with(&s, 7);
    close_with(&s, 7);
    refused(&s, 2, 9, NEVER);  /* before the run */
    refused(&s, 2, 20, NEVER); /* it has pushed, and not left */
    assert_int_equal(dp_steps_check_left(s.steps, 2, NULL), DP_OK);
    refused(&s, 2, 11, 11);
    assert_int_equal(set(&s, 2, 10, 14), DP_VIEW_NEWER); /* it still has to push two */
    refused(&s, 2, 13, NEVER);
    refused(&s, 2, 20, NEVER);
    refused(&s, 2, 10, NEVER);
    close_with(&s, 7);
    refused(&s, 2, 20, NEVER);
    assert_int_equal(dp_steps_check_left(s.steps, 2, NULL), DP_INVALID); /* who would ask hears it before */
    close_with(&s, 7);
    assert_int_equal(dp_steps_check_left(s.steps, 2, NULL), DP_OK);
    refused(&s, 2, 13, NEVER);
    accepted(&s, 2, 20);
    refused(&s, 2, 19, NEVER); /* taken back */
    refused(&s, 2, 10, 14);
    refused(&s, 2, 20, 19);
    refused(&s, 2, 25, 24);
    assert_int_equal(set(&s, 2, 20, 20), DP_VIEW_NEWER); /* it died before it pushed */
    refused(&s, 2, 20, NEVER);
    accepted(&s, 2, 21);
    end(&s);
    s = begun(DP_SSP, 0);
    assert_int_equal(set(&s, 2, 10, 20), DP_VIEW_NEWER);
    refused(&s, 2, 19, NEVER); /* before its end */
    accepted(&s, 2, 20);
    end(&s);
    s = begun(DP_SYNC, 0);
    dp_steps_pushed(s.steps, 2, 10);
    assert_int_equal(set(&s, 2, 10, 11), DP_VIEW_NEWER);
    accepted(&s, 2, 12);
    dp_steps_pushed(s.steps, 2, 12);
    assert_int_equal(set(&s, 2, 12, 13), DP_VIEW_NEWER);
    refused(&s, 2, 20, NEVER); /* only the last end is remembered, and step 10 is open */
    assert_int_equal(dp_steps_check_left(s.steps, 2, NULL), DP_AGAIN);
    close_with(&s, 3);
    assert_int_equal(dp_steps_check_left(s.steps, 2, NULL), DP_OK);
    accepted(&s, 2, 20);
    end(&s);
}

static void ssp_accepts_what_nobody_was_told_to_be_over(void **state)
{
    struct scene s = begun(DP_SSP, 1);
    for (uint64_t step = 10; step < 15; step++)
        dp_steps_pushed(s.steps, 0, step);
    for (uint64_t step = 10; step < 13; step++)
        dp_steps_pushed(s.steps, 1, step);
    assert_int_equal(set(&s, 2, 10, 10), DP_VIEW_NEWER);
    assert_true(s.steps->least == 13 && dp_steps_begin(s.steps) == 13);
    passed(&s, 2, 12);
    assert_int_equal(s.steps->least, 13); /* it is not waited for */
    accepted(&s, 2, 13);
    accepted(&s, 2, 14);
    assert_int_equal(s.steps->least, 13);
    dp_steps_pushed(s.steps, 1, 17);
    assert_true(s.steps->least == 14 && s.steps->least_rank == 2); /* it is */
    assert_int_equal(set(&s, 0, 10, 15), DP_VIEW_NEWER);
    assert_int_equal(set(&s, 1, 10, 18), DP_VIEW_NEWER);
    assert_int_equal(set(&s, 2, 14, 14), DP_VIEW_NEWER);
    assert_true(s.steps->least == NEVER && dp_steps_begin(s.steps) == 18); /* all have finished */
    passed(&s, 2, 17);
    accepted(&s, 2, 18);
    assert_int_equal(s.steps->least, 18);
    end(&s);
}

static struct scene from_mark(const void *bytes, size_t size)
{
    struct scene s = {.steps = calloc(1, sizeof *s.steps)};
    struct dp_error err = {0};
    assert_non_null(s.steps);
    if (dp_steps_mark_unpack(bytes, size, s.steps, NOW, &err) != DP_OK)
        fail_msg("%s", err.text);
    s.number = s.steps->view.number;
    return s;
}

/* Worker 1 was passed, worker 2 accepted; and of its push before it left the open step waits. */
static void the_mark_keeps_what_was_accepted(void **state)
{
    struct scene s = begun(DP_SYNC, 0);
    char bytes[400];
    close_with(&s, 7);
    assert_int_equal(set(&s, 1, 10, 11), DP_VIEW_NEWER);
    passed(&s, 1, 11);
    dp_steps_pushed(s.steps, 2, 11);
    assert_int_equal(set(&s, 2, 10, 12), DP_VIEW_NEWER);
    accepted(&s, 2, 14);
    size_t size = dp_steps_mark_bytes(s.steps);
    assert_true(size <= sizeof bytes);
    dp_steps_mark_pack(s.steps, bytes);
    struct scene again = from_mark(bytes, size);
    assert_true(again.steps->start[1] == NEVER && again.steps->start[2] == 14);
    assert_true(again.steps->former[1] == 11 && again.steps->former[2] == 12);
    assert_true(again.steps->open == 11 && again.steps->wanted == 2 && again.steps->pushed == 1);
    assert_true(again.steps->next[2] == 14 && again.steps->least == 11 && again.steps->least_rank == 0);
    end(&again);
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(dp_steps_mark_unpack(bytes, cut, NULL, NOW, NULL), DP_CORRUPT);
    dp_store_u64le(bytes + size - 16, 13); /* a start that is not the view's */
    assert_int_equal(dp_steps_mark_unpack(bytes, size, NULL, NOW, NULL), DP_CORRUPT);
    end(&s);
}

static void the_first_format_of_the_mark_is_refused(void **state)
{
    const char bytes[16 + DP_VIEW_HEAD + 24] = {1};
    struct dp_error err = {0};
    assert_int_equal(dp_steps_mark_unpack(bytes, sizeof bytes, NULL, NOW, &err), DP_UNSUPPORTED);
    assert_non_null(strstr(err.text, "start the last build of version 0.1.0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_returns_may_speak_of_its_steps_only),
        cmocka_unit_test(what_it_pushed_before_counts_for_the_open_step),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(ssp_accepts_what_nobody_was_told_to_be_over),
        cmocka_unit_test(the_mark_keeps_what_was_accepted),
        cmocka_unit_test(the_first_format_of_the_mark_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
