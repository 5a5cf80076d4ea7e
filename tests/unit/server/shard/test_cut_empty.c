/* Goal    A shard that has journaled nothing takes part in a checkpoint as any other: it waits for no push, and what was given up stays
 *         out. One without a journal refuses it, and says what to do. */
#include "tests/unit/server/shard/cut_bed.h"

#include "server/checkpoint/copier.h"

#include <string.h>

/* Planted: until the first push comes it has no record up to which all is there, and is not copied. */
static void nothing_is_copied_at_once(void **state)
{
    struct cut_bed c;
    (void)state;
    cut_bed_start(&c);
    cut_bed_begin(&c);
    (void)cut_bed_cut(&c, 1);
    cut_bed_finish(&c, 1, 0, NULL, 0);
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_COPYING);
    const struct dp_copy_job *job = dp_fake_copier_job(c.fake, 0);
    assert_true(job->lsn == 0 && job->until == 0 && job->missing_count == 0);
    dp_fake_copier_end(c.fake, 0, DP_OK);
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_COPIED);
    cut_bed_stop(&c);
}

/* Planted: what comes behind that turn is within what is copied. */
static void what_is_given_up_stays_out(void **state)
{
    struct cut_bed c;
    const struct dp_copy_push missing = {CUT_STREAM, 1};
    (void)state;
    cut_bed_start(&c);
    cut_bed_begin(&c);
    (void)cut_bed_cut(&c, 1);
    cut_bed_finish(&c, 1, 0, &missing, 1);
    cut_bed_finish(&c, 1, 0, NULL, 0);
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_COPYING);
    assert_int_equal(cut_bed_push(&c, 20), 1);
    const struct dp_copy_job *job = dp_fake_copier_job(c.fake, 0);
    assert_true(job->lsn == 0 && job->until == 0 && job->missing_count == 0);
    dp_fake_copier_end(c.fake, 0, DP_OK);
    cut_bed_stop(&c);
}

static void without_a_journal_it_is_refused(void **state)
{
    struct cut_bed c;
    const struct dp_checkpoint_ask begin = {
        .action = DP_CHECKPOINT_BEGIN, .order = CUT_ORDER, .directory = "/there"};
    (void)state;
    cut_bed_start_unjournaled(&c);
    (void)cut_bed_push(&c, 10);
    assert_int_equal(cut_bed_refused(&c, &begin), DP_UNSUPPORTED);
    const char *why = c.bed.reply[(c.bed.replies - 1) % BED_REPLIES].reply.reason;
    assert_non_null(strstr(why, "durability none"));
    assert_non_null(strstr(why, "set durability to process or machine"));
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_NONE);
    (void)cut_bed_push(&c, 20);
    cut_bed_stop(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_copied_at_once),
        cmocka_unit_test(what_is_given_up_stays_out),
        cmocka_unit_test(without_a_journal_it_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
