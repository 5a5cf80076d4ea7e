/* A shard of durability none in a checkpoint: its journal comes with the order and goes when the tail is copied, or the order is given up;
 * until then a cut's link and journal have all between them; pushes never hear of it. Method: as test_cut. */
#include "tests/unit/server/shard/cut_bed.h"

#include "server/checkpoint/copier.h"
#include "server/journal/journal_segment.h"

#include <string.h>

#define MOST 512u

static const struct dp_checkpoint_ask abandon = {.action = DP_CHECKPOINT_ABANDON, .order = CUT_ORDER},
                                      look = {.action = DP_CHECKPOINT_LOOK, .order = CUT_ORDER},
                                      begin_it = {.action = DP_CHECKPOINT_BEGIN,
                                                  .order = CUT_ORDER,
                                                  .directory = "/there"};

static void count_segment(void *context, const char *name)
{
    uint64_t number;
    *(uint32_t *)context += dp_journal_segment_number(name, &number);
}

static uint32_t segments(const struct cut_bed *c)
{
    const struct dp_disk *disk = &c->bed.host.disk;
    struct dp_error err = {0};
    uint32_t count = 0;
    assert_int_equal(disk->list(disk->self, count_segment, &count, &err), DP_OK);
    return count;
}

static void an_order_has_a_journal_of_its_own(void **state)
{
    struct cut_bed c;
    (void)state;
    cut_bed_start_unjournaled(&c);
    (void)cut_bed_push(&c, 10);
    (void)cut_bed_push(&c, 20);
    assert_int_equal(segments(&c), 0);
    for (int order = 0; order < 3; order++) {
        uint64_t before = c.number - 1;
        cut_bed_begin(&c);
        assert_true(segments(&c) > 0);
        (void)cut_bed_push(&c, 30);
        const struct dp_checkpoint_state *cut = cut_bed_cut(&c, 1);
        assert_true(cut->lsn == before + 1 && cut->after == before);
        assert_int_equal(cut_bed_link_lsn(&c, 1, 20, NULL), 2);
        (void)cut_bed_push(&c, 40);
        assert_true(cut_bed_journal_has_pushes(&c, before, before + 2));
        cut_bed_finish(&c, 1, 0, NULL, 0);
        assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_COPYING);
        assert_true(segments(&c) > 0);
        atomic_store(&dp_fake_copier_job(c.fake, 0)->has_tail, true);
        cut_bed_turns(&c);
        assert_int_equal(segments(&c), 0);
        (void)cut_bed_push(&c, 50);
        dp_fake_copier_end(c.fake, 0, DP_OK);
        assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_COPIED);
        (void)cut_bed_at_once(&c, &abandon);
        (void)cut_bed_push(&c, 60);
    }
    cut_bed_stop(&c);
}

/* What a link must have of a key, by the lsns of its pushes (model[lsn]: its key). */
static void check_link(struct cut_bed *c, uint32_t number, const uint64_t *model,
                       const struct dp_checkpoint_state *told)
{
    for (uint64_t key = 1; key <= 8; key++) {
        uint64_t at = cut_bed_link_lsn(c, number, key, NULL), due = 0;
        for (uint64_t l = 1; l <= told->after; l++)
            due = model[l] == key ? l : due;
        if (at > told->lsn || at < due)
            bed_fail(&c->bed, "key %d: a row of lsn %d, expected %d to %d", (int)key, (int)at, (int)due,
                     (int)told->lsn);
    }
    if (!cut_bed_journal_has_pushes(c, told->after, told->lsn))
        bed_fail(&c->bed, "the journal lacks a push of %d to %d", (int)told->after + 1, (int)told->lsn);
}

/* Orders, cuts and pushes at random, also cuts that are ordered before the rows of before the journal are written back, which is done
 * job by job. */
static void link_and_journal_have_all_between_them(void **state)
{
    uint32_t checked = 0, early = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 80; seed++) {
        struct cut_bed c;
        uint64_t random = seed * 0x9e3779b97f4a7c15u, model[MOST] = {0}, lsn = 0;
        cut_bed_start_unjournaled(&c);
        c.bed.seed = seed;
        dp_fake_store_hold(c.bed.fake, true);
        for (int op = 0; op < 150; op++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            uint32_t what = (uint32_t)(random >> 40) % 20, key = 1 + (uint32_t)(random >> 50) % 8;
            enum dp_checkpoint_stage stage = cut_bed_at_once(&c, &look)->stage;
            if (what < 9) {
                (void)cut_bed_send_push(&c, key);
                model[++lsn] = key;
            } else if (what < 16 && dp_fake_store_held(c.bed.fake) > 0) {
                dp_fake_store_release(c.bed.fake, 0);
            } else if (what == 16 && stage == DP_CHECKPOINT_NONE) {
                (void)cut_bed_refused(&c, &begin_it); /* or it is taken */
            } else if (what == 17 && stage >= DP_CHECKPOINT_PREPARING && stage <= DP_CHECKPOINT_PREPARED) {
                const struct dp_checkpoint_ask cut = {
                    .action = DP_CHECKPOINT_CUT, .order = CUT_ORDER, .cut = 1};
                early += stage == DP_CHECKPOINT_PREPARING;
                (void)cut_bed_at_once(&c, &cut);
            } else if (what == 18 && stage == DP_CHECKPOINT_IS_CUT) {
                (void)cut_bed_at_once(&c, &abandon);
            }
            (void)bed_one_turn(&c.bed);
            const struct dp_checkpoint_state told = *cut_bed_at_once(&c, &look);
            if (told.stage != DP_CHECKPOINT_IS_CUT)
                continue;
            check_link(&c, told.cut, model, &told);
            checked++;
        }
        cut_bed_stop(&c);
    }
    assert_true(checked > 100 && early > 20);
}

static void expect_given_up(struct cut_bed *c, const char *why)
{
    const struct dp_checkpoint_state *state = cut_bed_look(c);
    assert_int_equal(state->stage, DP_CHECKPOINT_ABANDONED);
    if (!strstr(state->why, why))
        fail_msg("no '%s' in: %s", why, state->why);
    cut_bed_turns(c);
    assert_int_equal(segments(c), 0);
    (void)cut_bed_at_once(c, &abandon);
}

/* Pushes are answered OK, whatever becomes of the journal. */
static void a_journal_that_fails_ends_the_order_alone(void **state)
{
    struct cut_bed c;
    (void)state;
    cut_bed_start_unjournaled(&c);
    (void)cut_bed_push(&c, 10);
    cut_bed_begin(&c);
    dp_sim_disk_fail(c.bed.host.sim, DP_SIM_WRITE, 1, 1, DP_IO);
    for (uint64_t i = 0; i < 4; i++)
        (void)cut_bed_push(&c, 10 + i);
    expect_given_up(&c, "the journal that it opened for it");
    dp_sim_disk_fail(c.bed.host.sim, DP_SIM_RESERVE, 1, 1, DP_FULL); /* at its opening */
    (void)cut_bed_at_once(&c, &begin_it);
    (void)cut_bed_push(&c, 10);
    expect_given_up(&c, "the journal that it opened for it");
    cut_bed_begin(&c); /* no space for the next segment, however much is pushed */
    (void)cut_bed_cut(&c, 1);
    dp_sim_disk_capacity(c.bed.host.sim, dp_sim_disk_used(c.bed.host.sim));
    for (uint64_t i = 0; i < 64; i++)
        cut_bed_push_many(&c, 1000);
    expect_given_up(&c, "the journal that it opened for it");
    dp_sim_disk_capacity(c.bed.host.sim, UINT64_MAX);
    cut_bed_begin(&c);
    (void)cut_bed_cut(&c, 1);
    cut_bed_stop(&c);
}

/* A copy that does not come on: at three quarters of the journal. */
static void a_journal_nearly_full_ends_the_order(void **state)
{
    struct cut_bed c;
    (void)state;
    cut_bed_start_unjournaled(&c);
    cut_bed_begin(&c);
    (void)cut_bed_push(&c, 10);
    (void)cut_bed_cut(&c, 1);
    for (uint64_t i = 0; i < 200; i++) {
        cut_bed_push_many(&c, 1000);
        if (i % 8 == 7)
            cut_bed_write_back(&c);
        (void)cut_bed_at_once(&c, &look);
    }
    expect_given_up(&c, "journal would get full");
    cut_bed_stop(&c);
}

/* However long that cycle takes, and however much is pushed meanwhile: else that would fill the journal before a cut. */
static void a_cycle_is_over_before_the_journal_comes(void **state)
{
    struct cut_bed c;
    (void)state;
    cut_bed_start_unjournaled(&c);
    cut_bed_push_many(&c, 1000);
    dp_fake_store_hold(c.bed.fake, true);
    (void)cut_bed_at_once(&c, &begin_it);
    for (uint64_t i = 0; i < 200; i++) /* more than the journal's budget */
        cut_bed_push_many(&c, 1000);
    assert_int_equal(segments(&c), 0);
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_PREPARING);
    dp_fake_store_hold(c.bed.fake, false);
    assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_PREPARED);
    assert_true(segments(&c) > 0);
    (void)cut_bed_cut(&c, 1);
    cut_bed_stop(&c);
}

/* The cycle of before a cut does not end, and pushes go on until the budget is used up: they wait, for about a second, and the
 * order ends. Or it ends in time, and they go on. */
static void a_journal_that_is_full_before_a_cut_ends_the_order(void **state)
{
    static uint64_t keys[256];
    for (uint32_t i = 0; i < 256; i++)
        keys[i] = 1000 + i;
    (void)state;
    for (int in_time = 0; in_time < 2; in_time++) {
        struct cut_bed c;
        uint32_t waits = 0;
        cut_bed_start_unjournaled(&c);
        cut_bed_push_many(&c, 1000);
        (void)cut_bed_at_once(&c, &begin_it);
        for (uint32_t i = 0; segments(&c) == 0; i++) {
            assert_true(i < 20);
            (void)bed_one_turn(&c.bed);
        }
        dp_fake_store_hold(c.bed.fake, true);
        for (uint64_t i = 0; i < 200; i++) {
            uint64_t id = bed_push(&c.bed, 1, c.sequence++, "t", keys, 256, 2, 1, CUT_STREAM, c.number++);
            cut_bed_turns(&c);
            for (; !bed_reply_to(&c.bed, id); waits++) {
                assert_true(waits < 20);
                if (in_time && waits == 5)
                    dp_fake_store_hold(c.bed.fake, false);
                c.bed.now_ns += CUT_SECOND / 10;
                cut_bed_turns(&c);
            }
            bed_expect(&c.bed, id, DP_OK);
        }
        assert_true(in_time ? waits >= 5 && waits < 10 : waits >= 9);
        dp_fake_store_hold(c.bed.fake, false);
        if (in_time)
            assert_int_equal(cut_bed_look(&c)->stage, DP_CHECKPOINT_PREPARED);
        else
            expect_given_up(&c, "raise journal_bytes");
        cut_bed_stop(&c);
    }
}

static void silence_or_a_drain_ends_it(void **state)
{
    struct cut_bed c;
    struct dp_error err = {0};
    (void)state;
    cut_bed_start_unjournaled(&c);
    (void)cut_bed_push(&c, 10);
    cut_bed_begin(&c);
    c.bed.now_ns += 60 * CUT_SECOND + 1;
    expect_given_up(&c, "60 s");
    cut_bed_begin(&c);
    (void)cut_bed_push(&c, 20);
    dp_shard_drain(c.bed.host.shard);
    assert_int_equal(bed_drained(&c.bed, &err), DP_OK);
    assert_int_equal(segments(&c), 0);
    assert_int_equal(dp_shard_end_journal(c.bed.host.shard, &err), DP_OK);
    cut_bed_stop(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_has_a_journal_of_its_own),
        cmocka_unit_test(link_and_journal_have_all_between_them),
        cmocka_unit_test(a_journal_that_fails_ends_the_order_alone),
        cmocka_unit_test(a_journal_nearly_full_ends_the_order),
        cmocka_unit_test(a_cycle_is_over_before_the_journal_comes),
        cmocka_unit_test(a_journal_that_is_full_before_a_cut_ends_the_order),
        cmocka_unit_test(silence_or_a_drain_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
