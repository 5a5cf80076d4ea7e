/* Cuts of a shard whose members train in step: a close that a crash could take back is not shown. Where what was appended must stay short of durable, the journal's
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

/* A push of nobody's that has come is not in the journal before it is durable. */
static void a_push_counts_when_it_is_durable(void **state)
{
    struct cut_bed c;
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
        cmocka_unit_test(a_push_counts_when_it_is_durable),
        cmocka_unit_test(a_hidden_close_is_not_shown),
        cmocka_unit_test(a_later_run_ends_it),
    };
    return cmocka_run_group_tests_name("cuts of synchronous runs", tests, NULL, NULL);
}
