/* The form with a commit thread, on the simulated disk and on the real one: while the test's thread appends, durable
 * follows, never ahead of what is synced; segments are made and recycled behind it; what was durable is replayed. */
#include "tests/unit/server/journal/bell.h"

static void append_all(struct dp_disk *disk, enum dp_durability durability, uint64_t records)
{
    static uint8_t record[90000];
    struct bell bell = {.lock = PTHREAD_MUTEX_INITIALIZER, .rung = PTHREAD_COND_INITIALIZER};
    struct dp_error err = {0};
    struct dp_journal *journal = NULL;
    struct replayed replayed = {0};
    struct dp_journal_options options = {
        .disk = disk,
        .durability = durability,
        .segment_bytes = SEGMENT,
        .budget_bytes = 4u * SEGMENT,
        .commit_thread = true,
        .wake = ring,
        .wake_context = &bell,
        .replay = check,
        .replay_context = &replayed,
    };
    enum dp_status st = dp_journal_open(&options, &journal, &err);
    assert_int_equal(st, DP_OK);
    uint64_t lsn = 0, refused = 0, kept = 0;
    while (lsn < records) {
        uint64_t rings = rings_of(&bell), next = lsn + 1;
        memcpy(record, &next, 8);
        struct dp_journal_piece piece = {record, next % 7 == 0 ? 50000 : 8 + next % 1000};
        st = dp_journal_append(journal, &piece, 1, &lsn, &err);
        assert_true(st == DP_OK || st == DP_AGAIN || st == DP_BEHIND);
        if (next % 3 == 0 || st == DP_AGAIN)
            dp_journal_commit(journal);
        enum dp_status poison;
        uint64_t durable = dp_journal_durable(journal, &poison, &err), synced = dp_journal_synced(journal);
        assert_int_equal(poison, DP_OK);
        assert_true(durable <= dp_journal_last(journal));
        if (next % 11 == 0 && synced > 20)
            dp_journal_release(journal, (kept = synced - 20 > kept ? synced - 20 : kept));
        if (st == DP_AGAIN) {
            refused++;
            if (durability == DP_DURABILITY_PROCESS)
                dp_journal_sync(journal);
            if (synced > 1)
                dp_journal_release(journal, (kept = synced > kept ? synced : kept));
            (void)wait_for(&bell, rings);
        }
    }
    struct dp_journal_figures figures;
    dp_journal_figures(journal, &figures);
    assert_true(figures.segments <= 4);
    assert_true(figures.syncs > 0 && figures.syncs <= records + 20);
    dp_journal_close(&journal);
    options.replay_after = kept ? kept - 1 : 0;
    replayed = (struct replayed){0};
    assert_int_equal(dp_journal_open(&options, &journal, &err), DP_OK);
    assert_int_equal(replayed.last, records);
    assert_int_equal(replayed.count, records - options.replay_after);
    dp_journal_close(&journal);
}

static void on_the_simulated_disk(void **state)
{
    for (uint32_t mode = 0; mode < 2; mode++) {
        struct dp_sim_disk *sim = dp_sim_disk_new(5);
        struct dp_disk disk = dp_sim_disk_interface(sim);
        append_all(&disk, mode ? DP_DURABILITY_PROCESS : DP_DURABILITY_MACHINE, 3000);
        dp_sim_disk_free(&sim);
    }
}

static void remove_name(void *context, const char *name)
{
    struct dp_disk *disk = context;
    (void)disk->remove(disk->self, name, NULL);
}

static void on_the_real_disk(void **state)
{
    for (uint32_t mode = 0; mode < 2; mode++) {
        char path[] = "/tmp/downpour-journal-XXXXXX";
        struct dp_error err = {0};
        struct dp_disk disk;
        assert_non_null(mkdtemp(path));
        assert_int_equal(dp_disk_open(path, &disk, &err), DP_OK);
        append_all(&disk, mode ? DP_DURABILITY_PROCESS : DP_DURABILITY_MACHINE, 1500);
        (void)disk.list(disk.self, remove_name, &disk, NULL);
        dp_disk_close(&disk);
        assert_int_equal(rmdir(path), 0);
    }
}

/* A process that may open no more files: no segment is made, which poisons nothing, and it is when they may be opened again. */
static void no_descriptor_left_refuses_and_recovers(void **state)
{
    char path[] = "/tmp/downpour-journal-XXXXXX";
    static uint8_t record[60000];
    struct dp_error err = {0};
    struct dp_disk disk;
    struct dp_journal *journal = NULL;
    struct replayed replayed = {0};
    struct rlimit before, none;
    assert_non_null(mkdtemp(path));
    assert_int_equal(dp_disk_open(path, &disk, &err), DP_OK);
    struct dp_journal_options options = {.disk = &disk,
                                         .segment_bytes = SEGMENT,
                                         .budget_bytes = 8u * SEGMENT,
                                         .replay = check,
                                         .replay_context = &replayed};
    assert_int_equal(dp_journal_open(&options, &journal, &err), DP_OK);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int next = open("/dev/null", O_RDONLY);
    assert_true(next >= 0);
    (void)close(next);
    none = before;
    none.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    uint64_t lsn = 0, tag = 1;
    struct dp_journal_piece piece = {record, sizeof record};
    enum dp_status st, poison;
    while (memcpy(record, &tag, 8), (st = dp_journal_append(journal, &piece, 1, &lsn, &err)) == DP_OK) {
        dp_journal_commit(journal);
        tag = lsn + 1;
    }
    dp_journal_commit(journal);
    enum dp_status again = dp_journal_append(journal, &piece, 1, &lsn, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(st, DP_FULL);
    assert_int_equal(again, DP_FULL);
    assert_non_null(strstr(err.text, path));
    assert_non_null(strstr(err.text, "ulimit -n"));
    assert_int_equal(dp_journal_durable(journal, &poison, &err), lsn);
    assert_int_equal(poison, DP_OK);
    dp_journal_commit(journal);
    assert_int_equal(dp_journal_append(journal, &piece, 1, &lsn, &err), DP_OK);
    assert_int_equal(lsn, tag);
    dp_journal_close(&journal);
    assert_int_equal(dp_journal_open(&options, &journal, &err), DP_OK);
    assert_int_equal(replayed.count, tag);
    dp_journal_close(&journal);
    (void)disk.list(disk.self, remove_name, &disk, NULL);
    dp_disk_close(&disk);
    assert_int_equal(rmdir(path), 0);
}

static void a_failed_sync_wakes_and_poisons(void **state)
{
    struct bell bell = {.lock = PTHREAD_MUTEX_INITIALIZER, .rung = PTHREAD_COND_INITIALIZER};
    struct dp_sim_disk *sim = dp_sim_disk_new(6);
    struct dp_disk disk = dp_sim_disk_interface(sim);
    struct dp_error err = {0};
    struct dp_journal *journal = NULL;
    struct dp_journal_options options = {.disk = &disk,
                                         .segment_bytes = SEGMENT,
                                         .budget_bytes = 4u * SEGMENT,
                                         .commit_thread = true,
                                         .wake = ring,
                                         .wake_context = &bell};
    uint64_t lsn;
    enum dp_status poison;
    assert_int_equal(dp_journal_open(&options, &journal, &err), DP_OK);
    uint64_t rings = rings_of(&bell);
    dp_sim_disk_fail(sim, DP_SIM_SYNC, 1, 1, DP_IO);
    struct dp_journal_piece piece = {"record", 6};
    assert_int_equal(dp_journal_append(journal, &piece, 1, &lsn, &err), DP_OK);
    dp_journal_commit(journal);
    (void)wait_for(&bell, rings);
    assert_int_equal(dp_journal_durable(journal, &poison, &err), 0);
    assert_int_equal(poison, DP_IO);
    assert_int_equal(dp_journal_append(journal, &piece, 1, &lsn, &err), DP_IO);
    dp_journal_close(&journal);
    dp_sim_disk_free(&sim);
}

/* The budget used up before an opening: refused until a release, and woken by it. */
static void a_release_wakes(void **state)
{
    static uint8_t record[60000];
    struct bell bell = {.lock = PTHREAD_MUTEX_INITIALIZER, .rung = PTHREAD_COND_INITIALIZER};
    struct dp_sim_disk *sim = dp_sim_disk_new(7);
    struct dp_disk disk = dp_sim_disk_interface(sim);
    struct dp_error err = {0};
    struct dp_journal *journal = NULL;
    struct dp_journal_options options = {.disk = &disk,
                                         .segment_bytes = SEGMENT,
                                         .budget_bytes = 4u * SEGMENT,
                                         .commit_thread = true,
                                         .wake = ring,
                                         .wake_context = &bell};
    struct dp_journal_piece piece = {record, sizeof record};
    uint64_t lsn = 0, rings;
    assert_int_equal(dp_journal_open(&options, &journal, &err), DP_OK);
    struct dp_journal_figures figures = {0};
    while (figures.bytes_used < 4u * SEGMENT) {
        rings = rings_of(&bell);
        enum dp_status st = dp_journal_append(journal, &piece, 1, &lsn, &err);
        assert_true(st == DP_OK || st == DP_AGAIN || st == DP_BEHIND);
        dp_journal_commit(journal);
        if (st == DP_AGAIN)
            (void)wait_for(&bell, rings);
        dp_journal_figures(journal, &figures);
    }
    dp_journal_close(&journal);
    assert_int_equal(dp_journal_open(&options, &journal, &err), DP_OK);
    uint64_t last = dp_journal_last(journal);
    rings = rings_of(&bell);
    assert_int_equal(dp_journal_append(journal, &piece, 1, &lsn, &err), DP_AGAIN);
    dp_journal_release(journal, 3); /* what was in the first segment */
    (void)wait_for(&bell, rings);
    assert_int_equal(dp_journal_append(journal, &piece, 1, &lsn, &err), DP_OK);
    assert_int_equal(lsn, last + 1);
    dp_journal_close(&journal);
    dp_sim_disk_free(&sim);
}

/* A disk with room for one segment, that two journals want. From a look at what is left to the file, and from the look behind it
 * to the file's removal, some time passes. */
struct scarce {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool there;
    uint32_t looks; /* the first of each: they wait for each other */
    uint32_t files; /* made and not removed */
    uint32_t drops;
    struct bell bell; /* rung when one is kept */
};

static void some_time_passes(void)
{
    const struct timespec moment = {.tv_nsec = 20000000};
    (void)nanosleep(&moment, NULL);
}

static void both_look(struct scarce *scarce)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_MS / 1000;
    scarce->looks++;
    (void)pthread_cond_broadcast(&scarce->changed);
    for (int waited = 0; scarce->looks < 2 && waited != ETIMEDOUT;)
        waited = pthread_cond_timedwait(&scarce->changed, &scarce->lock, &until);
}

static enum dp_status look_for_room(void *context, uint64_t bytes, struct dp_error *err)
{
    struct scarce *scarce = context;
    bool made = bytes == 0; /* the look behind it: a second segment leaves nothing beside the reserve */
    (void)pthread_mutex_lock(&scarce->lock);
    bool has = scarce->there && scarce->files <= made;
    if (has && !made && scarce->looks < 2)
        both_look(scarce);
    (void)pthread_mutex_unlock(&scarce->lock);
    if (made && has)
        ring(&scarce->bell);
    if (made == has)
        return has ? DP_OK : dp_fail(err, DP_FULL, "no room");
    some_time_passes();
    (void)pthread_mutex_lock(&scarce->lock);
    scarce->files += made ? UINT32_MAX : 1;
    scarce->drops += made;
    (void)pthread_mutex_unlock(&scarce->lock);
    if (!made)
        some_time_passes(); /* it is synced */
    return has ? DP_OK : dp_fail(err, DP_FULL, "the other took it");
}

/* They take it from each other at first, and in step would do so for ever. */
static void two_journals_on_one_disk_do_not_starve_each_other(void **state)
{
    struct bell bells[2] = {{.lock = PTHREAD_MUTEX_INITIALIZER, .rung = PTHREAD_COND_INITIALIZER},
                            {.lock = PTHREAD_MUTEX_INITIALIZER, .rung = PTHREAD_COND_INITIALIZER}};
    struct scarce scarce = {.lock = PTHREAD_MUTEX_INITIALIZER,
                            .changed = PTHREAD_COND_INITIALIZER,
                            .bell = {.lock = PTHREAD_MUTEX_INITIALIZER, .rung = PTHREAD_COND_INITIALIZER}};
    struct dp_sim_disk *sim[2];
    struct dp_disk disk[2];
    struct dp_journal *journal[2] = {NULL, NULL};
    struct dp_error err = {0};
    for (uint32_t i = 0; i < 2; i++) {
        sim[i] = dp_sim_disk_new(11 + i);
        disk[i] = dp_sim_disk_interface(sim[i]);
        struct dp_journal_options options = {.disk = &disk[i],
                                             .segment_bytes = SEGMENT,
                                             .budget_bytes = 4u * SEGMENT,
                                             .commit_thread = true,
                                             .wake = ring,
                                             .wake_context = &bells[i],
                                             .room = look_for_room,
                                             .room_context = &scarce};
        assert_int_equal(dp_journal_open(&options, &journal[i], &err), DP_OK);
    }
    (void)pthread_mutex_lock(&scarce.lock);
    scarce.there = true;
    (void)pthread_mutex_unlock(&scarce.lock);
    (void)wait_for(&scarce.bell, 0);
    for (uint32_t i = 0; i < 2; i++) {
        dp_journal_close(&journal[i]);
        dp_sim_disk_free(&sim[i]);
    }
    print_message("%u given back before one was kept\n", (unsigned)scarce.drops);
    assert_int_equal(scarce.looks, 2);
    assert_int_equal(scarce.files, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_the_simulated_disk),
        cmocka_unit_test(on_the_real_disk),
        cmocka_unit_test(no_descriptor_left_refuses_and_recovers),
        cmocka_unit_test(a_failed_sync_wakes_and_poisons),
        cmocka_unit_test(a_release_wakes),
        cmocka_unit_test(two_journals_on_one_disk_do_not_starve_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
