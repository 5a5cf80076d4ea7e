/* A shard and its journal, one case each: syncs that fail, disks without room, files that are gone or another's. */
#include "tests/unit/server/shard/crash_bed.h"

#include <math.h>
#include <stdlib.h>

/* Whatever becomes of the journal, a push is answered: what may not be durable as AGAIN, never as done or final. */
static void a_failed_sync_leaves_nobody_waiting(void **state)
{
    for (uint32_t refused = 0; refused < 2; refused++) {
        struct crash *c = crash_new(0);
        c->issued = 1;
        c->push[0] = (struct crash_script){.rows = 1, .tables = 1, .gradient = refused ? NAN : 1};
        assert_int_equal(crash_open(c, false), DP_OK);
        assert_true(crash_meet(c));
        dp_sim_disk_fail(c->bed.host.sim, DP_SIM_SYNC, 1, 1, DP_IO);
        for (uint32_t time = 0; time < 2; time++) {
            crash_push(c, 0);
            bed_turn(&c->bed);
            bed_turn(&c->bed);
            assert_int_equal(c->answered, c->push[0].id);
            assert_int_equal(c->status, DP_AGAIN);
        }
        crash_close(c);
        dp_sim_disk_restart(c->bed.host.sim, DP_SIM_PROCESS);
        assert_int_equal(crash_open(c, true), DP_OK);
        assert_true(crash_meet(c));
        crash_push(c, 0);
        bed_turn(&c->bed);
        bed_turn(&c->bed);
        assert_int_equal(c->status, refused ? DP_NOT_FINITE : DP_OK);
        crash_close(c);
        crash_free(c);
    }
}

static struct crash *with_two_pushes(void)
{
    struct crash *c = crash_new(0);
    c->issued = 2;
    c->push[0] = (struct crash_script){.rows = 1, .tables = 1, .gradient = 1};
    c->push[1] = (struct crash_script){.rows = 1, .tables = 1, .gradient = 2};
    return c;
}

/* The store has no room for the mark of the journal's opening: the opening fails, and is tried again. */
static void an_opening_without_room_for_its_mark_fails(void **state)
{
    struct crash *c = with_two_pushes();
    assert_int_equal(crash_open(c, false), DP_OK);
    assert_true(crash_meet(c));
    crash_push(c, 0);
    bed_turn(&c->bed);
    crash_close(c);
    c->may_be_refused = true;
    for (uint32_t i = 0; i < 2; i++) {
        dp_fake_store_fail(c->bed.fake, DP_STORE_MARKS, 1, DP_FULL);
        assert_int_equal(crash_open(c, true), DP_FULL);
    }
    c->may_be_refused = false;
    assert_int_equal(crash_open(c, true), DP_OK);
    assert_true(crash_meet(c));
    crash_push(c, 0);
    crash_push(c, 1);
    bed_turn(&c->bed);
    bed_turn(&c->bed);
    assert_true(c->push[0].acknowledged && c->push[1].acknowledged);
    crash_close(c);
    crash_free(c);
}

/* The disk has no room for another segment: what is written back sets one free, and the next push has it. */
static void a_segment_that_has_no_room_is_made_of_an_old_one(void **state)
{
    struct crash *c = crash_new(0);
    uint32_t refused = 0;
    assert_int_equal(crash_open(c, false), DP_OK);
    assert_true(crash_meet(c));
    bed_turn(&c->bed);
    dp_sim_disk_capacity(c->bed.host.sim, dp_sim_disk_used(c->bed.host.sim));
    for (; c->issued < CRASH_PUSHES; c->issued++) {
        c->push[c->issued] = (struct crash_script){.rows = 1, .tables = 1, .gradient = 1};
        for (uint32_t tries = 0; !c->push[c->issued].acknowledged && tries < 2; tries++) {
            crash_push(c, c->issued);
            c->issued++;
            for (uint32_t i = 0; i < 5; i++) /* (what the store has done is seen in the next) */
                bed_turn(&c->bed);
            c->issued--;
            if (!c->push[c->issued].acknowledged) {
                assert_int_equal(c->status, DP_AGAIN);
                c->sequence--;
                refused++;
            }
        }
        assert_true(c->push[c->issued].acknowledged); /* no time has passed */
    }
    assert_true(refused > 2);
    crash_close(c);
    crash_free(c);
}

static struct crash *one_push(void)
{
    struct crash *c = crash_new(0);
    c->issued = 1;
    c->may_be_refused = true;
    c->push[0] = (struct crash_script){.rows = 2, .tables = 1, .gradient = 1, .key = {0, 1}};
    c->mixed[1] = UINT64_MAX;
    assert_int_equal(crash_open(c, false), DP_OK);
    assert_true(crash_meet(c));
    crash_push(c, 0);
    bed_turn(&c->bed);
    bed_turn(&c->bed);
    assert_true(c->push[0].acknowledged);
    crash_close(c);
    return c;
}

/* The files of the journal are gone: the store knows that there were some, and does not start with less than it had. */
static void a_journal_that_is_gone_is_missed(void **state)
{
    struct crash *c = one_push();
    struct dp_sim_disk *full = c->bed.host.sim;
    crash_take_disk(c, dp_sim_disk_new(2));
    assert_int_equal(crash_open(c, true), DP_CORRUPT);
    dp_sim_disk_free(&c->bed.host.sim);
    crash_take_disk(c, full); /* brought back */
    assert_int_equal(crash_open(c, true), DP_OK);
    assert_true(crash_meet(c));
    crash_push(c, 0);
    bed_turn(&c->bed);
    bed_turn(&c->bed);
    crash_close(c);
    crash_free(c);
}

/* Keys that are not of the shard's range: refused, not looked for outside the index. */
static void a_journal_of_another_shard_is_refused(void **state)
{
    struct crash *c = one_push();
    c->bed.host.options.shards = 300;
    assert_int_equal(crash_open(c, true), DP_CORRUPT);
    crash_free(c);
}

/* Of a page each push is 3 percent: it is pages that fill the journal, and no push has to wait for a cycle. */
static void pages_count_as_what_fills_the_journal(void **state)
{
    struct crash *c = crash_opened();
    assert_int_equal(crash_push_all(c, 0, CRASH_PUSHES), 0);
    crash_close(c);
    crash_free(c);
}

/* The first cycle after a crash does not wait for as much again. */
static void what_was_replayed_counts_as_what_fills_the_journal(void **state)
{
    struct crash *c = crash_opened();
    dp_fake_store_l0_files(c->bed.fake, 1000); /* nothing is written back */
    assert_int_equal(crash_push_all(c, 0, 45), 0);
    crash_close(c);
    dp_fake_store_l0_files(c->bed.fake, 0);
    assert_int_equal(crash_open(c, true), DP_OK);
    assert_true(crash_meet(c));
    assert_int_equal(crash_push_all(c, 45, CRASH_PUSHES), 0);
    crash_close(c);
    crash_free(c);
}

/* A store that is behind with merging gets no more to merge: pushes hear so, until it is not. */
static void no_cycle_begins_while_the_store_merges(void **state)
{
    struct crash *c = crash_opened();
    dp_fake_store_l0_files(c->bed.fake, 65);
    assert_true(crash_push_all(c, 0, 80) > 0);
    dp_fake_store_l0_files(c->bed.fake, 64);
    for (uint32_t turns = 0; turns < 8; turns++)
        bed_turn(&c->bed);
    assert_int_equal(crash_push_all(c, 80, CRASH_PUSHES), 0);
    crash_close(c);
    crash_free(c);
}

/* A push that fits into no segment is refused for good, and hears which setting bounds it; what follows it is taken. */
static void a_push_larger_than_a_segment_hears_what_bounds_it(void **state)
{
    struct crash *c = crash_new(0);
    c->dim = 4000;
    c->issued = 2;
    c->push[0] = (struct crash_script){.rows = 6, .tables = 1, .key = {0, 1, 2, 3, 4, 5}, .gradient = 1};
    c->push[1] = (struct crash_script){.rows = 1, .tables = 1, .gradient = 1};
    for (uint64_t k = 0; k < CRASH_KEYS; k++)
        c->mixed[k] = 1000 + k;
    assert_int_equal(crash_open(c, false), DP_OK);
    assert_true(crash_meet(c));
    for (uint32_t time = 0; time < 2; time++) {
        crash_push(c, 0);
        bed_turn(&c->bed);
        assert_int_equal(c->answered, c->push[0].id);
        assert_int_equal(c->status, DP_ARGUMENT);
        assert_non_null(strstr(c->reason, time ? "was refused before" : "raise journal_bytes"));
    }
    crash_push(c, 1);
    bed_turn(&c->bed);
    assert_int_equal(c->status, DP_OK);
    crash_close(c);
    crash_free(c);
}

/* A push that was refused for good is refused again after a crash, also when it then comes with contents that could be applied:
 * answered as "applied before" it would be lost without a word. The refusal comes back from the journal alone, or from the marks
 * of a write-back cycle. */
static void a_refusal_outlives_a_crash(void **state)
{
    for (uint32_t written_back = 0; written_back < 2; written_back++) {
        struct crash *c = crash_opened();
        c->issued = 3;
        c->push[0] = (struct crash_script){.rows = 1, .tables = 1, .gradient = 1};
        c->push[1] = (struct crash_script){.rows = 1, .tables = 1, .gradient = NAN};
        c->push[2] = (struct crash_script){.rows = 1, .tables = 1, .gradient = 1};
        for (uint32_t i = 0; i < 3; i++) {
            crash_push(c, i);
            bed_turn(&c->bed);
            bed_turn(&c->bed);
            assert_int_equal(c->answered, c->push[i].id);
            assert_int_equal(c->status, i == 1 ? DP_NOT_FINITE : DP_OK);
        }
        if (written_back) {
            c->bed.now_ns += UINT64_C(31000000000);
            for (uint32_t turns = 0; turns < 10; turns++)
                bed_turn(&c->bed);
        }
        assert_int_equal(bed_counter(&c->bed, "write_back_cycles"), written_back);
        crash_close(c);
        dp_sim_disk_restart(c->bed.host.sim, DP_SIM_PROCESS);
        assert_int_equal(crash_open(c, true), DP_OK);
        assert_true(crash_meet(c));
        assert_int_equal(bed_counter(&c->bed, "pushes_replayed"), written_back ? 0 : 3);
        c->push[1].gradient = 1;
        static const enum dp_status again[] = {DP_OK, DP_NOT_FINITE, DP_OK};
        for (uint32_t i = 0; i < 3; i++) {
            crash_push(c, i);
            bed_turn(&c->bed);
            bed_turn(&c->bed);
            assert_int_equal(c->answered, c->push[i].id);
            assert_int_equal(c->status, again[i]);
        }
        assert_int_equal(bed_counter(&c->bed, "pushes_repeated"), 2);
        crash_close(c);
        crash_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_sync_leaves_nobody_waiting),
        cmocka_unit_test(an_opening_without_room_for_its_mark_fails),
        cmocka_unit_test(a_push_larger_than_a_segment_hears_what_bounds_it),
        cmocka_unit_test(a_segment_that_has_no_room_is_made_of_an_old_one),
        cmocka_unit_test(pages_count_as_what_fills_the_journal),
        cmocka_unit_test(what_was_replayed_counts_as_what_fills_the_journal),
        cmocka_unit_test(no_cycle_begins_while_the_store_merges),
        cmocka_unit_test(a_refusal_outlives_a_crash),
        cmocka_unit_test(a_journal_that_is_gone_is_missed),
        cmocka_unit_test(a_journal_of_another_shard_is_refused),
    };
    return cmocka_run_group_tests_name("shard and journal", tests, NULL, NULL);
}
