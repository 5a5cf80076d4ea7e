/* Cuts of a shard whose members train in step: the pushes of the open step are not in it, steps that another shard has closed are
 * waited for, and a close that a crash could take back is not shown. Where what was appended must stay short of durable, the journal's
 * commits do nothing (journal_seam.h). */
#include "tests/lib/journal_seam.h"
#include "tests/unit/server/shard/cut_bed.h"

#include "common/model/mix.h"

#include <string.h>

static bool stuck; /* the journal's disk */

void dp_seam_journal_commit(struct dp_journal *journal)
{
    if (!stuck)
        dp_journal_commit(journal);
}

/* Members speak in sessions 1 and 2. */
static void start(struct cut_bed *c, uint32_t backups)
{
    struct member_bed_view view = member_bed_view(DP_SYNC, backups, 2);
    stuck = false;
    cut_bed_start(c);
    bed_expect(&c->bed, member_bed_put(&c->bed, &view), DP_OK);
    cut_bed_turns(c);
    cut_bed_begin(c);
}

/* Member 0 has made a table: its pushes are numbered from 2, those of member 1 from 1. */
static void push(struct cut_bed *c, uint32_t rank, uint64_t step)
{
    struct dp_membership member = member_bed_member(rank, step);
    member.examples = 1; /* else nothing is applied */
    uint64_t id = member_bed_push(&c->bed, 1 + rank, step + 2 - rank, &member, rank * 1000 + step);
    cut_bed_turns(c);
    if (!stuck)
        bed_expect(&c->bed, id, DP_OK);
}

static bool has(const struct dp_push_ids *ids, uint32_t rank, uint64_t step)
{
    enum dp_status status;
    return dp_push_ids_look(ids, MEMBER_BED_STREAM, rank * 1000 + step, &status) == DP_PUSH_REPEATED;
}

static void pushes_of_the_open_step_are_not_in_it(void **state)
{
    struct cut_bed c;
    (void)state;
    start(&c, 0);
    push(&c, 0, 0);
    push(&c, 1, 0); /* step 0 is closed */
    push(&c, 1, 1);
    const struct dp_checkpoint_state *cut = cut_bed_cut(&c, 1);
    assert_true(cut->mode == DP_SYNC && cut->run == 3 && cut->open == 1);
    assert_int_equal(cut->lsn, 5); /* a view, two pushes, a close, a push */
    assert_true(cut_bed_steps_bytes(&c) > 0);
    struct dp_push_ids *ids = cut_bed_ids(&c);
    assert_true(has(ids, 0, 0) && has(ids, 1, 0) && !has(ids, 1, 1));
    dp_push_ids_free(&ids);
    cut_bed_finish(&c, 1, 1, NULL, 0);
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_COPYING);
    const struct dp_copy_job *job = dp_fake_copier_job(c.fake, 0);
    assert_true(job->has_sync && job->run == 3 && job->step == 1 && job->until == 5);
    dp_fake_copier_end(c.fake, 0, DP_OK);
    cut_bed_stop(&c);
}

/* The rows of the link are those of closed steps, whatever is kept. */
static void rows_are_those_of_closed_steps(void **state)
{
    struct cut_bed c;
    (void)state;
    start(&c, 0);
    for (uint64_t step = 0; step < 2; step++) {
        push(&c, 0, step);
        push(&c, 1, step);
    }
    cut_bed_write_back(&c);
    push(&c, 0, 2);
    struct dp_checkpoint_state cut = *cut_bed_cut(&c, 1);
    push(&c, 1, 2);
    cut_bed_write_back(&c);
    assert_int_equal(cut.lsn, 8); /* a view, twice two pushes and a close, a push */
    assert_int_equal(cut_bed_link_lsn(&c, 1, dp_mix(7), NULL), 7);
    assert_true(cut_bed_journal_has(&c, cut.after, cut.lsn + 2));
    cut_bed_stop(&c);
}

static void a_step_that_another_shard_has_closed_is_waited_for(void **state)
{
    struct cut_bed c;
    const struct dp_copy_push missing[2] = {{MEMBER_BED_STREAM, 0}, {MEMBER_BED_STREAM, 1000}};
    (void)state;
    start(&c, 0);
    push(&c, 0, 0);
    assert_int_equal(cut_bed_cut(&c, 1)->open, 0);
    struct dp_push_ids *ids = cut_bed_ids(&c);
    assert_false(has(ids, 0, 0));
    dp_push_ids_free(&ids);
    cut_bed_finish(&c, 1, 1, missing, 2);
    const struct dp_checkpoint_state *told = cut_bed_look(&c);
    assert_true(told->stage == DP_CHECKPOINT_WAITING && told->lacking == 1 && told->lack_number == 1000);
    push(&c, 1, 0);
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_COPYING);
    assert_int_equal(dp_fake_copier_job(c.fake, 0)->until, 4); /* the close is in it */
    dp_fake_copier_end(c.fake, 0, DP_OK);
    cut_bed_stop(&c);
}

/* All pushes of the step are here, and its close is not: the order waits for that, too. */
static void a_close_is_waited_for(void **state)
{
    struct cut_bed c;
    const struct dp_checkpoint_ask look = {.action = DP_CHECKPOINT_LOOK, .order = CUT_ORDER};
    (void)state;
    start(&c, 0);
    push(&c, 0, 0);
    (void)cut_bed_cut(&c, 1);
    stuck = true;
    push(&c, 1, 0);
    cut_bed_finish(&c, 1, 1, (const struct dp_copy_push[]){{MEMBER_BED_STREAM, 1000}}, 1);
    const struct dp_checkpoint_state *told = cut_bed_look(&c);
    assert_true(told->stage == DP_CHECKPOINT_WAITING && told->lacking == 0);
    stuck = false;
    (void)cut_bed_look(&c);
    cut_bed_turns(&c);
    assert_int_equal(cut_bed_at_once(&c, &look)->stage, DP_CHECKPOINT_COPYING);
    dp_fake_copier_end(c.fake, 0, DP_OK);
    cut_bed_stop(&c);
}

/* A push of nobody's that has come is not in the journal before it is durable. */
static void a_push_counts_when_it_is_durable(void **state)
{
    struct cut_bed c;
    (void)state;
    stuck = false;
    cut_bed_start(&c);
    cut_bed_begin(&c);
    (void)cut_bed_cut(&c, 1);
    stuck = true;
    (void)cut_bed_send_push(&c, 10);
    cut_bed_finish(&c, 1, 0, (const struct dp_copy_push[]){{CUT_STREAM, 1}}, 1);
    const struct dp_checkpoint_state *told = cut_bed_look(&c);
    assert_true(told->stage == DP_CHECKPOINT_WAITING && told->lacking == 0);
    stuck = false;
    cut_bed_turns(&c);
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_COPYING);
    assert_int_equal(dp_fake_copier_job(c.fake, 0)->until, 1);
    dp_fake_copier_end(c.fake, 0, DP_OK);
    cut_bed_stop(&c);
}

/* With a backup member the close decides whose pushes a step takes: a cut behind it is not told before it is durable. */
static void a_hidden_close_is_not_shown(void **state)
{
    struct cut_bed c;
    const struct dp_checkpoint_ask cut = {.action = DP_CHECKPOINT_CUT, .order = CUT_ORDER, .cut = 1};
    (void)state;
    start(&c, 1);
    uint64_t id = member_bed_push_step(&c.bed, 2, 0, 0);
    for (int i = 0; i < 100 && bed_counter(&c.bed, "steps_closed") == 0; i++) {
        (void)bed_one_turn(&c.bed);
        stuck = bed_reply_to(&c.bed, id) != NULL; /* the push is durable, its close will not be */
    }
    assert_int_equal(bed_counter(&c.bed, "steps_closed"), 1);
    stuck = true;
    (void)cut_bed_at_once(&c, &cut);
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_CUTTING);
    assert_true(cut_bed_has_link(&c, 1));
    stuck = false;
    (void)cut_bed_look(&c);
    const struct dp_checkpoint_state *told = cut_bed_look(&c);
    assert_true(told->stage == DP_CHECKPOINT_IS_CUT && told->open == 1);
    cut_bed_stop(&c);
}

/* What is asked of a run that this shard did not know when it was cut. */
static void a_later_run_ends_it(void **state)
{
    struct cut_bed c;
    struct member_bed_view later = member_bed_view(DP_SYNC, 0, 2);
    (void)state;
    start(&c, 0);
    push(&c, 0, 0);
    (void)cut_bed_cut(&c, 1);
    cut_bed_finish(&c, 1, 1, NULL, 0);
    later.view.run = 4;
    bed_expect(&c.bed, member_bed_put(&c.bed, &later), DP_OK);
    const struct dp_checkpoint_state *told = cut_bed_look(&c);
    assert_int_equal(told->stage, DP_CHECKPOINT_ABANDONED);
    assert_non_null(strstr(told->why, "run 4"));
    cut_bed_stop(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pushes_of_the_open_step_are_not_in_it),
        cmocka_unit_test(rows_are_those_of_closed_steps),
        cmocka_unit_test(a_step_that_another_shard_has_closed_is_waited_for),
        cmocka_unit_test(a_close_is_waited_for),
        cmocka_unit_test(a_push_counts_when_it_is_durable),
        cmocka_unit_test(a_hidden_close_is_not_shown),
        cmocka_unit_test(a_later_run_ends_it),
    };
    return cmocka_run_group_tests_name("cuts of synchronous runs", tests, NULL, NULL);
}
