/* A round:  take what is staged -> write it -> sync what was written, oldest segment first -> durable -> wake,
 * then make the next segment ahead of need, out of a released one if there is one.
 * Why   Oldest first: lsns become durable in order. A segment is made after the round is published, so that
 *       replies do not wait for it.
 * Holds durable never passes a record that somebody is still writing (hand_first, taken_first). */
#include "server/store/journal_inside.h"

#include "common/base/deadline.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

#define TICK_MS 200u /* a segment that could not be made is tried again */

static void wake(struct dp_journal *journal)
{
    if (journal->options.commit_thread && journal->options.wake)
        journal->options.wake(journal->options.wake_context);
}

void dp_journal_poison(struct dp_journal *journal, const struct dp_error *why)
{
    (void)pthread_mutex_lock(&journal->lock);
    if (atomic_load(&journal->poison) == DP_OK) {
        journal->why = *why;
        atomic_store(&journal->poison, (int)why->status);
    }
    (void)pthread_mutex_unlock(&journal->lock);
}

/* Swaps the staged bytes out; gives the lsn that is reached once they are written and synced. */
static uint64_t take(struct dp_journal *journal, struct dp_file **file, uint64_t *at, size_t *bytes)
{
    (void)pthread_mutex_lock(&journal->lock);
    uint64_t target = journal->hand_first ? journal->hand_first - 1 : journal->last;
    *bytes = 0;
    if (journal->staged > 0) {
        struct dp_journal_segment *segment = &journal->segments[journal->count - 1];
        dp_journal_pad(journal);
        uint8_t *full = journal->stage;
        journal->stage = journal->taken;
        journal->taken = full;
        *file = segment->file;
        *at = journal->stage_at;
        *bytes = journal->staged;
        segment->dirty = true; /* nobody but this thread syncs */
        journal->taken_first = journal->stage_first ? journal->stage_first : journal->last + 1;
        journal->stage_at += journal->staged;
        journal->staged = 0;
        journal->stage_first = 0;
    }
    (void)pthread_mutex_unlock(&journal->lock);
    return target;
}

/* What was taken is written. In mode process that makes it durable: the shard, which found it taken, is told. */
static void taken_is_written(struct dp_journal *journal)
{
    (void)pthread_mutex_lock(&journal->lock);
    journal->taken_first = 0;
    uint64_t written = dp_journal_written(journal);
    bool further =
        journal->options.durability == DP_DURABILITY_PROCESS && written > atomic_load(&journal->durable);
    if (further)
        atomic_store(&journal->durable, written);
    (void)pthread_mutex_unlock(&journal->lock);
    if (further)
        wake(journal);
}

/* The oldest segment above `after` that was written since its last sync. */
static bool next_dirty(struct dp_journal *journal, uint64_t *after, struct dp_file **file)
{
    bool found = false;
    (void)pthread_mutex_lock(&journal->lock);
    for (size_t i = 0; i < journal->count && !found; i++) {
        struct dp_journal_segment *segment = &journal->segments[i];
        if (!segment->dirty || segment->number <= *after)
            continue;
        found = true;
        segment->dirty = false;
        *after = segment->number;
        *file = segment->file;
    }
    (void)pthread_mutex_unlock(&journal->lock);
    return found;
}

static void publish(struct dp_journal *journal, uint64_t target)
{
    (void)pthread_mutex_lock(&journal->lock);
    for (size_t i = 0; i < journal->count; i++)
        if (journal->segments[i].first_lsn <= target)
            journal->segments[i].page_synced = true;
    atomic_store(&journal->synced, target);
    if (journal->options.durability == DP_DURABILITY_MACHINE)
        atomic_store(&journal->durable, target);
    (void)pthread_mutex_unlock(&journal->lock);
}

void dp_journal_round(struct dp_journal *journal)
{
    struct dp_error err = {0};
    struct dp_file *file = NULL;
    uint64_t at = 0, after = 0;
    size_t bytes;
    enum dp_status st = DP_OK;
    if (atomic_load(&journal->poison) != DP_OK)
        return;
    uint64_t target = take(journal, &file, &at, &bytes);
    if (bytes > 0) {
        struct dp_disk_piece piece = {journal->taken, bytes};
        st = journal->disk->write(journal->disk->self, file, at, &piece, 1, &err);
        if (st == DP_OK)
            taken_is_written(journal);
    }
    while (st == DP_OK && next_dirty(journal, &after, &file)) {
        st = journal->disk->sync(journal->disk->self, file, &err);
        (void)pthread_mutex_lock(&journal->lock);
        journal->syncs++;
        (void)pthread_mutex_unlock(&journal->lock);
    }
    if (st != DP_OK) {
        (void)dp_wrap(&err, st, "journal: commit up to lsn %llu", (unsigned long long)target);
        dp_journal_poison(journal, &err);
        wake(journal);
        return;
    }
    if (target > atomic_load(&journal->synced)) {
        publish(journal, target);
        wake(journal);
    }
}

/* Moves segments that nobody needs to the spares; lock held. The page of the one behind must be durable: it
 * carries the incarnation and the first lsn from which an opening goes on. */
static void retire(struct dp_journal *journal)
{
    uint64_t synced = atomic_load(&journal->synced);
    while (journal->count > 1) {
        struct dp_journal_segment *oldest = &journal->segments[0];
        if (oldest->last_lsn >= journal->keep_from || oldest->last_lsn > synced || oldest->dirty ||
            !journal->segments[1].page_synced)
            return;
        journal->spares[journal->spare_count++] = *oldest;
        journal->count--;
        memmove(oldest, oldest + 1, journal->count * sizeof *oldest);
    }
}

/* What the budget does not allow any more, and what has another size, is removed. Gives what to make the next
 * segment of (`old`; without a file: of nothing), or false: none may be made now. Lock held. */
static bool choose(struct dp_journal *journal, struct dp_journal_segment *old,
                   struct dp_journal_segment *surplus)
{
    for (size_t i = 0; i < journal->spare_count; i++) {
        bool other = journal->spares[i].bytes != journal->segment_bytes;
        if (!other &&
            journal->count + journal->spare_count + (journal->next.file != NULL) <= journal->segments_max)
            continue;
        *surplus = journal->spares[i];
        journal->spares[i] = journal->spares[--journal->spare_count];
        return false;
    }
    if (journal->next.file || journal->count >= journal->segments_max)
        return false;
    if (journal->spare_count > 0)
        *old = journal->spares[--journal->spare_count];
    return true;
}

static enum dp_status drop(struct dp_journal *journal, struct dp_journal_segment *surplus,
                           struct dp_error *err)
{
    char name[DP_JOURNAL_NAME_BYTES];
    dp_journal_segment_name(name, surplus->number);
    dp_journal_segment_close(journal->disk, surplus);
    enum dp_status st = journal->disk->remove(journal->disk->self, name, err);
    if (st == DP_OK)
        st = journal->disk->sync_directory(journal->disk->self, err);
    return st;
}

void dp_journal_prepare(struct dp_journal *journal)
{
    struct dp_error err = {0};
    enum dp_status st = DP_OK;
    bool make = false, ready = false;
    while (atomic_load(&journal->poison) == DP_OK) {
        struct dp_journal_segment old = {0}, surplus = {0}, made;
        (void)pthread_mutex_lock(&journal->lock);
        retire(journal);
        make = choose(journal, &old, &surplus);
        uint64_t number = journal->number_last + 1;
        (void)pthread_mutex_unlock(&journal->lock);
        if (!make && !surplus.file)
            break;
        if (surplus.file) {
            st = drop(journal, &surplus, &err);
            if (st != DP_OK)
                break;
            continue;
        }
        st = dp_journal_segment_make(journal->disk, &old, number, journal->segment_bytes, &made, &err);
        (void)pthread_mutex_lock(&journal->lock);
        journal->making = (struct dp_error){0};
        if (st == DP_OK) {
            journal->next = made;
            journal->number_last = number;
        } else if (st == DP_FULL) {
            journal->making = err;
        }
        (void)pthread_mutex_unlock(&journal->lock);
        if (st != DP_OK)
            break;
    }
    /* A full disk takes nothing away from what is there; any other failure leaves the directory unknown. */
    if (st != DP_OK && st != DP_FULL)
        dp_journal_poison(journal, &err);
    (void)pthread_mutex_lock(&journal->lock);
    bool poisoned = st != DP_OK && st != DP_FULL;
    ready = (journal->starved && (journal->next.file || poisoned)) ||
            (journal->over && (journal->count <= journal->segments_max || poisoned));
    if (ready)
        journal->starved = journal->over = false;
    (void)pthread_mutex_unlock(&journal->lock);
    if (ready)
        wake(journal);
}

static void *run(void *context)
{
    struct dp_journal *journal = context;
    (void)prctl(PR_SET_NAME, "journal");
    for (;;) {
        (void)pthread_mutex_lock(&journal->lock);
        bool tick = false;
        while (!journal->want_round && !journal->want_segment && !journal->stop && !tick) {
            struct timespec until = dp_deadline_in_ms(TICK_MS);
            tick = pthread_cond_timedwait(&journal->wanted, &journal->lock, &until) == ETIMEDOUT &&
                   journal->making.status != DP_OK;
        }
        bool commit = journal->want_round, stop = journal->stop;
        journal->want_round = journal->want_segment = false;
        (void)pthread_mutex_unlock(&journal->lock);
        if (commit || stop)
            dp_journal_round(journal);
        if (stop)
            return NULL;
        dp_journal_prepare(journal);
    }
}

enum dp_status dp_journal_thread_start(struct dp_journal *journal, struct dp_error *err)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&journal->thread, NULL, run, journal);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return dp_fail(err, DP_NOMEM, "journal: start the commit thread: %s", strerror(failed));
    journal->thread_runs = true;
    return DP_OK;
}

void dp_journal_thread_stop(struct dp_journal *journal)
{
    if (!journal->thread_runs)
        return;
    (void)pthread_mutex_lock(&journal->lock);
    journal->stop = true;
    (void)pthread_cond_signal(&journal->wanted);
    (void)pthread_mutex_unlock(&journal->lock);
    (void)pthread_join(journal->thread, NULL);
    journal->thread_runs = false;
}
