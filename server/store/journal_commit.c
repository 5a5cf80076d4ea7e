/* A round:  write what is staged -> sync what was written, oldest segment first -> durable -> wake,
 * then make the next segment ahead of need, out of a released one if there is one.
 * Why   Oldest first: lsns become durable in order. A segment is made after the round is published, so that
 *       replies do not wait for it.
 * Holds durable never passes a record that is not written: it is in the stage until it is. */
#include "server/store/journal_inside.h"

#include "common/base/deadline.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

/* A segment that could not be made is tried again, about; others are waited for so long at once. */
#define TICK_MS 200u
#define IDLE_MS 100u

void dp_journal_wake(const struct dp_journal *journal)
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
    (void)pthread_cond_broadcast(&journal->written);
    (void)pthread_mutex_unlock(&journal->lock);
}

/* Writes what was staged when it began; gives the lsn that is reached once it is synced. */
static enum dp_status write_staged(struct dp_journal *journal, uint64_t *target, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    (void)pthread_mutex_lock(&journal->lock);
    dp_journal_stage_close(journal);
    uint64_t upto = journal->stage.closed;
    while (st == DP_OK && journal->stage.written < upto) {
        if (!journal->stage.writing) {
            st = dp_journal_stage_write(journal, err);
            continue;
        }
        struct timespec until = dp_deadline_in_ms(TICK_MS); /* the shard is writing */
        (void)pthread_cond_timedwait(&journal->written, &journal->lock, &until);
        if (atomic_load(&journal->poison) != DP_OK)
            st = dp_fail(err, (enum dp_status)atomic_load(&journal->poison), "%s", journal->why.text);
    }
    *target = dp_journal_stage_written(journal);
    /* Mode process: the shard left it to this thread, and is told. */
    bool further = st == DP_OK && journal->options.durability == DP_DURABILITY_PROCESS &&
                   *target > atomic_load(&journal->durable);
    if (further)
        atomic_store(&journal->durable, *target);
    (void)pthread_mutex_unlock(&journal->lock);
    if (further)
        dp_journal_wake(journal);
    return st;
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
    uint64_t target = 0, after = 0;
    if (atomic_load(&journal->poison) != DP_OK)
        return;
    enum dp_status st = write_staged(journal, &target, &err);
    while (st == DP_OK && next_dirty(journal, &after, &file)) {
        st = journal->disk->sync(journal->disk->self, file, &err);
        (void)pthread_mutex_lock(&journal->lock);
        journal->syncs++;
        (void)pthread_mutex_unlock(&journal->lock);
    }
    if (st != DP_OK) {
        (void)dp_wrap(&err, st, "journal: commit up to lsn %llu", (unsigned long long)target);
        dp_journal_poison(journal, &err);
        dp_journal_wake(journal);
        return;
    }
    if (target > atomic_load(&journal->synced)) {
        publish(journal, target);
        dp_journal_wake(journal);
    }
}

void dp_journal_go_direct(const struct dp_journal *journal, const struct dp_journal_segment *segment)
{
    if (journal->options.durability == DP_DURABILITY_MACHINE && journal->disk->go_direct)
        journal->disk->go_direct(journal->disk->self, segment->file);
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

uint64_t dp_journal_kept_bytes(const struct dp_journal *journal)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < journal->count; i++)
        bytes += journal->segments[i].bytes;
    return bytes;
}

static struct dp_journal_segment take_spare(struct dp_journal *journal, size_t i)
{
    struct dp_journal_segment spare = journal->spares[i];
    journal->spares[i] = journal->spares[--journal->spare_count];
    return spare;
}

/* The largest; without a file: there is none. */
static struct dp_journal_segment take_largest(struct dp_journal *journal)
{
    size_t largest = 0;
    if (journal->spare_count == 0)
        return (struct dp_journal_segment){0};
    for (size_t i = 1; i < journal->spare_count; i++)
        if (journal->spares[i].bytes > journal->spares[largest].bytes)
            largest = i;
    return take_spare(journal, largest);
}

/* A spare that goes: larger than any may be, beyond the budget with `more` bytes, or too small to be used again. */
static bool choose_surplus(struct dp_journal *journal, uint64_t more, struct dp_journal_segment *surplus)
{
    uint64_t all = dp_journal_kept_bytes(journal) + journal->next.bytes + more;
    for (size_t i = 0; i < journal->spare_count; i++)
        all += journal->spares[i].bytes;
    for (size_t i = 0; i < journal->spare_count; i++) {
        uint64_t bytes = journal->spares[i].bytes;
        if (bytes > journal->segment_bytes || all > journal->budget_bytes || bytes < journal->next.bytes) {
            *surplus = take_spare(journal, i);
            return true;
        }
    }
    return false;
}

/* The next one is twice as large as the one before it, as far as the budget goes. 0: none may be made now. */
static uint64_t next_bytes(const struct dp_journal *journal)
{
    uint64_t bytes = 2 * journal->segments[journal->count - 1].bytes, kept = dp_journal_kept_bytes(journal);
    uint64_t left = kept < journal->budget_bytes ? journal->budget_bytes - kept : 0;
    uint64_t least = journal->want_bytes > journal->first_bytes ? journal->want_bytes : journal->first_bytes;
    bytes = bytes < journal->segment_bytes ? bytes : journal->segment_bytes;
    bytes = bytes > least ? bytes : least;
    bytes = bytes < left ? bytes : left - left % DP_JOURNAL_PAGE;
    return bytes < least ? 0 : bytes;
}

/* Gives what to remove, or what to make the next segment of (`old`; without a file: of nothing) and how large, or false: none may be made
 * now. Lock held. */
static bool choose(struct dp_journal *journal, struct dp_journal_segment *old,
                   struct dp_journal_segment *surplus, uint64_t *bytes)
{
    if (journal->next.file && journal->next.bytes < journal->want_bytes) {
        journal->spares[journal->spare_count++] = journal->next;
        journal->next = (struct dp_journal_segment){0};
    }
    if (choose_surplus(journal, 0, surplus) || journal->next.file)
        return false;
    *bytes = next_bytes(journal);
    if (*bytes == 0)
        return false;
    *old = take_largest(journal);
    if (old->file && old->bytes >= *bytes) {
        *bytes = old->bytes;
        return true;
    }
    if (old->file) /* it stays until there is a larger one */
        journal->spares[journal->spare_count++] = *old;
    *old = (struct dp_journal_segment){0};
    return !choose_surplus(journal, *bytes, surplus);
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

/* Out of `old`, or, where the disk has room for it, of nothing. What the rows take that write-back makes of a journal this
 * large must not be given to the journal: nothing of it could be released then. So a third segment leaves as much again.
 * Looked at behind it too: other shards' journals may have grown meanwhile. */
static enum dp_status make_segment(struct dp_journal *journal, struct dp_journal_segment *old,
                                   uint64_t number, uint64_t bytes, uint64_t left,
                                   struct dp_journal_segment *made, struct dp_error *err)
{
    const struct dp_journal_options *o = &journal->options;
    bool grows = !old->file && o->room;
    enum dp_status st = grows ? o->room(o->room_context, bytes + left, err) : DP_OK;
    if (st != DP_OK)
        return dp_wrap(err, st, "journal: a new segment");
    st = dp_journal_segment_make(journal->disk, old, number, bytes, made, err);
    if (st != DP_OK || !grows)
        return st;
    st = o->room(o->room_context, left, err);
    if (st == DP_OK)
        return st;
    struct dp_error why = *err;
    enum dp_status dropped = drop(journal, made, err);
    if (dropped != DP_OK)
        return dropped;
    *err = why;
    return dp_wrap(err, st, "journal: a new segment");
}

/* Without room for a larger one a released one will do, as it is: it takes nothing. */
static enum dp_status make_of_spare(struct dp_journal *journal, uint64_t number,
                                    struct dp_journal_segment *made, struct dp_error *err)
{
    (void)pthread_mutex_lock(&journal->lock);
    struct dp_journal_segment old = take_largest(journal);
    (void)pthread_mutex_unlock(&journal->lock);
    if (!old.file)
        return DP_FULL; /* err says why */
    return dp_journal_segment_make(journal->disk, &old, number, old.bytes, made, err);
}

/* The next segment, of so many bytes or, where the disk has no room for it, of a spare; DP_FULL: of none. */
static enum dp_status make_next(struct dp_journal *journal, struct dp_journal_segment *old, uint64_t number,
                                uint64_t bytes, struct dp_error *err)
{
    struct dp_journal_segment made = {0};
    struct dp_error full = {0};
    uint64_t left = journal->count > 1 ? bytes : 0;
    enum dp_status st = make_segment(journal, old, number, bytes, left, &made, err);
    if (st == DP_FULL) {
        full = *err;
        st = make_of_spare(journal, number, &made, err);
    }
    if (st == DP_OK)
        dp_journal_go_direct(journal, &made);
    (void)pthread_mutex_lock(&journal->lock);
    bool enough = st == DP_OK && made.bytes >= journal->want_bytes;
    journal->making = enough ? (struct dp_error){0} : full;
    if (st == DP_OK) {
        journal->next = made;
        journal->number_last = number;
    }
    (void)pthread_mutex_unlock(&journal->lock);
    if (full.status != DP_OK && (st == DP_OK || st == DP_FULL)) {
        *err = full;
        return DP_FULL;
    }
    return st;
}

void dp_journal_prepare(struct dp_journal *journal)
{
    struct dp_error err = {0};
    enum dp_status st = DP_OK;
    bool make = false, ready = false;
    while (atomic_load(&journal->poison) == DP_OK) {
        struct dp_journal_segment old = {0}, surplus = {0};
        uint64_t bytes = 0;
        (void)pthread_mutex_lock(&journal->lock);
        retire(journal);
        make = choose(journal, &old, &surplus, &bytes);
        uint64_t number = journal->number_last + 1;
        (void)pthread_mutex_unlock(&journal->lock);
        if (!make && !surplus.file)
            break;
        st = surplus.file ? drop(journal, &surplus, &err) : make_next(journal, &old, number, bytes, &err);
        if (st != DP_OK)
            break;
    }
    /* A full disk takes nothing away from what is there; any other failure leaves the directory unknown. */
    if (st != DP_OK && st != DP_FULL)
        dp_journal_poison(journal, &err);
    (void)pthread_mutex_lock(&journal->lock);
    bool poisoned = st != DP_OK && st != DP_FULL;
    ready = poisoned ||
            (journal->starved && journal->next.file && journal->next.bytes >= journal->want_bytes) ||
            (journal->over && dp_journal_kept_bytes(journal) <= journal->budget_bytes);
    if (ready)
        journal->starved = journal->over = false;
    (void)pthread_mutex_unlock(&journal->lock);
    if (ready)
        dp_journal_wake(journal);
}

/* Until a segment that could not be made is tried again: around TICK_MS, each time another. Shards of one disk that looked at
 * once, made theirs at once and then each gave theirs back because of the other's, would do so for ever in step. */
static uint32_t try_again_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return TICK_MS / 2 + (uint32_t)(now.tv_nsec / 1000 % TICK_MS);
}

static uint64_t now_ms(void)
{
    struct timespec now = dp_deadline_in_ms(0);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Until there is something to do: also a segment to try again (then it is no more than over), or, *idle, a claim to write,
 * as long after the last append as told. Lock held. */
static void wait_for_work(struct dp_journal *journal, uint64_t *since_ms, bool *idle)
{
    const uint32_t idle_ms = journal->options.idle_ms ? journal->options.idle_ms : IDLE_MS;
    bool tick = false;
    while (!journal->want_round && !journal->want_segment && !journal->stop && !tick && !*idle) {
        uint64_t now = now_ms();
        if (journal->watched != journal->last)
            *since_ms = now;
        journal->watched = journal->last;
        bool claims = dp_journal_can_claim(journal) && atomic_load(&journal->poison) == DP_OK;
        uint64_t passed = now - *since_ms;
        *idle = claims && passed >= idle_ms;
        if (*idle)
            return;
        uint32_t again_ms = try_again_ms();
        uint32_t left_ms = claims && idle_ms - passed < again_ms ? idle_ms - (uint32_t)passed : again_ms;
        struct timespec until = dp_deadline_in_ms(left_ms);
        tick = pthread_cond_timedwait(&journal->wanted, &journal->lock, &until) == ETIMEDOUT &&
               journal->making.status != DP_OK;
    }
}

static void *run(void *context)
{
    struct dp_journal *journal = context;
    uint64_t since_ms = now_ms(); /* the last append was seen */
    (void)prctl(PR_SET_NAME, "journal");
    for (;;) {
        bool idle = false;
        (void)pthread_mutex_lock(&journal->lock);
        wait_for_work(journal, &since_ms, &idle);
        bool commit = journal->want_round, stop = journal->stop;
        journal->want_round = journal->want_segment = false;
        (void)pthread_mutex_unlock(&journal->lock);
        if (commit || stop)
            dp_journal_round(journal);
        if (stop)
            return NULL;
        if (idle) {
            dp_journal_claim(journal);
            since_ms = now_ms(); /* where it could not be written, a record was on its way */
        }
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
