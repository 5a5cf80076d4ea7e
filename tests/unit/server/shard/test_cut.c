/* A shard's part of a checkpoint: the course of an order, what its link, ids and journal have, and each way in which it is given
 * up. Method: pushes of one row by 1, so that a row of a link tells by its weight and lsn which pushes it has. */
#include "tests/unit/server/shard/cut_bed.h"

#include "server/checkpoint/copier.h"

#include <string.h>

static const struct dp_checkpoint_ask end_it = {.action = DP_CHECKPOINT_END, .order = CUT_ORDER},
                                      abandon = {.action = DP_CHECKPOINT_ABANDON, .order = CUT_ORDER},
                                      begin_it = {.action = DP_CHECKPOINT_BEGIN,
                                                  .order = CUT_ORDER,
                                                  .directory = "/there"};

static enum dp_push_seen look(const struct dp_push_ids *ids, uint64_t number)
{
    enum dp_status status;
    return dp_push_ids_look(ids, CUT_STREAM, number, &status);
}

static void expect_given_up(struct cut_bed *c, const char *why)
{
    const struct dp_checkpoint_state *state = cut_bed_look(c);
    assert_int_equal(state->stage, DP_CHECKPOINT_ABANDONED);
    if (!strstr(state->why, why))
        fail_msg("no '%s' in: %s", why, state->why);
    assert_int_equal(dp_fake_store_links(c->bed.fake), 0);
    assert_int_equal(cut_bed_look(c)->stage, DP_CHECKPOINT_ABANDONED);
    (void)cut_bed_at_once(c, &abandon);
    assert_int_equal(cut_bed_look(c)->stage, DP_CHECKPOINT_NONE);
}

static void an_order_takes_its_course(void **state)
{
    struct cut_bed c;
    cut_bed_start(&c);
    (void)cut_bed_push(&c, 10);
    (void)cut_bed_push(&c, 20);
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_NONE);
    cut_bed_begin(&c); /* which writes back */
    assert_int_equal(bed_counter(&c.bed, "write_back_cycles"), 1);
    (void)cut_bed_push(&c, 30);
    const struct dp_checkpoint_state *cut = cut_bed_cut(&c, 1);
    assert_true(cut->lsn == 3 && cut->after == 2 && cut->run == 0 && cut->mode == DP_ASYNC);
    assert_int_equal(cut_bed_steps_bytes(&c), 0);
    struct dp_push_ids *ids = cut_bed_ids(&c);
    assert_int_equal(look(ids, 3), DP_PUSH_REPEATED);
    assert_int_equal(look(ids, 4), DP_PUSH_NEW);
    dp_push_ids_free(&ids);
    cut_bed_finish(&c, 1, 0, NULL, 0);
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_COPYING);
    struct dp_copy_job *job = dp_fake_copier_job(c.fake, 0);
    assert_true(job->order == CUT_ORDER && job->cut == 1 && job->lsn == 3 && job->after == 2 &&
                job->until == 3);
    assert_true(job->shard == 0 && job->shards == 1 && job->store == 77 && !job->has_sync && job->full);
    assert_true(job->rate_bytes == 5 && job->missing_count == 0);
    assert_string_equal(job->directory, "/there");
    atomic_store(&job->done_bytes, 6);
    atomic_store(&job->all_bytes, 7);
    const struct dp_checkpoint_state *looked = cut_bed_look(&c);
    assert_true(looked->done_bytes == 6 && looked->all_bytes == 7);
    assert_true(cut_bed_has_link(&c, 1));
    dp_fake_copier_end(c.fake, 0, DP_OK);
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_COPIED);
    const struct bed_reply *copied = &c.bed.reply[(c.bed.replies - 1) % BED_REPLIES];
    assert_true(copied->frame_bytes[0] > 0 && copied->bytes[0] == '{');
    assert_int_equal(dp_fake_store_links(c.bed.fake), 0);
    assert_int_equal(cut_bed_at_once(&c, &end_it)->stage, DP_CHECKPOINT_NONE);
    assert_int_equal(cut_bed_at_once(&c, &end_it)->stage, DP_CHECKPOINT_NONE);
    (void)cut_bed_push(&c, 10);
    cut_bed_stop(&c);
}

/* More than the journal's budget is pushed meanwhile, and written back: what the cut needs stays, the rest goes. */
static void the_journal_is_held_until_the_copy_is_done(void **state)
{
    struct cut_bed c;
    cut_bed_start(&c);
    cut_bed_begin(&c);
    (void)cut_bed_push(&c, 10);
    struct dp_checkpoint_state cut = *cut_bed_cut(&c, 1);
    for (uint64_t i = 0; i < 40; i++) {
        cut_bed_push_many(&c, 1000);
        if (i % 8 == 7) {
            cut_bed_write_back(&c);
            assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_IS_CUT);
        }
    }
    assert_true(cut_bed_journal_has(&c, cut.after, cut.lsn + 40));
    cut_bed_finish(&c, 1, 0, NULL, 0);
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_COPYING);
    assert_true(cut_bed_journal_has(&c, cut.after, dp_fake_copier_job(c.fake, 0)->until));
    /* The order ends; the copier still reads. */
    assert_int_equal(cut_bed_at_once(&c, &abandon)->stage, DP_CHECKPOINT_NONE);
    cut_bed_turns(&c);
    assert_true(cut_bed_has_link(&c, 1) && cut_bed_journal_has(&c, cut.after, cut.lsn + 40));
    assert_int_equal(cut_bed_refused(&c, &begin_it), DP_AGAIN);
    dp_fake_copier_end(c.fake, 0, DP_OK);
    cut_bed_turns(&c);
    assert_false(cut_bed_has_link(&c, 1));
    for (uint64_t i = 0; i < 100; i++) { /* which takes the segments that are free again */
        cut_bed_push_many(&c, 1000);
        if (i % 10 == 9)
            cut_bed_write_back(&c);
    }
    assert_false(cut_bed_journal_has(&c, cut.after, cut.lsn));
    cut_bed_begin(&c);
    cut_bed_stop(&c);
}

/* Far more than its budget. */
static void fill_journal(struct cut_bed *c)
{
    for (uint64_t i = 0; i < 200; i++) {
        cut_bed_push_many(c, 1000);
        if (i % 8 == 7)
            cut_bed_write_back(c);
        (void)cut_bed_at_once(c,
                              &(struct dp_checkpoint_ask){.action = DP_CHECKPOINT_LOOK, .order = CUT_ORDER});
    }
}

/* However long its files take. */
static void a_copied_tail_lets_the_journal_go(void **state)
{
    struct cut_bed c;
    cut_bed_start(&c);
    cut_bed_begin(&c);
    (void)cut_bed_push(&c, 10);
    struct dp_checkpoint_state cut = *cut_bed_cut(&c, 1);
    cut_bed_finish(&c, 1, 0, NULL, 0);
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_COPYING);
    atomic_store(&dp_fake_copier_job(c.fake, 0)->has_tail, true);
    fill_journal(&c);
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_COPYING);
    assert_false(cut_bed_journal_has(&c, cut.after, cut.lsn));
    assert_true(cut_bed_has_link(&c, 1));
    dp_fake_copier_end(c.fake, 0, DP_OK);
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_COPIED);
    assert_false(cut_bed_has_link(&c, 1));
    cut_bed_stop(&c);
}

/* Its disk hangs: the order is given up, and pushes go on. */
static void a_copy_that_hangs_fills_no_journal(void **state)
{
    struct cut_bed c;
    cut_bed_start(&c);
    cut_bed_begin(&c);
    (void)cut_bed_push(&c, 10);
    struct dp_checkpoint_state cut = *cut_bed_cut(&c, 1);
    cut_bed_finish(&c, 1, 0, NULL, 0);
    fill_journal(&c);
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_ABANDONED);
    assert_int_equal(dp_fake_copier_waiting(c.fake), 1);
    assert_false(cut_bed_journal_has(&c, cut.after, cut.lsn));
    assert_true(cut_bed_has_link(&c, 1));
    dp_fake_copier_end(c.fake, 0, DP_OK);
    expect_given_up(&c, "journal would get full");
    cut_bed_stop(&c);
}

static void a_journal_nearly_full_ends_it(void **state)
{
    struct cut_bed c;
    cut_bed_start(&c);
    cut_bed_begin(&c);
    (void)cut_bed_push(&c, 10);
    (void)cut_bed_cut(&c, 1);
    fill_journal(&c); /* no push is refused */
    expect_given_up(&c, "journal would get full");
    assert_int_equal(bed_counter(&c.bed, "checkpoint_delays"), 0);
    cut_bed_stop(&c);
}

static void silence_ends_it(void **state)
{
    struct cut_bed c;
    cut_bed_start(&c);
    (void)cut_bed_push(&c, 10);
    cut_bed_begin(&c);
    (void)cut_bed_cut(&c, 1);
    c.bed.now_ns += 60 * CUT_SECOND;
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_IS_CUT);
    assert_true(dp_shard_rest_ms(c.bed.host.shard) <= 1000);
    c.bed.now_ns += 60 * CUT_SECOND + 1;
    expect_given_up(&c, "60 s");
    assert_int_equal(dp_shard_rest_ms(c.bed.host.shard), UINT32_MAX);
    /* So does what was copied. */
    cut_bed_begin(&c);
    (void)cut_bed_cut(&c, 1);
    cut_bed_finish(&c, 1, 0, NULL, 0);
    cut_bed_turns(&c);
    dp_fake_copier_end(c.fake, 0, DP_OK);
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_COPIED);
    c.bed.now_ns += 60 * CUT_SECOND + 1;
    expect_given_up(&c, "60 s");
    cut_bed_stop(&c);
}

static void a_failure_ends_it(void **state)
{
    struct cut_bed c;
    const struct dp_checkpoint_ask cut = {.action = DP_CHECKPOINT_CUT, .order = CUT_ORDER, .cut = 1};
    cut_bed_start(&c);
    (void)cut_bed_push(&c, 10);
    cut_bed_begin(&c);
    dp_fake_store_fail(c.bed.fake, DP_STORE_LINK, 1, DP_FULL); /* of the link */
    (void)cut_bed_at_once(&c, &cut);
    expect_given_up(&c, "failure asked for");
    cut_bed_begin(&c); /* of the copy */
    (void)cut_bed_cut(&c, 1);
    cut_bed_finish(&c, 1, 0, NULL, 0);
    cut_bed_turns(&c);
    dp_fake_copier_end(c.fake, 0, DP_FULL);
    expect_given_up(&c, "");
    cut_bed_begin(&c); /* of the disk: rows cannot be written back */
    (void)cut_bed_cut(&c, 1);
    (void)cut_bed_push(&c, 20);
    dp_fake_store_fail(c.bed.fake, DP_STORE_WRITE, 1, DP_FULL);
    c.bed.now_ns += 31 * CUT_SECOND;
    (void)bed_one_turn(&c.bed);
    (void)bed_one_turn(&c.bed);
    expect_given_up(&c, "failure asked for");
    c.bed.now_ns += CUT_SECOND;
    cut_bed_turns(&c);
    cut_bed_begin(&c);
    (void)cut_bed_cut(&c, 1);
    cut_bed_stop(&c);
}

/* Once the disk had no space for the journal's next segment; an order that begins when nobody has pushed for a while is taken. */
static void a_disk_without_a_segment_ends_it(void **state)
{
    struct cut_bed c;
    const struct dp_checkpoint_ask look = {.action = DP_CHECKPOINT_LOOK, .order = CUT_ORDER};
    cut_bed_start(&c);
    (void)cut_bed_push(&c, 10);
    cut_bed_begin(&c);
    (void)cut_bed_cut(&c, 1);
    dp_sim_disk_capacity(c.bed.host.sim, dp_sim_disk_used(c.bed.host.sim));
    for (int i = 0; i < 40 && cut_bed_at_once(&c, &look)->stage == DP_CHECKPOINT_IS_CUT; i++) {
        uint64_t keys[256];
        for (uint64_t k = 0; k < 256; k++)
            keys[k] = 1000 + k;
        (void)bed_push(&c.bed, 1, c.sequence++, "t", keys, 256, 2, 1, CUT_STREAM, c.number++);
        cut_bed_turns(&c);
    }
    expect_given_up(&c, "no space for its journal");
    dp_sim_disk_capacity(c.bed.host.sim, UINT64_MAX);
    c.bed.now_ns += 20 * CUT_SECOND;
    cut_bed_begin(&c);
    (void)cut_bed_cut(&c, 1);
    cut_bed_stop(&c);
}

/* The shard is not done before the copier lets go. */
static void a_drain_ends_it(void **state)
{
    struct cut_bed c;
    struct dp_error err = {0};
    cut_bed_start(&c);
    (void)cut_bed_push(&c, 10);
    cut_bed_begin(&c);
    (void)cut_bed_cut(&c, 1);
    cut_bed_finish(&c, 1, 0, NULL, 0);
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_COPYING);
    dp_shard_drain(c.bed.host.shard);
    cut_bed_turns(&c);
    assert_int_equal(dp_shard_drained(c.bed.host.shard, &err), DP_AGAIN);
    assert_true(atomic_load(&dp_fake_copier_job(c.fake, 0)->cancelled) && cut_bed_has_link(&c, 1));
    dp_fake_copier_end(c.fake, 0, DP_OK);
    assert_int_equal(bed_drained(&c.bed, &err), DP_OK);
    assert_int_equal(dp_fake_store_links(c.bed.fake), 0);
    (void)cut_bed_at_once(&c, &abandon);
    assert_int_equal(cut_bed_refused(&c, &begin_it), DP_STOPPING);
    cut_bed_stop(&c);
}

/* Rows of the link are those of the second cut; the first link goes. */
static void a_cut_may_be_taken_again(void **state)
{
    struct cut_bed c;
    const struct dp_checkpoint_ask late = {.action = DP_CHECKPOINT_CUT, .order = CUT_ORDER, .cut = 1},
                                   finish = {.action = DP_CHECKPOINT_FINISH, .order = CUT_ORDER, .cut = 1};
    cut_bed_start(&c);
    (void)cut_bed_push(&c, 10);
    cut_bed_begin(&c);
    assert_int_equal(cut_bed_cut(&c, 1)->lsn, 1);
    (void)cut_bed_push(&c, 10);
    assert_int_equal(cut_bed_cut(&c, 2)->lsn, 2);
    assert_true(!cut_bed_has_link(&c, 1) && cut_bed_has_link(&c, 2));
    assert_int_equal(bed_counter(&c.bed, "checkpoint_cuts"), 2);
    struct dp_push_ids *ids = cut_bed_ids(&c);
    assert_int_equal(look(ids, 2), DP_PUSH_REPEATED);
    dp_push_ids_free(&ids);
    assert_int_equal(cut_bed_at_once(&c, &late)->cut, 2); /* the first order for a cut, sent again */
    assert_int_equal(cut_bed_refused(&c, &finish), DP_INVALID);
    cut_bed_finish(&c, 2, 0, NULL, 0);
    cut_bed_turns(&c);
    assert_true(dp_fake_copier_job(c.fake, 0)->cut == 2 && dp_fake_copier_job(c.fake, 0)->lsn == 2);
    dp_fake_copier_end(c.fake, 0, DP_OK);
    cut_bed_stop(&c);
}

static void what_other_shards_have_is_waited_for(void **state)
{
    struct cut_bed c;
    struct dp_copy_push missing[3] = {{CUT_STREAM, 3}, {CUT_STREAM, 5}, {CUT_STREAM + 1, 0}};
    cut_bed_start(&c);
    (void)cut_bed_push(&c, 10);
    (void)cut_bed_push(&c, 10);
    cut_bed_begin(&c);
    (void)cut_bed_cut(&c, 1);
    (void)cut_bed_push(&c, 20); /* number 3 comes before the order says so */
    cut_bed_finish(&c, 1, 0, missing, 3);
    const struct dp_checkpoint_state *told = cut_bed_look(&c);
    assert_true(told->stage == DP_CHECKPOINT_WAITING && told->lacking == 2);
    assert_true(told->lack_stream == CUT_STREAM && told->lack_number == 5);
    (void)cut_bed_push(&c, 20);
    (void)cut_bed_push(&c, 20);
    told = cut_bed_look(&c);
    assert_true(told->stage == DP_CHECKPOINT_WAITING && told->lacking == 1 &&
                told->lack_stream == CUT_STREAM + 1);
    uint64_t mixed = 30, id = bed_push(&c.bed, 1, c.sequence++, "t", &mixed, 1, 2, 1, CUT_STREAM + 1, 0);
    cut_bed_turns(&c);
    bed_expect(&c.bed, id, DP_OK);
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_COPYING);
    const struct dp_copy_job *job = dp_fake_copier_job(c.fake, 0);
    assert_true(job->lsn == 2 && job->until == 6 && job->missing_count == 3);
    assert_memory_equal(job->missing, missing, sizeof missing);
    dp_fake_copier_end(c.fake, 0, DP_OK);
    cut_bed_stop(&c);
}

/* A second finish has fewer pushes: the others are not waited for, and are not in the copy, also if they come. An earlier one that comes
 * late changes nothing. */
static void what_is_given_up_is_not_copied(void **state)
{
    struct cut_bed c;
    const struct dp_copy_push missing[3] = {{CUT_STREAM, 3}, {CUT_STREAM, 4}, {CUT_STREAM + 1, 0}};
    cut_bed_start(&c);
    (void)cut_bed_push(&c, 10);
    (void)cut_bed_push(&c, 10);
    cut_bed_begin(&c);
    (void)cut_bed_cut(&c, 1);
    cut_bed_finish(&c, 1, 0, missing, 3);
    (void)cut_bed_push(&c, 20); /* 3 comes, and is given up */
    const struct dp_checkpoint_state *told = cut_bed_look(&c);
    assert_true(told->lacking == 2 && told->lack_number == 4);
    cut_bed_finish(&c, 1, 0, &missing[1], 1);
    cut_bed_finish(&c, 1, 0, missing, 3);
    told = cut_bed_look(&c);
    assert_true(told->stage == DP_CHECKPOINT_WAITING && told->lacking == 1 && told->lack_number == 4);
    (void)cut_bed_push(&c, 20);
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_COPYING);
    const struct dp_copy_job *job = dp_fake_copier_job(c.fake, 0);
    assert_true(job->until == 4 && job->missing_count == 1);
    assert_memory_equal(job->missing, &missing[1], sizeof missing[1]);
    dp_fake_copier_end(c.fake, 0, DP_OK);
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_COPIED);
    cut_bed_stop(&c);
}

static void one_order_at_a_time(void **state)
{
    struct cut_bed c;
    struct dp_checkpoint_ask other = begin_it, cut = {.action = DP_CHECKPOINT_CUT, .order = 5, .cut = 1},
                             finish = {.action = DP_CHECKPOINT_FINISH, .order = CUT_ORDER, .cut = 1};
    other.order = 5;
    cut_bed_start(&c);
    assert_int_equal(cut_bed_refused(&c, &cut), DP_NOT_FOUND);
    cut_bed_begin(&c);
    assert_int_equal(cut_bed_refused(&c, &finish), DP_INVALID); /* there is no cut */
    c.bed.now_ns += 3 * CUT_SECOND;
    assert_int_equal(cut_bed_refused(&c, &other), DP_IN_USE);
    const char *reason = c.bed.reply[(c.bed.replies - 1) % BED_REPLIES].reply.reason;
    assert_true(strstr(reason, "abcdef0123456789") && strstr(reason, "3 s"));
    assert_int_equal(cut_bed_refused(&c, &cut), DP_NOT_FOUND);
    other.action = DP_CHECKPOINT_LOOK;
    assert_int_equal(cut_bed_at_once(&c, &other)->stage, DP_CHECKPOINT_NONE);
    other.action = DP_CHECKPOINT_ABANDON;
    (void)cut_bed_at_once(&c, &other);
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_PREPARED);
    (void)cut_bed_at_once(&c, &abandon);
    other.action = DP_CHECKPOINT_BEGIN;
    assert_int_equal(cut_bed_refused(&c, &other), DP_OK);
    cut_bed_stop(&c);
}

static void a_shard_that_cannot_says_why(void **state)
{
    struct bed bed;
    struct dp_request request = {.kind = DP_REQUEST_CHECKPOINT, .checkpoint = begin_it};
    struct dp_fake_copier *fake = dp_fake_copier_new();
    struct dp_copier copier = dp_fake_copier_seam(fake);
    bed_init(&bed, 16);
    bed_journal(&bed, 1);
    bed_open_shard(&bed); /* without a copier */
    assert_non_null(
        strstr(bed_expect(&bed, bed_send(&bed, &request, NULL, 0), DP_UNSUPPORTED)->reply.reason, "copier"));
    bed_close(&bed);
    bed_init(&bed, 16);
    bed.host.options.copier = &copier;
    bed.host.options.read_only = true;
    bed_open_shard(&bed);
    assert_non_null(strstr(bed_expect(&bed, bed_send(&bed, &request, NULL, 0), DP_UNSUPPORTED)->reply.reason,
                           "read-only"));
    bed_close(&bed);
    dp_fake_copier_free(&fake);
}

/* Planted: until the first push comes it has no record up to which all is there, and is not copied. */
static void nothing_is_copied_at_once(void **state)
{
    struct cut_bed c;
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
    cut_bed_start_unjournaled(&c);
    (void)cut_bed_push(&c, 10);
    assert_int_equal(cut_bed_refused(&c, &begin_it), DP_UNSUPPORTED);
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
        cmocka_unit_test(an_order_takes_its_course),
        cmocka_unit_test(the_journal_is_held_until_the_copy_is_done),
        cmocka_unit_test(a_copied_tail_lets_the_journal_go),
        cmocka_unit_test(a_copy_that_hangs_fills_no_journal),
        cmocka_unit_test(a_journal_nearly_full_ends_it),
        cmocka_unit_test(silence_ends_it),
        cmocka_unit_test(a_failure_ends_it),
        cmocka_unit_test(a_disk_without_a_segment_ends_it),
        cmocka_unit_test(a_drain_ends_it),
        cmocka_unit_test(a_cut_may_be_taken_again),
        cmocka_unit_test(what_other_shards_have_is_waited_for),
        cmocka_unit_test(what_is_given_up_is_not_copied),
        cmocka_unit_test(one_order_at_a_time),
        cmocka_unit_test(a_shard_that_cannot_says_why),
        cmocka_unit_test(nothing_is_copied_at_once),
        cmocka_unit_test(what_is_given_up_stays_out),
        cmocka_unit_test(without_a_journal_it_is_refused),
    };
    return cmocka_run_group_tests_name("cuts", tests, NULL, NULL);
}
