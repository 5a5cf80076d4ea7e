/* A disk that takes its time, or that fails, while a commit thread writes to it: what is being written is not durable, and who appends
 * is told to wait. */
#include "tests/unit/server/journal/bell.h"

/* A journal on a disk on which a write of another thread than the test's waits at a gate. */
static struct bench {
    struct bell bell;
    struct dp_sim_disk *sim;
    struct dp_disk disk, under;
    struct replayed replayed;
    struct dp_journal_options options;
    struct dp_journal *journal;
    uint64_t lsn; /* of the last append */
    pthread_t test;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool shut, waits;
    uint32_t passes; /* writes that go through all the same */
} bench;

static enum dp_status gated_write(void *self, struct dp_file *file, uint64_t at,
                                  const struct dp_disk_piece *pieces, uint32_t count, struct dp_error *err)
{
    (void)pthread_mutex_lock(&bench.lock);
    while (bench.shut && bench.passes == 0 && !pthread_equal(pthread_self(), bench.test)) {
        bench.waits = true;
        (void)pthread_cond_broadcast(&bench.changed);
        (void)pthread_cond_wait(&bench.changed, &bench.lock);
    }
    bench.waits = false;
    bench.passes -= bench.passes > 0;
    (void)pthread_mutex_unlock(&bench.lock);
    return bench.under.write(self, file, at, pieces, count, err);
}

static void open_gate(void)
{
    (void)pthread_mutex_lock(&bench.lock);
    bench.shut = false;
    (void)pthread_cond_broadcast(&bench.changed);
    (void)pthread_mutex_unlock(&bench.lock);
}

/* Until so many writes have gone through, and another one waits. */
static void await_gate(uint32_t passes)
{
    (void)pthread_mutex_lock(&bench.lock);
    bench.passes = passes;
    (void)pthread_cond_broadcast(&bench.changed);
    while (bench.passes > 0 || !bench.waits)
        (void)pthread_cond_wait(&bench.changed, &bench.lock);
    (void)pthread_mutex_unlock(&bench.lock);
}

static void reopen(void)
{
    struct dp_error err = {0};
    dp_journal_close(&bench.journal);
    assert_int_equal(dp_journal_open(&bench.options, &bench.journal, &err), DP_OK);
}

/* The gate is open. Segments of segment_bytes from the first one on, four times that in all. */
static void open_journal(enum dp_durability durability, uint64_t segment_bytes, uint32_t idle_ms)
{
    bench = (struct bench){
        .bell = {.lock = PTHREAD_MUTEX_INITIALIZER, .rung = PTHREAD_COND_INITIALIZER},
        .sim = dp_sim_disk_new(8),
        .options = {.disk = &bench.disk,
                    .durability = durability,
                    .segment_bytes = segment_bytes,
                    .first_bytes = segment_bytes,
                    .budget_bytes = 4 * segment_bytes,
                    .commit_thread = true,
                    .idle_ms = idle_ms,
                    .wake = ring,
                    .wake_context = &bench.bell,
                    .replay = check,
                    .replay_context = &bench.replayed},
        .test = pthread_self(),
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER,
    };
    bench.disk = bench.under = dp_sim_disk_interface(bench.sim);
    bench.disk.write = gated_write;
    reopen();
}

static int teardown(void **state)
{
    open_gate();
    dp_journal_close(&bench.journal);
    dp_sim_disk_free(&bench.sim);
    return 0;
}

static enum dp_status append(const void *record, size_t bytes, struct dp_error *err)
{
    const struct dp_journal_piece piece = {record, bytes};
    return dp_journal_append(bench.journal, &piece, 1, &bench.lsn, err);
}

static void append_and_commit(const void *record, size_t bytes)
{
    struct dp_error err = {0};
    assert_int_equal(append(record, bytes, &err), DP_OK);
    dp_journal_commit(bench.journal);
}

static uint64_t durable(void)
{
    struct dp_error err = {0};
    enum dp_status poison;
    uint64_t lsn = dp_journal_durable(bench.journal, &poison, &err);
    assert_int_equal(poison, DP_OK);
    return lsn;
}

static void open_gate_until_durable(void)
{
    uint64_t rings = rings_of(&bench.bell);
    open_gate();
    while (durable() < bench.lsn)
        rings = wait_for(&bench.bell, rings);
}

static struct dp_journal_figures figures(void)
{
    struct dp_journal_figures out;
    dp_journal_figures(bench.journal, &out);
    return out;
}

/* Mode process: what the commit thread took and has not written yet would be gone if the process died now. */
static void what_is_being_written_is_not_durable(void **state)
{
    /* Small enough, with a page in front, to be copied under the lock: the commit thread, which a new segment wakes,
     * finds the whole record. (A larger one it may find half copied; then it is the next commit that writes it.) */
    static uint8_t record[20000];
    open_journal(DP_DURABILITY_PROCESS, SEGMENT, 600000); /* the gate is for records, not for claims */
    uint64_t used = figures().bytes_used;
    bench.shut = true;
    do { /* the first record of the next segment is the thread's to write */
        dp_journal_commit(bench.journal);
        struct dp_error err = {0};
        assert_int_equal(append(record, sizeof record, &err), DP_OK);
    } while (figures().bytes_used == used);
    await_gate(0);
    uint64_t taken = bench.lsn;
    dp_journal_commit(bench.journal);
    assert_int_equal(durable(), taken - 1);
    append_and_commit(record, sizeof record); /* behind the hole: of no use either */
    assert_int_equal(durable(), taken - 1);
    open_gate_until_durable(); /* in a round, and one more */
}

/* Mode process: a record behind a claim that is not written yet would not be found, if the process died now. */
static void behind_an_unwritten_claim_nothing_is_durable(void **state)
{
    static uint8_t record[300];
    open_journal(DP_DURABILITY_PROCESS, SEGMENT, 1);
    bench.shut = true;
    append_and_commit(record, sizeof record); /* written by this thread, which the gate lets through */
    assert_int_equal(durable(), 1);
    await_gate(0); /* the claim */
    append_and_commit(record, sizeof record);
    assert_int_equal(durable(), 1);
    assert_int_equal(figures().claimed_lsn, 0);
    open_gate_until_durable();
}

/* The disk takes nothing: appends are refused when the stage is full, and go on, with nothing lost, when it does. */
static void a_disk_that_is_behind_is_waited_for(void **state)
{
    static uint8_t record[3u << 20];
    struct dp_error err = {0};
    enum dp_status st = DP_OK;
    open_journal(DP_DURABILITY_MACHINE, 16u << 20, 0);
    bench.shut = true;
    uint64_t rings = rings_of(&bench.bell);
    while (st == DP_OK) {
        uint64_t next = bench.lsn + 1;
        assert_true(next < 20);
        memcpy(record, &next, 8);
        st = append(record, sizeof record, &err);
        dp_journal_commit(bench.journal);
    }
    assert_int_equal(st, DP_BEHIND);
    assert_non_null(strstr(err.text, "MiB of appended records wait for the disk"));
    assert_true(bench.lsn >= 3);
    assert_int_equal(durable(), 0);
    open_gate();
    for (uint64_t last = bench.lsn; bench.lsn == last;) {
        if (st == DP_BEHIND)
            (void)wait_for(&bench.bell, rings);
        rings = rings_of(&bench.bell);
        st = append(record, sizeof record, &err);
        assert_true(st == DP_OK || st == DP_BEHIND);
    }
    reopen();
    assert_int_equal(bench.replayed.last, bench.lsn);
    assert_int_equal(bench.replayed.count, bench.lsn);
}

/* Two records that do not fit into the stage's ring together; what was staged in front of them is written, so that half of the
 * stage's own chunks are free again, and then the disk takes nothing: the second is refused for now. */
static void two_very_large_records_take_turns(void **state)
{
    const size_t bytes = (size_t)145 << 20;
    struct dp_error err = {0};
    uint8_t *record = calloc(1, bytes);
    assert_non_null(record);
    open_journal(DP_DURABILITY_MACHINE, 256u << 20, 0);
    bench.shut = true;
    append_and_commit(record, 6u << 20);
    await_gate(0);
    append_and_commit(record, bytes);
    await_gate(1);
    uint64_t rings = rings_of(&bench.bell);
    enum dp_status st = append(record, bytes, &err);
    assert_int_equal(st, DP_BEHIND);
    open_gate();
    while (st == DP_BEHIND || st == DP_AGAIN) {
        rings = wait_for(&bench.bell, rings);
        st = append(record, bytes, &err);
    }
    assert_int_equal(st, DP_OK);
    assert_int_equal(bench.lsn, 3);
    free(record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(what_is_being_written_is_not_durable, teardown),
        cmocka_unit_test_teardown(behind_an_unwritten_claim_nothing_is_durable, teardown),
        cmocka_unit_test_teardown(a_disk_that_is_behind_is_waited_for, teardown),
        cmocka_unit_test_teardown(two_very_large_records_take_turns, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
