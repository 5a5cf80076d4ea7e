/* Reading beside the writer. Goal: the records after + 1 .. until that were durable when it began are read, all and unchanged,
 * whatever is appended, claimed and recycled meanwhile; where some were released in spite of the reader, it is told so and is
 * given no record of another time. Method: one thread appends on a real disk while the test reads. */
#include "common/env/read_only_disk.h"
#include "tests/unit/server/journal/bell.h"

#include <sys/stat.h>

struct writing {
    char path[64];
    struct dp_disk disk;
    struct dp_journal *journal;
    struct bell bell;
    pthread_t thread;
    bool holds; /* nothing above `after` is released */
    uint64_t after;
    _Atomic uint64_t durable, released;
    atomic_bool stop, failed;
};

static void append_one(struct writing *w)
{
    static uint8_t record[90000];
    struct dp_error err = {0};
    uint64_t next = dp_journal_last(w->journal) + 1, lsn, rings = rings_of(&w->bell);
    memcpy(record, &next, 8);
    struct dp_journal_piece piece = {record, next % 7 == 0 ? 50000 : 8 + next % 1000};
    enum dp_status st = dp_journal_append(w->journal, &piece, 1, &lsn, &err), poison;
    if (next % 3 == 0 || st != DP_OK)
        dp_journal_commit(w->journal);
    atomic_store(&w->durable, dp_journal_durable(w->journal, &poison, &err));
    uint64_t synced = dp_journal_synced(w->journal), keep = synced > 20 ? synced - 20 : 1;
    if (w->holds)
        keep = keep < w->after + 1 ? keep : w->after + 1;
    dp_journal_release(w->journal, keep);
    atomic_store(&w->released, keep - 1);
    bool refused = st == DP_AGAIN || st == DP_BEHIND;
    if ((st != DP_OK && !refused) || poison != DP_OK)
        atomic_store(&w->failed, true);
    if (refused && !atomic_load(&w->stop) && (!w->holds || atomic_load(&w->durable) < next - 1))
        (void)wait_for(&w->bell, rings);
}

static void *write_on(void *context)
{
    struct writing *w = context;
    while (!atomic_load(&w->stop) && !atomic_load(&w->failed))
        append_one(w);
    return NULL;
}

static void begin(struct writing *w, uint64_t budget, bool holds, uint64_t after)
{
    struct dp_error err = {0};
    *w = (struct writing){
        .bell = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0}, .holds = holds, .after = after};
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(w->path, sizeof w->path, "%.30s/dp_until_XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(w->path));
    assert_int_equal(dp_disk_open(w->path, &w->disk, &err), DP_OK);
    struct dp_journal_options options = {.disk = &w->disk,
                                         .segment_bytes = SEGMENT,
                                         .first_bytes = 64u << 10,
                                         .budget_bytes = budget,
                                         .commit_thread = true,
                                         .secret = 5,
                                         .wake = ring,
                                         .wake_context = &w->bell};
    assert_int_equal(dp_journal_open(&options, &w->journal, &err), DP_OK);
}

static void remove_name(void *context, const char *name)
{
    struct dp_disk *disk = context;
    (void)disk->remove(disk->self, name, NULL);
}

static void end(struct writing *w)
{
    atomic_store(&w->stop, true);
    ring(&w->bell);
    assert_int_equal(pthread_join(w->thread, NULL), 0);
    assert_false(atomic_load(&w->failed));
    dp_journal_close(&w->journal);
    assert_int_equal(w->disk.list(w->disk.self, remove_name, &w->disk, NULL), DP_OK);
    dp_disk_close(&w->disk);
    assert_int_equal(rmdir(w->path), 0);
}

static enum dp_status read_range(const struct writing *w, uint64_t after, uint64_t until,
                                 struct replayed *replayed, struct dp_error *err)
{
    struct dp_disk disk;
    struct dp_journal_figures figures;
    *replayed = (struct replayed){0};
    assert_int_equal(dp_read_only_disk_open(w->path, &disk, err), DP_OK);
    const struct dp_journal_options options = {.disk = &disk,
                                               .replay_after = after,
                                               .beside_writer = true,
                                               .read_until = until,
                                               .replay = check,
                                               .replay_context = replayed};
    enum dp_status st = dp_journal_read(&options, &figures, err);
    assert_true(st != DP_OK || figures.last_lsn == until);
    dp_disk_close(&disk);
    return st;
}

/* Fails after WAIT_MS. */
static uint64_t durable_past(const struct writing *w, uint64_t lsn)
{
    struct timespec until, now;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += WAIT_MS / 1000;
    uint64_t durable;
    while ((durable = atomic_load(&w->durable)) < lsn) {
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        assert_true(now.tv_sec < until.tv_sec && !atomic_load(&w->failed));
        (void)sched_yield();
    }
    return durable;
}

static void what_is_held_is_read_whatever_comes(void **state)
{
    struct writing w;
    struct replayed replayed;
    struct dp_error err = {0};
    begin(&w, 128 * SEGMENT, true, 300);
    assert_int_equal(pthread_create(&w.thread, NULL, write_on, &w), 0);
    for (uint64_t round = 0; round < 60; round++) {
        uint64_t until = durable_past(&w, 301 + round * 5);
        assert_int_equal(read_range(&w, 300, until, &replayed, &err), DP_OK);
        assert_int_equal(replayed.last, until);
        assert_int_equal(replayed.count, until - 300);
        assert_int_equal(read_range(&w, 300 + round, 301 + round, &replayed, &err), DP_OK);
        assert_int_equal(replayed.count, 1);
    }
    assert_int_equal(read_range(&w, 300, 300, &replayed, &err), DP_OK);
    assert_int_equal(replayed.count, 0);
    end(&w);
}

/* The hold is what the reader rests on: without it the writer recycles under it. */
static void what_was_released_is_refused_and_never_replaced(void **state)
{
    struct writing w;
    struct replayed replayed;
    uint32_t refused = 0;
    begin(&w, 4 * SEGMENT, false, 0);
    assert_int_equal(pthread_create(&w.thread, NULL, write_on, &w), 0);
    for (uint64_t round = 0; round < 200 || refused < 20 || refused == round; round++) {
        struct dp_error err = {0};
        uint64_t until = durable_past(&w, 100 + round), after = until - 30;
        enum dp_status st = read_range(&w, after, until, &replayed, &err); /* check() compares each record */
        assert_true(st == DP_CORRUPT || (st == DP_OK && replayed.count == 30));
        refused += st == DP_CORRUPT;
        assert_true(round < 20000);
    }
    print_message("%u refused\n", refused);
    struct dp_error err = {0};
    (void)durable_past(&w, 2000);
    assert_int_equal(read_range(&w, 0, 100, &replayed, &err), DP_CORRUPT);
    end(&w);
}

static void what_is_not_written_yet_is_refused(void **state)
{
    struct writing w;
    struct replayed replayed;
    struct dp_error err = {0};
    begin(&w, 64 * SEGMENT, true, 0);
    assert_int_equal(pthread_create(&w.thread, NULL, write_on, &w), 0);
    (void)durable_past(&w, 10);
    assert_int_equal(read_range(&w, 0, UINT64_MAX / 2, &replayed, &err), DP_CORRUPT);
    assert_int_equal(replayed.count, 0);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_held_is_read_whatever_comes),
        cmocka_unit_test(what_was_released_is_refused_and_never_replaced),
        cmocka_unit_test(what_is_not_written_yet_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
