/* A journal that is looked at and not changed: what is in it, flipped bits, and what is no file. */
#include "tests/unit/server/store/view_bed.h"

/* ---- the journal */

#define RECORDS 40u

struct journal_seen {
    uint32_t segments, cut_off, records, damages;
    uint64_t last;
    struct dp_error damage[4];
};

static void see_segment(void *context, const struct dp_inspect_segment *segment)
{
    struct journal_seen *seen = context;
    seen->segments++;
    seen->cut_off += segment->state == DP_INSPECT_SEGMENT_CUT_OFF;
    assert_true(segment->last_lsn <= RECORDS);
    assert_int_equal(strlen(segment->file), strlen("journal-0123456789abcdef"));
}

static enum dp_status see_record(void *context, uint64_t lsn, const void *record, size_t bytes,
                                 struct dp_error *err)
{
    struct journal_seen *seen = context;
    seen->records++;
    seen->last = lsn;
    return DP_OK;
}

static void see_journal_damage(void *context, const struct dp_error *what)
{
    struct journal_seen *seen = context;
    if (seen->damages < 4)
        seen->damage[seen->damages] = *what;
    seen->damages++;
}

static void wake(void *context) {}

static void make_journal(const char *directory)
{
    struct dp_disk disk;
    struct dp_error err = {0};
    struct dp_journal *journal = NULL;
    must(dp_disk_open(directory, &disk, &err), &err);
    struct dp_journal_options options = {
        .disk = &disk, .segment_bytes = 64u << 10, .budget_bytes = 16 * (64u << 10), .wake = wake};
    must(dp_journal_open(&options, &journal, &err), &err);
    for (uint32_t i = 0; i < RECORDS; i++) {
        char record[9000];
        uint64_t lsn;
        memset(record, (int)i, sizeof record);
        struct dp_journal_piece piece = {record, sizeof record};
        dp_journal_commit(journal);
        must(dp_journal_append(journal, &piece, 1, &lsn, &err), &err);
        dp_journal_commit(journal);
    }
    dp_journal_close(&journal);
    dp_disk_close(&disk);
}

static enum dp_status look_at_journal(const char *directory, uint64_t after, bool verify,
                                      struct journal_seen *seen, struct dp_inspect_journal *out,
                                      struct dp_error *err)
{
    *seen = (struct journal_seen){0};
    *err = (struct dp_error){0};
    struct dp_inspect_journal_options options = {.directory = directory,
                                                 .replay_after = after,
                                                 .segment = see_segment,
                                                 .record = see_record,
                                                 .damaged = verify ? see_journal_damage : NULL,
                                                 .context = seen};
    return dp_inspect_journal(&options, out, err);
}

static void the_journal_is_seen_and_not_changed(void **state)
{
    struct form *form = *state;
    struct journal_seen seen;
    struct dp_inspect_journal journal;
    struct dp_error err;
    make_journal(form->directory);
    uint64_t before = print_of(form->directory);
    must(look_at_journal(form->directory, 0, true, &seen, &journal, &err), &err);
    assert_int_equal(seen.records, RECORDS);
    assert_int_equal(seen.damages, 0);
    assert_true(seen.segments >= 6);
    assert_int_equal(seen.cut_off, 0);
    assert_int_equal(journal.last_lsn, RECORDS);
    assert_int_equal(journal.durable_lsn, RECORDS);
    assert_int_equal(journal.checked_records, RECORDS);
    must(look_at_journal(form->directory, 30, false, &seen, &journal, &err), &err);
    assert_int_equal(seen.records, RECORDS - 30);
    assert_int_equal(journal.replay_records, RECORDS - 30);
    assert_int_equal(seen.last, RECORDS);
    assert_true(print_of(form->directory) == before);
    must(look_at_journal("/nowhere/at/all", 0, false, &seen, &journal, &err), &err);
    assert_false(journal.present);
}

/* Two damaged records in one segment, and one in a segment that no opening needs: each by file, offset and lsn. */
static void flipped_bits_in_the_journal_are_named(void **state)
{
    struct form *form = *state;
    struct journal_seen seen;
    struct dp_inspect_journal journal;
    struct dp_error err;
    char path[600];
    make_journal(form->directory);
    path_of(path, form->directory, "journal-0000000000000002");
    flip(path, 4096 + 64 + 100, 0);   /* a payload: the first record's */
    flip(path, 4096 + 12288 + 30, 2); /* the second's header */
    assert_int_equal(look_at_journal(form->directory, 0, true, &seen, &journal, &err), DP_CORRUPT);
    assert_non_null(strstr(err.text, "journal-0000000000000"));
    assert_int_equal(seen.damages, 2);
    assert_non_null(strstr(seen.damage[0].text, "journal-0000000000000002, offset 4096:"));
    assert_non_null(strstr(seen.damage[1].text, "journal-0000000000000002, offset 16384:"));
    assert_int_equal(look_at_journal(form->directory, 0, false, &seen, &journal, &err), DP_CORRUPT);
    assert_int_equal(seen.cut_off, (RECORDS + 4) / 5 - 2); /* of 5 records each, all behind the second */
    /* Needed no more: an opening does not see it. */
    must(look_at_journal(form->directory, RECORDS, true, &seen, &journal, &err), &err);
    assert_int_equal(seen.damages, 2);
    flip(path, 4096 + 64 + 100, 0);
    flip(path, 4096 + 12288 + 30, 2);
    flip(path, 20, 1); /* its page */
    assert_int_equal(look_at_journal(form->directory, 0, true, &seen, &journal, &err), DP_CORRUPT);
    assert_true(seen.damages >= 1);
    flip(path, 20, 1);
    must(look_at_journal(form->directory, 0, true, &seen, &journal, &err), &err);
    assert_int_equal(seen.damages, 0);
}

static void a_pipe_in_the_journal_is_refused(void **state)
{
    struct form *form = *state;
    struct journal_seen seen;
    struct dp_inspect_journal journal;
    struct dp_error err;
    char path[600];
    (void)alarm(60);
    make_journal(form->directory);
    path_of(path, form->directory, "journal-0000000000000002");
    assert_int_equal(remove(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(look_at_journal(form->directory, 0, true, &seen, &journal, &err), DP_CORRUPT);
    assert_non_null(strstr(err.text, "journal-0000000000000002: it is no file"));
    (void)alarm(0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_journal_is_seen_and_not_changed),
        TEST(flipped_bits_in_the_journal_are_named),
        TEST(a_pipe_in_the_journal_is_refused),
    };
    return cmocka_run_group_tests_name("inspect_journal", tests, NULL, NULL);
}
