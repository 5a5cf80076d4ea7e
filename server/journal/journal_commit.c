/* A round:  write what is staged -> sync what was written, oldest segment first -> durable -> wake,
 * then make the next segment ahead of need, from a released one if possible.
 * Why   Syncing the oldest segment first makes lsns durable in order. The next segment is made after the
 *       round is published, so that replies do not wait for it.
 * Holds durable never passes an unwritten record, because a record is in the stage until it is written. */
#include "server/journal/journal_inner.h"

#include "common/base/deadline.h"

#include <string.h>

/* How long one wait for the shard's write lasts. */
#define TICK_MS 200u

/* Writes all that was staged at its start. Returns the lsn that is reached once that is synced. */
static enum dp_status write_staged(struct dp_journal *journal, uint64_t *target, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    (void)pthread_mutex_lock(&journal->lock);
    dp_journal_stage_close(journal);
    uint64_t upto = journal->stage.closed;
    while (st == DP_OK && journal->stage.written < upto) {
        if (!journal->stage.writing) {
            st = dp_journal_stage_write(journal);
            continue;
        }
        struct timespec until = dp_deadline_in_ms(TICK_MS); /* the shard is writing */
        (void)pthread_cond_timedwait(&journal->written, &journal->lock, &until);
        if (atomic_load(&journal->poison) != DP_OK)
            st = dp_fail(err, (enum dp_status)atomic_load(&journal->poison), "%s", journal->why.text);
    }
    *target = dp_journal_stage_written(journal);
    /* Mode process: the shard left the write to this thread, so it must be woken. */
    bool further = st == DP_OK && journal->options.durability == DP_DURABILITY_PROCESS &&
                   *target > atomic_load(&journal->durable);
    if (further)
        atomic_store(&journal->durable, *target);
    (void)pthread_mutex_unlock(&journal->lock);
    if (further)
        dp_journal_wake(journal);
    return st;
}

/* The oldest segment with a number above `after` that was written to since its last sync. */
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
        (void)dp_wrap(&err, st, "journal: cannot commit up to lsn %llu", (unsigned long long)target);
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

/* Moves released segments to the spares; lock held. The page of the next segment must be durable: it has the
 * incarnation and the first lsn from which an opening goes on. */
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

static struct dp_journal_segment take_spare(struct dp_journal *journal, size_t i)
{
    struct dp_journal_segment spare = journal->spares[i];
    journal->spares[i] = journal->spares[--journal->spare_count];
    return spare;
}

/* Takes the largest spare; a segment without a file: there is none. */
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

/* Takes a spare to be removed: larger than allowed, beyond the budget with `more` bytes, or too small to be
 * reused. */
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

/* The size of the next segment: twice that of the last one, within the budget. 0: none may be made now. */
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

/* Finds a segment to remove, or the size of the next segment and the spare to make it from (`old`; without a
 * file: make a new one). Returns false if none may be made now. Lock held. */
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
    if (old->file) /* keep it until there is a larger one */
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

/* Makes a segment from `old`, or a new one if the disk has space. The journal must leave the space for the
 * rows that write-back makes of it, or nothing of it could ever be released. So a third segment leaves as
 * much free space again. The check is repeated afterwards: other shards' journals may have grown
 * meanwhile. */
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

/* Without space for a larger segment a released one is used as it is: it takes no space. */
static enum dp_status make_of_spare(struct dp_journal *journal, uint64_t number,
                                    struct dp_journal_segment *made, struct dp_error *err)
{
    (void)pthread_mutex_lock(&journal->lock);
    struct dp_journal_segment old = take_largest(journal);
    (void)pthread_mutex_unlock(&journal->lock);
    if (!old.file)
        return DP_FULL; /* err has the reason */
    return dp_journal_segment_make(journal->disk, &old, number, old.bytes, made, err);
}

/* Makes the next segment with so many bytes or, if the disk lacks space, from a spare; DP_FULL: neither is
 * possible. */
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
    /* A full disk changes nothing; after any other failure the state of the directory is unknown. */
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
