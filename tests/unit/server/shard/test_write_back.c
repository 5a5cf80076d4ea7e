/* A shard's write-back beside what else goes on, one case each: a store that does not merge, tables that are created, a journal
 * that lost its end. */
#include "tests/unit/server/shard/crash_bed.h"

#include "common/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

/* How often the log tells of merges that do not get on. The test's dp_log takes the place of the product's. */
static uint32_t told_merging;

void dp_log(enum dp_log_level level, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    told_merging += strstr(text, "wait to be merged") != NULL;
}

static uint64_t cycles_after(struct crash *c, uint64_t seconds)
{
    c->bed.now_ns += seconds * SECOND;
    for (uint32_t turns = 0; turns < 8; turns++)
        bed_turn(&c->bed);
    return bed_counter(&c->bed, "write_back_cycles");
}

/* Merging that does not get on, or a store that has failed and so does not merge: pushes hear what they wait for, and after a
 * minute a cycle begins all the same, which hears why. */
static void merging_without_end_holds_a_cycle_up_for_a_minute(void **state)
{
    for (uint32_t fails = 0; fails < 2; fails++) {
        struct crash *c = crash_opened();
        told_merging = 0;
        dp_fake_store_l0_files(c->bed.fake, 70);
        assert_true(crash_push_all(c, 0, 80) > 0);
        assert_non_null(strstr(c->reason, "70 files"));
        assert_non_null(strstr(c->reason, "its journal is full"));
        assert_int_equal(cycles_after(c, 59), 0);
        dp_fake_store_l0_files(c->bed.fake, 69); /* it gets on */
        assert_int_equal(cycles_after(c, 59), 0);
        assert_int_equal(cycles_after(c, 59), 0);
        assert_int_equal(told_merging, 0);
        if (fails)
            dp_fake_store_fail(c->bed.fake, DP_STORE_WRITE, 1, DP_IO);
        assert_int_equal(cycles_after(c, 1), !fails);
        assert_int_equal(told_merging, 1);
        if (fails) {
            assert_int_equal(crash_push_all(c, 80, 81), 1);
            assert_non_null(strstr(c->reason, "failure asked for"));
        } else {
            assert_true(crash_push_all(c, 80, CRASH_PUSHES) < CRASH_PUSHES - 80);
            assert_int_equal(bed_counter(&c->bed, "write_back_cycles"), 1);
            assert_int_equal(cycles_after(c, 60), 2);
            assert_int_equal(told_merging, 1); /* once */
        }
        crash_close(c);
        crash_free(c);
    }
}

/* The marks of a cycle are made while a table is being created, and have no room; the table is refused. When there is room,
 * they bring it not back: `again`, not over the one that has its name by then. One that was not refused is there. */
static void marks_leave_out_a_table_that_is_not_there_yet(void **state)
{
    enum { REFUSED, AGAIN, TAKEN, CASES };
    for (uint32_t what = REFUSED; what < CASES; what++) {
        struct crash *c = crash_opened();
        char key[32];
        size_t bytes;
        assert_int_equal(crash_push_all(c, 0, 3), 0);
        dp_fake_store_hold(c->bed.fake, true);
        c->bed.now_ns += 31 * SECOND;
        bed_turn(&c->bed);
        assert_int_equal(dp_fake_store_held(c->bed.fake), 1); /* the rows of a cycle */
        crash_create(c, 1);
        bed_turn(&c->bed);
        dp_fake_store_release(c->bed.fake, 0);
        bed_turn(&c->bed);
        assert_int_equal(dp_fake_store_held(c->bed.fake), 2); /* the table's mark, those of the cycle */
        if (what != TAKEN)
            dp_fake_store_fail(c->bed.fake, DP_STORE_MARKS, 1, DP_FULL);
        dp_fake_store_release(c->bed.fake, 0);
        dp_fake_store_fail(c->bed.fake, DP_STORE_MARKS, 1, DP_FULL);
        dp_fake_store_release(c->bed.fake, 0);
        bed_turn(&c->bed);
        bed_turn(&c->bed);
        assert_int_equal(c->answered, c->create_id[1]);
        assert_int_equal(c->status, what == TAKEN ? DP_OK : DP_AGAIN);
        c->sequence -= what != TAKEN; /* the shard expects that request again */
        c->dim = what == TAKEN ? 2 : 3;
        dp_fake_store_hold(c->bed.fake, what != AGAIN);
        if (what == AGAIN) {
            crash_create(c, 1);
            bed_turn(&c->bed);
            bed_turn(&c->bed);
            assert_int_equal(c->status, DP_OK);
        }
        dp_fake_store_hold(c->bed.fake, false);
        uint64_t before = bed_counter(&c->bed, "write_back_cycles");
        assert_int_equal(cycles_after(c, 2), before + 1);
        crash_close(c);
        (void)snprintf(key, sizeof key, "table/%08x", dp_table_id(crash_table_names[1]));
        assert_int_equal(dp_fake_store_mark(c->bed.fake, key, strlen(key), &bytes) != NULL, what != REFUSED);
        assert_int_equal(crash_open(c, true), DP_OK);
        c->tables = 0;
        assert_true(crash_meet(c));
        crash_create(c, 1);
        bed_turn(&c->bed);
        bed_turn(&c->bed);
        assert_int_equal(c->answered, c->create_id[1]);
        assert_int_equal(c->status, DP_OK); /* none of another width is there */
        crash_close(c);
        crash_free(c);
    }
}

/* The journal's last record is damaged, which nobody claims, and rows with it were written back: it is not taken for a torn tail. */
static void a_row_that_has_what_the_journal_lost_is_refused(void **state)
{
    struct crash *c = crash_opened();
    uint64_t bytes = 0;
    assert_int_equal(crash_push_all(c, 0, 2), 0);
    dp_fake_store_hold(c->bed.fake, true);
    c->bed.now_ns += 31 * SECOND;
    bed_turn(&c->bed);
    assert_int_equal(dp_fake_store_held(c->bed.fake), 1);
    dp_fake_store_release(c->bed.fake, 0);                        /* a portion, without its marks */
    dp_sim_disk_fail(c->bed.host.sim, DP_SIM_WRITE, 1, 1, DP_IO); /* it is not closed cleanly */
    crash_close(c);
    uint8_t *journal = dp_sim_disk_bytes(c->bed.host.sim, "journal-0000000000000001", &bytes);
    assert_non_null(journal);
    while (bytes > 64 && memcmp(journal + bytes - 64, "DPJR", 4) != 0)
        bytes -= 64;
    if (journal[bytes - 64 + 12] == 2) /* it is filled up to a page */
        do
            bytes -= 64;
        while (bytes > 64 && memcmp(journal + bytes - 64, "DPJR", 4) != 0);
    assert_int_equal(journal[bytes - 64 + 24], 2); /* its lsn */
    journal[bytes] ^= 1;
    c->may_be_refused = true;
    assert_int_equal(crash_open(c, true), DP_CORRUPT);
    crash_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merging_without_end_holds_a_cycle_up_for_a_minute),
        cmocka_unit_test(marks_leave_out_a_table_that_is_not_there_yet),
        cmocka_unit_test(a_row_that_has_what_the_journal_lost_is_refused),
    };
    return cmocka_run_group_tests_name("write-back", tests, NULL, NULL);
}
