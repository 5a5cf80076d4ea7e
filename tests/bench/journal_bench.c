/* Journal bench: records appended and committed by the thread inside, beside a bare log that writes the same bytes
 * from this thread and calls fdatasync on a second one, in the same directory, interleaved, median of the repeats.
 *     journal_bench [DIR] [MIB per run] [repeats]
 * Both write into files that were written before (recycled segments). The bare log checks nothing, keeps no order
 * and answers nobody. Processor time: of the thread that appends, and of all others. Then pushes as a shard gets them:
 * a record, so much work on it, commit; 4 at most that are not durable; and one small record at a time. */
#define _DEFAULT_SOURCE
#include "server/journal/journal.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SEGMENT  (256u << 20)
#define REPEATS  15
#define KINDS    3
#define TURN_MAX (720u << 10)
#define PUSH_MAX (2640u << 10)

static const size_t sizes[KINDS] = {720u << 10, 64u << 10, 2u << 10};

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cpu(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Nanoseconds of processor a KiB. */
struct cost {
    double own, others;
};

static struct cost cost_of(double own, double all, uint64_t bytes)
{
    double each = 1e9 * 1024 / (double)bytes;
    return (struct cost){own * each, (all - own) * each};
}

/* ---- the bare log ---- */

struct bare {
    int files[2];
    _Atomic uint64_t written, synced;
    atomic_bool stop;
};

static void *sync_all(void *context)
{
    struct bare *bare = context;
    while (!atomic_load(&bare->stop)) {
        uint64_t written = atomic_load(&bare->written);
        if (written == atomic_load(&bare->synced)) {
            (void)usleep(20);
            continue;
        }
        if (fdatasync(bare->files[0]) != 0 || fdatasync(bare->files[1]) != 0)
            abort();
        atomic_store(&bare->synced, written);
    }
    return NULL;
}

static double run_bare(struct bare *bare, const uint8_t *data, size_t record, uint64_t total,
                       struct cost *cost)
{
    pthread_t thread;
    atomic_store(&bare->stop, false);
    atomic_store(&bare->written, 0);
    atomic_store(&bare->synced, 0);
    double begun = now(), own = cpu(CLOCK_THREAD_CPUTIME_ID), all = cpu(CLOCK_PROCESS_CPUTIME_ID);
    if (pthread_create(&thread, NULL, sync_all, bare) != 0)
        abort();
    uint64_t at = 0, done = 0;
    for (uint64_t i = 0; done < total; i++, done += record) {
        if (at / SEGMENT != (at + record) / SEGMENT)
            at = (at / SEGMENT + 1) * SEGMENT;
        off_t place = (off_t)(at % SEGMENT);
        if (pwrite(bare->files[at / SEGMENT % 2], data, record, place) != (ssize_t)record)
            abort();
        at += record;
        atomic_store(&bare->written, done + record);
    }
    while (atomic_load(&bare->synced) < done)
        (void)usleep(20);
    double seconds = now() - begun;
    *cost = cost_of(cpu(CLOCK_THREAD_CPUTIME_ID) - own, cpu(CLOCK_PROCESS_CPUTIME_ID) - all, done);
    atomic_store(&bare->stop, true);
    (void)pthread_join(thread, NULL);
    return (double)done / seconds / 1e6;
}

/* ---- the journal ---- */

struct bell {
    pthread_mutex_t lock;
    pthread_cond_t rung;
    bool rang;
};

static void ring(void *context)
{
    struct bell *bell = context;
    (void)pthread_mutex_lock(&bell->lock);
    bell->rang = true;
    (void)pthread_cond_signal(&bell->rung);
    (void)pthread_mutex_unlock(&bell->lock);
}

static void wait_for(struct bell *bell)
{
    (void)pthread_mutex_lock(&bell->lock);
    while (!bell->rang) {
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 1;
        (void)pthread_cond_timedwait(&bell->rung, &bell->lock, &until);
    }
    bell->rang = false;
    (void)pthread_mutex_unlock(&bell->lock);
}

static double run_journal(struct dp_journal *journal, struct bell *bell, const uint8_t *data, size_t record,
                          uint64_t total, uint64_t *refused, struct cost *cost)
{
    struct dp_error err = {0};
    enum dp_status st;
    uint64_t lsn = 0, done = 0, turn = 0;
    double begun = now(), own = cpu(CLOCK_THREAD_CPUTIME_ID), all = cpu(CLOCK_PROCESS_CPUTIME_ID);
    while (done < total) {
        struct dp_journal_piece pieces[2] = {{data, 80000 % record},
                                             {data + 80000 % record, record - 80000 % record}};
        st = dp_journal_append(journal, pieces, 2, &lsn, &err);
        if (st == DP_OK) {
            done += record;
            turn += record;
        }
        if (turn >= TURN_MAX || st != DP_OK) {
            dp_journal_commit(journal);
            dp_journal_release(journal, dp_journal_durable(journal, &st, &err) + 1);
            if (st != DP_OK) {
                (void)fprintf(stderr, "%s\n", err.text);
                exit(1);
            }
            if (turn < TURN_MAX) {
                ++*refused;
                wait_for(bell);
            }
            turn = 0;
        }
    }
    dp_journal_commit(journal);
    while (dp_journal_durable(journal, &st, &err) < lsn && st == DP_OK)
        wait_for(bell);
    *cost = cost_of(cpu(CLOCK_THREAD_CPUTIME_ID) - own, cpu(CLOCK_PROCESS_CPUTIME_ID) - all, done);
    return (double)done / (now() - begun) / 1e6;
}

/* Milliseconds a push, with `window` of them not durable at most, and `work` seconds for each. */
static double run_pushes(struct dp_journal *journal, struct bell *bell, const uint8_t *data, size_t record,
                         uint64_t pushes, uint64_t window, double work, struct cost *cost)
{
    struct dp_error err = {0};
    enum dp_status st = DP_OK;
    uint64_t lsn = dp_journal_last(journal), durable = lsn, end = lsn + pushes;
    double begun = now(), own = cpu(CLOCK_THREAD_CPUTIME_ID), all = cpu(CLOCK_PROCESS_CPUTIME_ID);
    while (durable < end) {
        struct dp_journal_piece piece = {data, record};
        if (lsn < end && lsn < durable + window &&
            (st = dp_journal_append(journal, &piece, 1, &lsn, &err)) == DP_OK) {
            for (double t = cpu(CLOCK_THREAD_CPUTIME_ID); cpu(CLOCK_THREAD_CPUTIME_ID) - t < work;)
                ;
        } else {
            wait_for(bell);
        }
        dp_journal_commit(journal);
        durable = dp_journal_durable(journal, &st, &err);
        dp_journal_release(journal, durable + 1);
        if (st != DP_OK) {
            (void)fprintf(stderr, "%s\n", err.text);
            exit(1);
        }
    }
    *cost = cost_of(cpu(CLOCK_THREAD_CPUTIME_ID) - own - work * (double)pushes,
                    cpu(CLOCK_PROCESS_CPUTIME_ID) - all - work * (double)pushes, record * pushes);
    return (now() - begun) / (double)pushes * 1e3;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void remove_name(void *context, const char *name)
{
    struct dp_disk *disk = context;
    (void)disk->remove(disk->self, name, NULL);
}

static bool open_bare(struct bare *bare, const char *directory, const uint8_t *data)
{
    char path[512];
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/bare-%d", directory, i);
        bare->files[i] = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (bare->files[i] < 0)
            return false;
        for (off_t at = 0; at < (off_t)SEGMENT; at += 64 << 10)
            if (pwrite(bare->files[i], data, 64 << 10, at) != 64 << 10)
                return false;
        (void)fdatasync(bare->files[i]);
    }
    return true;
}

static void push_all(struct dp_journal *journal, struct bell *bell, const uint8_t *data, uint64_t repeats)
{
    static const struct {
        size_t record;
        uint64_t pushes, window;
        double work;
    } kinds[] = {{720u << 10, 500, 4, 0.0007}, {2640u << 10, 100, 4, 0.0018}, {1000, 500, 1, 0}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        double ms[REPEATS];
        struct cost cost;
        for (uint64_t r = 0; r < repeats; r++)
            ms[r] = run_pushes(journal, bell, data, kinds[k].record, kinds[k].pushes, kinds[k].window,
                               kinds[k].work, &cost);
        qsort(ms, repeats, sizeof *ms, ascending);
        (void)printf(
            "pushes of %zu bytes, %.1f ms of work each, %llu not durable: %.3f ms each (%.3f to %.3f); ns "
            "a KiB %.0f + %.0f\n",
            kinds[k].record, kinds[k].work * 1e3, (unsigned long long)kinds[k].window, ms[repeats / 2], ms[0],
            ms[repeats - 1], cost.own, cost.others);
    }
}

int main(int argc, char **argv)
{
    char made[] = "/tmp/downpour-journal-bench-XXXXXX";
    const char *directory = argc > 1 ? argv[1] : mkdtemp(made);
    uint64_t total = (argc > 2 ? strtoull(argv[2], NULL, 10) : 512) << 20;
    uint64_t repeats = argc > 3 ? strtoull(argv[3], NULL, 10) : 3, refused = 0;
    struct bell bell = {.lock = PTHREAD_MUTEX_INITIALIZER, .rung = PTHREAD_COND_INITIALIZER};
    struct bare bare = {0};
    struct dp_disk disk;
    struct dp_error err = {0};
    struct dp_journal *journal = NULL;
    uint8_t *data = malloc(PUSH_MAX);
    if (!directory || !data || repeats == 0 || repeats > REPEATS)
        return 2;
    for (size_t i = 0; i < PUSH_MAX; i++)
        data[i] = (uint8_t)(i * 2654435761u >> 13);
    struct dp_journal_options options = {.disk = &disk,
                                         .budget_bytes = 4ull * SEGMENT,
                                         .commit_thread = true,
                                         .wake = ring,
                                         .wake_context = &bell};
    if (dp_disk_open(directory, &disk, &err) != DP_OK || dp_journal_open(&options, &journal, &err) != DP_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    if (!open_bare(&bare, directory, data))
        return 1;
    /* The first lap, into segments that were never written. */
    struct cost cost;
    double first = run_journal(journal, &bell, data, sizes[0], 4ull * SEGMENT, &refused, &cost);
    (void)printf("first lap, new segments, records of 720 KiB: %.0f MB/s; ns a KiB %.0f + %.0f\n", first,
                 cost.own, cost.others);
    for (int k = 0; k < KINDS; k++) {
        double bares[REPEATS], ours[REPEATS];
        struct cost bare_cost;
        refused = 0;
        for (uint64_t r = 0; r < repeats; r++) {
            bares[r] = run_bare(&bare, data, sizes[k], total, &bare_cost);
            ours[r] = run_journal(journal, &bell, data, sizes[k], total, &refused, &cost);
        }
        qsort(bares, repeats, sizeof *bares, ascending);
        qsort(ours, repeats, sizeof *ours, ascending);
        double bare_mid = bares[repeats / 2], our_mid = ours[repeats / 2];
        (void)printf(
            "records of %4zu KiB: journal %.0f (%.0f to %.0f), bare %.0f (%.0f to %.0f) MB/s, ratio %.2f, "
            "refused %llu; ns a KiB %.0f + %.0f, bare %.0f + %.0f\n",
            sizes[k] >> 10, our_mid, ours[0], ours[repeats - 1], bare_mid, bares[0], bares[repeats - 1],
            our_mid / bare_mid, (unsigned long long)refused, cost.own, cost.others, bare_cost.own,
            bare_cost.others);
    }
    push_all(journal, &bell, data, repeats);
    dp_journal_close(&journal);
    (void)close(bare.files[0]);
    (void)close(bare.files[1]);
    (void)disk.list(disk.self, remove_name, &disk, NULL);
    dp_disk_close(&disk);
    (void)rmdir(directory);
    free(data);
    return 0;
}
