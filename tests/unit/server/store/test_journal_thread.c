/* The form with a commit thread, on the simulated disk and on the real one: while the test's thread appends, durable
 * follows, never ahead of what is synced; segments are made and recycled behind it; what was durable is replayed. */
#include "server/store/journal.h"
#include "tests/lib/sim_disk.h"
#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SEGMENT (128u << 10)
#define WAIT_MS 20000

struct bell {
    pthread_mutex_t lock;
    pthread_cond_t rung;
    uint64_t rings;
};

static void ring(void *context)
{
    struct bell *bell = context;
    (void)pthread_mutex_lock(&bell->lock);
    bell->rings++;
    (void)pthread_cond_signal(&bell->rung);
    (void)pthread_mutex_unlock(&bell->lock);
}

/* Until it was rung more than `seen` times. */
static uint64_t wait_for(struct bell *bell, uint64_t seen)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_MS / 1000;
    (void)pthread_mutex_lock(&bell->lock);
    int waited = 0;
    while (bell->rings <= seen && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&bell->rung, &bell->lock, &until);
    uint64_t rings = bell->rings;
    (void)pthread_mutex_unlock(&bell->lock);
    assert_int_not_equal(waited, ETIMEDOUT);
    return rings;
}

static uint64_t rings_of(struct bell *bell)
{
    (void)pthread_mutex_lock(&bell->lock);
    uint64_t rings = bell->rings;
    (void)pthread_mutex_unlock(&bell->lock);
    return rings;
}

struct replayed {
    uint64_t last, count;
};

static enum dp_status check(void *context, uint64_t lsn, const void *record, size_t bytes,
                            struct dp_error *err)
{
    struct replayed *replayed = context;
    uint64_t tag;
    if (bytes < 8 || (memcpy(&tag, record, 8), tag != lsn) || (replayed->last && lsn != replayed->last + 1))
        return dp_fail(err, DP_INTERNAL, "lsn %llu", (unsigned long long)lsn);
    replayed->last = lsn;
    replayed->count++;
    return DP_OK;
}

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
        assert_true(st == DP_OK || st == DP_AGAIN || st == DP_JOURNAL_BEHIND);
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
    (void)state;
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
    (void)state;
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
    (void)state;
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
    (void)state;
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
    (void)state;
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
        assert_true(st == DP_OK || st == DP_AGAIN || st == DP_JOURNAL_BEHIND);
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

/* A disk on which a write of another thread than the test's waits at a gate. */
struct gate {
    struct dp_disk disk, under;
    pthread_t test;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool shut, waits;
    uint32_t passes; /* writes that go through all the same */
};

static enum dp_status gated_write(void *self, struct dp_file *file, uint64_t at,
                                  const struct dp_disk_piece *pieces, uint32_t count, struct dp_error *err)
{
    struct gate *gate = self;
    (void)pthread_mutex_lock(&gate->lock);
    while (gate->shut && gate->passes == 0 && !pthread_equal(pthread_self(), gate->test)) {
        gate->waits = true;
        (void)pthread_cond_broadcast(&gate->changed);
        (void)pthread_cond_wait(&gate->changed, &gate->lock);
    }
    gate->waits = false;
    gate->passes -= gate->passes > 0;
    (void)pthread_mutex_unlock(&gate->lock);
    return gate->under.write(gate->under.self, file, at, pieces, count, err);
}

/* The simulated disk but for writes: all other functions get the self of what is under. */
static enum dp_status gated_open(void *self, const char *name, _Bool create, struct dp_file **out,
                                 struct dp_error *err)
{
    const struct gate *gate = self;
    return gate->under.open(gate->under.self, name, create, out, err);
}
static void gated_close(void *self, struct dp_file *file)
{
    const struct gate *gate = self;
    gate->under.close(gate->under.self, file);
}
static enum dp_status gated_size(void *self, struct dp_file *file, uint64_t *bytes, struct dp_error *err)
{
    const struct gate *gate = self;
    return gate->under.size(gate->under.self, file, bytes, err);
}
static enum dp_status gated_reserve(void *self, struct dp_file *file, uint64_t bytes, struct dp_error *err)
{
    const struct gate *gate = self;
    return gate->under.reserve(gate->under.self, file, bytes, err);
}
static enum dp_status gated_read(void *self, struct dp_file *file, uint64_t at, void *to, size_t bytes,
                                 struct dp_error *err)
{
    const struct gate *gate = self;
    return gate->under.read(gate->under.self, file, at, to, bytes, err);
}
static enum dp_status gated_sync(void *self, struct dp_file *file, struct dp_error *err)
{
    const struct gate *gate = self;
    return gate->under.sync(gate->under.self, file, err);
}
static enum dp_status gated_rename(void *self, const char *from, const char *to, struct dp_error *err)
{
    const struct gate *gate = self;
    return gate->under.rename(gate->under.self, from, to, err);
}
static enum dp_status gated_remove(void *self, const char *name, struct dp_error *err)
{
    const struct gate *gate = self;
    return gate->under.remove(gate->under.self, name, err);
}
static enum dp_status gated_sync_directory(void *self, struct dp_error *err)
{
    const struct gate *gate = self;
    return gate->under.sync_directory(gate->under.self, err);
}
static enum dp_status gated_list(void *self, void (*visit)(void *context, const char *name), void *context,
                                 struct dp_error *err)
{
    const struct gate *gate = self;
    return gate->under.list(gate->under.self, visit, context, err);
}

static void gate_init(struct gate *gate, struct dp_sim_disk *sim)
{
    *gate = (struct gate){.under = dp_sim_disk_interface(sim),
                          .test = pthread_self(),
                          .lock = PTHREAD_MUTEX_INITIALIZER,
                          .changed = PTHREAD_COND_INITIALIZER};
    gate->disk = (struct dp_disk){.open = gated_open,
                                  .close = gated_close,
                                  .size = gated_size,
                                  .reserve = gated_reserve,
                                  .read = gated_read,
                                  .write = gated_write,
                                  .sync = gated_sync,
                                  .rename = gated_rename,
                                  .remove = gated_remove,
                                  .sync_directory = gated_sync_directory,
                                  .list = gated_list,
                                  .self = gate};
}

static void gate_open(struct gate *gate)
{
    (void)pthread_mutex_lock(&gate->lock);
    gate->shut = false;
    (void)pthread_cond_broadcast(&gate->changed);
    (void)pthread_mutex_unlock(&gate->lock);
}

static void gate_await(struct gate *gate, uint32_t passes)
{
    (void)pthread_mutex_lock(&gate->lock);
    gate->passes = passes;
    (void)pthread_cond_broadcast(&gate->changed);
    while (gate->passes > 0 || !gate->waits)
        (void)pthread_cond_wait(&gate->changed, &gate->lock);
    (void)pthread_mutex_unlock(&gate->lock);
}

/* Mode process: what the commit thread took and has not written yet would be gone if the process died now. */
static void what_is_being_written_is_not_durable(void **state)
{
    (void)state;
    /* Small enough, with a page in front, to be copied under the lock: the commit thread, which a new segment wakes,
     * finds the whole record. (A larger one it may find half copied; then it is the next commit that writes it.) */
    static uint8_t record[20000];
    struct bell bell = {.lock = PTHREAD_MUTEX_INITIALIZER, .rung = PTHREAD_COND_INITIALIZER};
    struct dp_sim_disk *sim = dp_sim_disk_new(8);
    struct gate gate;
    gate_init(&gate, sim);
    struct dp_error err = {0};
    struct dp_journal *journal = NULL;
    struct dp_journal_options options = {.disk = &gate.disk,
                                         .durability = DP_DURABILITY_PROCESS,
                                         .segment_bytes = SEGMENT,
                                         .budget_bytes = 4u * SEGMENT,
                                         .commit_thread = true,
                                         .wake = ring,
                                         .wake_context = &bell,
                                         .idle_ms = 600000}; /* the gate is for records, not for claims */
    struct dp_journal_piece piece = {record, sizeof record};
    struct dp_journal_figures figures = {0};
    enum dp_status poison;
    uint64_t lsn = 0;
    assert_int_equal(dp_journal_open(&options, &journal, &err), DP_OK);
    dp_journal_figures(journal, &figures);
    uint64_t used = figures.bytes_used;
    gate.shut = true;
    while (figures.bytes_used == used) { /* the first record of the next segment is the thread's to write */
        dp_journal_commit(journal);
        assert_int_equal(dp_journal_append(journal, &piece, 1, &lsn, &err), DP_OK);
        dp_journal_figures(journal, &figures);
    }
    (void)pthread_mutex_lock(&gate.lock);
    while (!gate.waits)
        (void)pthread_cond_wait(&gate.changed, &gate.lock);
    (void)pthread_mutex_unlock(&gate.lock);
    uint64_t taken = lsn;
    dp_journal_commit(journal);
    assert_int_equal(dp_journal_durable(journal, &poison, &err), taken - 1);
    assert_int_equal(dp_journal_append(journal, &piece, 1, &lsn, &err), DP_OK);
    dp_journal_commit(journal); /* behind the hole: of no use either */
    assert_int_equal(dp_journal_durable(journal, &poison, &err), taken - 1);
    uint64_t rings = rings_of(&bell);
    gate_open(&gate);
    while (dp_journal_durable(journal, &poison, &err) < lsn) /* in a round, and one more */
        rings = wait_for(&bell, rings);
    assert_int_equal(poison, DP_OK);
    dp_journal_close(&journal);
    dp_sim_disk_free(&sim);
}

/* Mode process: a record behind a claim that is not written yet would not be found, if the process died now. */
static void behind_an_unwritten_claim_nothing_is_durable(void **state)
{
    (void)state;
    static uint8_t record[300];
    struct bell bell = {.lock = PTHREAD_MUTEX_INITIALIZER, .rung = PTHREAD_COND_INITIALIZER};
    struct dp_sim_disk *sim = dp_sim_disk_new(12);
    struct gate gate;
    gate_init(&gate, sim);
    struct dp_error err = {0};
    struct dp_journal *journal = NULL;
    struct dp_journal_options options = {.disk = &gate.disk,
                                         .durability = DP_DURABILITY_PROCESS,
                                         .segment_bytes = SEGMENT,
                                         .budget_bytes = 4u * SEGMENT,
                                         .commit_thread = true,
                                         .wake = ring,
                                         .wake_context = &bell,
                                         .idle_ms = 1};
    struct dp_journal_piece piece = {record, sizeof record};
    struct dp_journal_figures figures = {0};
    enum dp_status poison;
    uint64_t lsn = 0;
    assert_int_equal(dp_journal_open(&options, &journal, &err), DP_OK);
    gate.shut = true;
    assert_int_equal(dp_journal_append(journal, &piece, 1, &lsn, &err), DP_OK);
    dp_journal_commit(journal); /* written by this thread, which the gate lets through */
    assert_int_equal(dp_journal_durable(journal, &poison, &err), 1);
    gate_await(&gate, 0); /* the claim */
    assert_int_equal(dp_journal_append(journal, &piece, 1, &lsn, &err), DP_OK);
    dp_journal_commit(journal);
    assert_int_equal(dp_journal_durable(journal, &poison, &err), 1);
    dp_journal_figures(journal, &figures);
    assert_int_equal(figures.claimed_lsn, 0);
    uint64_t rings = rings_of(&bell);
    gate_open(&gate);
    while (dp_journal_durable(journal, &poison, &err) < 2)
        rings = wait_for(&bell, rings);
    assert_int_equal(poison, DP_OK);
    dp_journal_close(&journal);
    dp_sim_disk_free(&sim);
}

/* The disk takes nothing: appends are refused when the stage is full, and go on, with nothing lost, when it does. */
static void a_disk_that_is_behind_is_waited_for(void **state)
{
    (void)state;
    static uint8_t record[3u << 20];
    struct bell bell = {.lock = PTHREAD_MUTEX_INITIALIZER, .rung = PTHREAD_COND_INITIALIZER};
    struct dp_sim_disk *sim = dp_sim_disk_new(9);
    struct gate gate;
    gate_init(&gate, sim);
    struct dp_error err = {0};
    struct dp_journal *journal = NULL;
    struct replayed replayed = {0};
    struct dp_journal_options options = {.disk = &gate.disk,
                                         .segment_bytes = 16u << 20,
                                         .first_bytes = 16u << 20,
                                         .budget_bytes = 64u << 20,
                                         .commit_thread = true,
                                         .wake = ring,
                                         .wake_context = &bell,
                                         .replay = check,
                                         .replay_context = &replayed};
    struct dp_journal_piece piece = {record, sizeof record};
    enum dp_status st = DP_OK, poison;
    uint64_t lsn = 0, last = 0;
    assert_int_equal(dp_journal_open(&options, &journal, &err), DP_OK);
    gate.shut = true;
    uint64_t rings = rings_of(&bell);
    while (st == DP_OK) {
        uint64_t next = lsn + 1;
        assert_true(next < 20);
        memcpy(record, &next, 8);
        st = dp_journal_append(journal, &piece, 1, &lsn, &err);
        dp_journal_commit(journal);
    }
    assert_int_equal(st, DP_JOURNAL_BEHIND);
    assert_non_null(strstr(err.text, "the disk has not taken"));
    assert_true(lsn >= 3);
    assert_int_equal(dp_journal_durable(journal, &poison, &err), 0);
    last = lsn;
    gate_open(&gate);
    (void)wait_for(&bell, rings);
    while (lsn == last) {
        rings = rings_of(&bell);
        uint64_t next = lsn + 1;
        memcpy(record, &next, 8);
        st = dp_journal_append(journal, &piece, 1, &lsn, &err);
        assert_true(st == DP_OK || st == DP_JOURNAL_BEHIND);
        if (st == DP_JOURNAL_BEHIND)
            (void)wait_for(&bell, rings);
    }
    assert_int_equal(lsn, last + 1);
    dp_journal_close(&journal);
    assert_int_equal(dp_journal_open(&options, &journal, &err), DP_OK);
    assert_int_equal(replayed.last, lsn);
    assert_int_equal(replayed.count, lsn);
    dp_journal_close(&journal);
    dp_sim_disk_free(&sim);
}

/* Two records that do not fit into the stage's ring together; what was staged in front of them is written, so that half of the
 * stage's own chunks are free again, and then the disk takes nothing: the second is refused for now. */
static void two_very_large_records_take_turns(void **state)
{
    (void)state;
    const size_t bytes = (size_t)145 << 20;
    struct bell bell = {.lock = PTHREAD_MUTEX_INITIALIZER, .rung = PTHREAD_COND_INITIALIZER};
    struct dp_sim_disk *sim = dp_sim_disk_new(11);
    struct gate gate;
    gate_init(&gate, sim);
    struct dp_error err = {0};
    struct dp_journal *journal = NULL;
    struct dp_journal_options options = {.disk = &gate.disk,
                                         .segment_bytes = 256u << 20,
                                         .first_bytes = 256u << 20,
                                         .budget_bytes = (uint64_t)1024 << 20,
                                         .commit_thread = true,
                                         .wake = ring,
                                         .wake_context = &bell};
    uint8_t *record = calloc(1, bytes);
    struct dp_journal_piece small = {record, 6u << 20}, large = {record, bytes};
    uint64_t lsn = 0;
    assert_non_null(record);
    assert_int_equal(dp_journal_open(&options, &journal, &err), DP_OK);
    gate.shut = true;
    assert_int_equal(dp_journal_append(journal, &small, 1, &lsn, &err), DP_OK);
    dp_journal_commit(journal);
    gate_await(&gate, 0);
    assert_int_equal(dp_journal_append(journal, &large, 1, &lsn, &err), DP_OK);
    dp_journal_commit(journal);
    gate_await(&gate, 1);
    uint64_t rings = rings_of(&bell);
    enum dp_status st = dp_journal_append(journal, &large, 1, &lsn, &err);
    assert_int_equal(st, DP_JOURNAL_BEHIND);
    gate_open(&gate);
    while (st == DP_JOURNAL_BEHIND || st == DP_AGAIN) {
        rings = wait_for(&bell, rings);
        st = dp_journal_append(journal, &large, 1, &lsn, &err);
    }
    assert_int_equal(st, DP_OK);
    assert_int_equal(lsn, 3);
    free(record);
    dp_journal_close(&journal);
    dp_sim_disk_free(&sim);
}

/* Records from nothing to more than the stage holds, in both modes, with a thread and without. */
static void records_of_all_sizes(void **state)
{
    (void)state;
    static const size_t sizes[] = {
        8,   4032,      32700, 32768,    1u << 20,  (1u << 20) - 4096 - 128, 5000000,
        100, 20u << 20, 64,    3u << 20, 17u << 20, (1u << 20) - 64};
    uint64_t records = sizeof sizes / sizeof *sizes;
    uint8_t *record = calloc(1, 20u << 20);
    assert_non_null(record);
    for (uint32_t form = 0; form < 8; form++) {
        char path[] = "/tmp/downpour-journal-XXXXXX";
        struct bell bell = {.lock = PTHREAD_MUTEX_INITIALIZER, .rung = PTHREAD_COND_INITIALIZER};
        struct dp_sim_disk *sim = dp_sim_disk_new(10);
        struct dp_error err = {0};
        struct dp_disk disk = dp_sim_disk_interface(sim);
        struct dp_journal *journal = NULL;
        struct replayed replayed = {0};
        if (form & 1) {
            assert_non_null(mkdtemp(path));
            assert_int_equal(dp_disk_open(path, &disk, &err), DP_OK);
        }
        struct dp_journal_options options = {.disk = &disk,
                                             .durability =
                                                 form & 2 ? DP_DURABILITY_PROCESS : DP_DURABILITY_MACHINE,
                                             .segment_bytes = 24u << 20,
                                             .first_bytes = 24u << 20,
                                             .budget_bytes = 120u << 20,
                                             .commit_thread = (form & 4) != 0,
                                             .wake = ring,
                                             .wake_context = &bell,
                                             .replay = check,
                                             .replay_context = &replayed};
        uint64_t lsn = 0;
        assert_int_equal(dp_journal_open(&options, &journal, &err), DP_OK);
        while (lsn < records) {
            uint64_t rings = rings_of(&bell), next = lsn + 1;
            memset(record, (int)next, sizes[lsn]);
            memcpy(record, &next, 8);
            struct dp_journal_piece pieces[3] = {{record, sizes[lsn] / 3},
                                                 {record + sizes[lsn] / 3, 0},
                                                 {record + sizes[lsn] / 3, sizes[lsn] - sizes[lsn] / 3}};
            enum dp_status st = dp_journal_append(journal, pieces, 3, &lsn, &err);
            assert_true(st == DP_OK || st == DP_AGAIN || st == DP_JOURNAL_BEHIND);
            if (next % 2 == 0 || st != DP_OK)
                dp_journal_commit(journal);
            if (st != DP_OK && options.commit_thread)
                (void)wait_for(&bell, rings);
        }
        dp_journal_close(&journal);
        assert_int_equal(dp_journal_open(&options, &journal, &err), DP_OK);
        assert_int_equal(replayed.last, records);
        assert_int_equal(replayed.count, records);
        dp_journal_close(&journal);
        dp_sim_disk_free(&sim);
        if (form & 1) {
            (void)disk.list(disk.self, remove_name, &disk, NULL);
            dp_disk_close(&disk);
            assert_int_equal(rmdir(path), 0);
        }
    }
    free(record);
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
    (void)state;
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
        cmocka_unit_test(what_is_being_written_is_not_durable),
        cmocka_unit_test(behind_an_unwritten_claim_nothing_is_durable),
        cmocka_unit_test(a_disk_that_is_behind_is_waited_for),
        cmocka_unit_test(two_very_large_records_take_turns),
        cmocka_unit_test(records_of_all_sizes),
        cmocka_unit_test(two_journals_on_one_disk_do_not_starve_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
