/* The shard's side:  append -> (stage | write at once) -> commit asks for a round -> durable.
 *     open: look at the files -> make the tail durable -> replay -> new segment -> commit thread
 * Why   The tail is made durable before replay, because rows may be written back during replay (rule 2).
 *       Each opening has a new segment and incarnation, durable before the first append: bytes after a cut
 *       tail can never continue this opening's records (rule 5). */
#include "server/journal/journal_inner.h"

#include "common/base/memory.h"
#include "server/journal/crc32c.h"
#include "server/journal/journal_replay.h"

#include <inttypes.h>
#include <string.h>

#define SEGMENT_BYTES (256u << 20)
#define SEGMENT_MIN   (64u << 10)
#define FIRST_BYTES   (1u << 20)
#define BUDGET_BYTES  (UINT64_C(4) << 30)
/* If all segments were removed, the last number is unknown: the next one is above all that earlier openings
 * used. */
#define NUMBER_SHIFT 32

static enum dp_status poisoned(struct dp_journal *journal, struct dp_error *err)
{
    enum dp_status st = (enum dp_status)atomic_load(&journal->poison);
    if (st == DP_OK)
        return st;
    (void)pthread_mutex_lock(&journal->lock);
    st = dp_fail(err, st, "%s; the journal must be reopened", journal->why.text);
    (void)pthread_mutex_unlock(&journal->lock);
    return st;
}

/* Mode process: writes what is staged. Lock held. Nothing after a page that the commit thread could not write
 * may count as durable: no opening would find it. */
static void write_now(struct dp_journal *journal)
{
    enum dp_status st = (enum dp_status)atomic_load(&journal->poison);
    dp_journal_stage_close(journal);
    while (st == DP_OK && journal->stage.count > 0 && !journal->stage.writing)
        st = dp_journal_stage_write(journal);
    if (st == DP_OK)
        atomic_store(&journal->durable, dp_journal_stage_written(journal));
}

static enum dp_status over_budget(const struct dp_journal *journal, struct dp_error *err)
{
    return dp_fail(
        err, DP_AGAIN,
        "journal: its budget of %" PRIu64
        " MiB is used up; rows must be written back first (where that lasts: raise journal_bytes in "
        "the cluster file, and start the server again)",
        journal->budget_bytes >> 20);
}

/* Fails an append for which there is no segment, and asks for one that fits `bytes` (the record with its
 * segment's page). */
static enum dp_status no_segment(struct dp_journal *journal, uint64_t bytes, struct dp_error *err)
{
    uint64_t kept = dp_journal_kept_bytes(journal);
    bytes = dp_journal_page_up(bytes);
    journal->starved = true;
    if (bytes > journal->want_bytes)
        journal->want_bytes = bytes;
    if (journal->making.status != DP_OK)
        return dp_fail(
            err, DP_FULL,
            "%s; pushes wait until there is room; to leave more, allow the journal less than %" PRIu64
            " MiB (--journal-bytes, journal_bytes in the cluster file)",
            journal->making.text, journal->budget_bytes >> 20);
    journal->want_segment = true;
    (void)pthread_cond_signal(&journal->wanted);
    if (kept + bytes > journal->budget_bytes || kept + journal->first_bytes > journal->budget_bytes)
        return over_budget(journal, err);
    return dp_fail(err, DP_AGAIN, "journal: the next segment is not ready yet");
}

static void header_of(const struct dp_journal *journal, const struct dp_journal_piece *pieces, uint32_t count,
                      uint64_t payload, uint8_t to[DP_JOURNAL_HEADER])
{
    struct dp_journal_header header = {
        .payload_crc = dp_journal_payload_seed(journal->incarnation, journal->last + 1),
        .kind = DP_JOURNAL_RECORD,
        .bytes = payload,
        .lsn = journal->last + 1,
        .incarnation = journal->incarnation,
        .synced_lsn = atomic_load(&journal->synced),
        .secret = journal->secret,
    };
    for (uint32_t i = 0; i < count; i++)
        header.payload_crc = dp_crc32c(header.payload_crc, pieces[i].data, pieces[i].bytes);
    dp_journal_header_put(to, &header);
}

enum dp_status dp_journal_append(struct dp_journal *journal, const struct dp_journal_piece *pieces,
                                 uint32_t count, uint64_t *lsn, struct dp_error *err)
{
    uint8_t bytes[DP_JOURNAL_PAGE + DP_JOURNAL_HEADER]; /* the header, after the page of a new segment */
    uint64_t payload = 0, room = journal->segment_bytes - DP_JOURNAL_PAGE - DP_JOURNAL_HEADER;
    enum dp_status st = poisoned(journal, err);
    if (st != DP_OK)
        return st;
    for (uint32_t i = 0; i < count; i++) {
        if (pieces[i].bytes > room - payload)
            return dp_fail(err, DP_ARGUMENT,
                           "journal: a push must fit into a segment of %" PRIu64
                           " bytes, an eighth of journal_bytes and at most 256 MiB; send smaller pushes, or "
                           "raise journal_bytes in the cluster file",
                           journal->segment_bytes);
        payload += pieces[i].bytes;
    }
    uint64_t whole = dp_journal_record_bytes(payload);
    (void)pthread_mutex_lock(&journal->lock);
    if (dp_journal_kept_bytes(journal) > journal->budget_bytes) { /* since the opening */
        journal->over = true;
        st = over_budget(journal, err);
        goto done;
    }
    st = dp_journal_stage_room(journal, whole, err);
    if (st != DP_OK) {
        (void)pthread_mutex_unlock(&journal->lock);
        enum dp_status poison = poisoned(journal, err);
        return poison != DP_OK ? poison : st;
    }
    /* Only this thread uses the reserved space. The checksum is computed only now, because refused records
     * come again. */
    (void)pthread_mutex_unlock(&journal->lock);
    header_of(journal, pieces, count, payload, bytes + DP_JOURNAL_PAGE);
    (void)pthread_mutex_lock(&journal->lock);
    size_t front = DP_JOURNAL_HEADER;
    const uint8_t *begin = bytes + DP_JOURNAL_PAGE;
    if (journal->stage.end + whole > journal->segments[journal->count - 1].bytes) {
        if (DP_JOURNAL_PAGE + whole > journal->next.bytes) { /* 0: no next segment */
            st = no_segment(journal, DP_JOURNAL_PAGE + whole, err);
            dp_journal_stage_trim(&journal->stage);
            goto done;
        }
        dp_journal_roll(journal, bytes);
        front += DP_JOURNAL_PAGE;
        begin = bytes;
        whole += DP_JOURNAL_PAGE;
    }
    dp_journal_stage_put(journal, begin, front, pieces, count, whole);
    *lsn = ++journal->last;
done:
    (void)pthread_mutex_unlock(&journal->lock);
    return st;
}

static void commit(struct dp_journal *journal, bool sync)
{
    bool machine = journal->options.durability == DP_DURABILITY_MACHINE;
    if (atomic_load(&journal->poison) != DP_OK)
        return;
    (void)pthread_mutex_lock(&journal->lock);
    if (!machine)
        write_now(journal);
    bool round = (machine || sync || journal->want_round || journal->stage.count > 0) &&
                 journal->last > atomic_load(&journal->synced);
    /* Mode process: this is the first append after an idle time; the thread must watch for the next idle
     * time. */
    bool watch = journal->last > journal->claimed && journal->watched <= journal->claimed;
    journal->want_round |= journal->thread_runs && round;
    if (journal->thread_runs && (round || watch))
        (void)pthread_cond_signal(&journal->wanted);
    (void)pthread_mutex_unlock(&journal->lock);
    if (journal->thread_runs)
        return;
    journal->want_round = journal->want_segment = false;
    if (round)
        dp_journal_round(journal);
    dp_journal_prepare(journal);
}

void dp_journal_commit(struct dp_journal *journal)
{
    commit(journal, false);
}

void dp_journal_sync(struct dp_journal *journal)
{
    commit(journal, true);
}

uint64_t dp_journal_durable(struct dp_journal *journal, enum dp_status *status, struct dp_error *err)
{
    *status = poisoned(journal, err);
    return atomic_load(&journal->durable);
}

uint64_t dp_journal_synced(const struct dp_journal *journal)
{
    return atomic_load(&journal->synced);
}

uint64_t dp_journal_last(const struct dp_journal *journal)
{
    return journal->last;
}

void dp_journal_release(struct dp_journal *journal, uint64_t keep_from)
{
    (void)pthread_mutex_lock(&journal->lock);
    if (keep_from > journal->keep_from) {
        journal->keep_from = keep_from;
        if (journal->count > 1 && journal->segments[0].last_lsn < keep_from) {
            journal->want_segment = true;
            (void)pthread_cond_signal(&journal->wanted);
        }
    }
    (void)pthread_mutex_unlock(&journal->lock);
}

void dp_journal_figures(struct dp_journal *journal, struct dp_journal_figures *out)
{
    (void)pthread_mutex_lock(&journal->lock);
    *out = journal->opened;
    out->segments = journal->count + journal->spare_count + (journal->next.file != NULL);
    out->bytes_budget = journal->budget_bytes;
    for (size_t i = 0; i < journal->count; i++) {
        const struct dp_journal_segment *segment = &journal->segments[i];
        out->bytes_used += segment->bytes;
        if (i + 1 == journal->count)
            out->bytes_kept += journal->stage.end;
        else if (segment->last_lsn >= journal->keep_from)
            out->bytes_kept += segment->bytes;
    }
    out->first_lsn = journal->segments[0].first_lsn;
    out->last_lsn = journal->last;
    out->synced_lsn = atomic_load(&journal->synced);
    out->claimed_lsn = journal->claimed;
    out->incarnation = journal->incarnation;
    out->syncs = journal->syncs;
    (void)pthread_mutex_unlock(&journal->lock);
}

/* ---- opening and closing ---- */

static enum dp_status check_options(const struct dp_journal_options *options, struct dp_journal *journal,
                                    struct dp_error *err)
{
    uint64_t budget = options->budget_bytes ? options->budget_bytes : BUDGET_BYTES;
    journal->options = *options;
    journal->disk = options->disk;
    journal->segment_bytes = options->segment_bytes ? options->segment_bytes : SEGMENT_BYTES;
    journal->budget_bytes = budget - budget % journal->segment_bytes;
    journal->first_bytes = options->first_bytes ? options->first_bytes : FIRST_BYTES;
    if (journal->first_bytes > journal->segment_bytes)
        journal->first_bytes = journal->segment_bytes;
    if (journal->first_bytes < SEGMENT_MIN || journal->segment_bytes > DP_JOURNAL_RECORD_MAX ||
        journal->segment_bytes % DP_JOURNAL_PAGE != 0 || journal->first_bytes % DP_JOURNAL_PAGE != 0)
        return dp_fail(err, DP_ARGUMENT,
                       "journal: segments of %" PRIu64 " to %" PRIu64
                       " bytes: they must be multiples of %u, from %u to %" PRIu64,
                       journal->first_bytes, journal->segment_bytes, DP_JOURNAL_PAGE, SEGMENT_MIN,
                       DP_JOURNAL_RECORD_MAX);
    if (journal->budget_bytes < 3 * journal->segment_bytes)
        return dp_fail(err, DP_ARGUMENT,
                       "journal: a budget of %" PRIu64 " bytes is less than 3 segments of %" PRIu64, budget,
                       journal->segment_bytes);
    return DP_OK;
}

static enum dp_status make_threads_tools(struct dp_journal *journal, struct dp_error *err)
{
    pthread_condattr_t attributes;
    journal->lock_made = pthread_mutex_init(&journal->lock, NULL) == 0;
    if (!journal->lock_made || pthread_condattr_init(&attributes) != 0)
        return dp_fail(err, DP_NOMEM, "journal: cannot create a lock");
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    journal->wanted_made = pthread_cond_init(&journal->wanted, &attributes) == 0;
    journal->written_made = pthread_cond_init(&journal->written, &attributes) == 0;
    (void)pthread_condattr_destroy(&attributes);
    return journal->wanted_made && journal->written_made
               ? DP_OK
               : dp_fail(err, DP_NOMEM, "journal: cannot create a condition variable");
}

/* Removes the segments of openings that are over (options.released) first, so that they are never read
 * again. */
static enum dp_status remove_released(const struct dp_disk *disk, struct dp_journal_found *found,
                                      struct dp_error *err)
{
    enum dp_status st = DP_OK;
    bool any = false;
    for (size_t i = 0; st == DP_OK && i < found->count; i++) {
        char name[DP_JOURNAL_NAME_BYTES];
        if (!found->files[i].released)
            continue;
        any = true;
        dp_journal_segment_name(name, found->files[i].segment.number);
        dp_journal_segment_close(disk, &found->files[i].segment);
        st = disk->remove(disk->self, name, err);
    }
    return st == DP_OK && any ? disk->sync_directory(disk->self, err) : st;
}

/* The segments that are still needed are kept; the others become spares. */
static enum dp_status adopt(struct dp_journal *journal, struct dp_journal_found *found, struct dp_error *err)
{
    journal->capacity = found->count + (size_t)(journal->budget_bytes / journal->first_bytes) + 3;
    journal->segments = calloc(journal->capacity, sizeof *journal->segments);
    journal->spares = calloc(journal->capacity, sizeof *journal->spares);
    if (!journal->segments || !journal->spares)
        return dp_fail(err, DP_NOMEM, "journal: no memory for its segments");
    enum dp_status st = dp_journal_stage_init(&journal->stage, err);
    if (st != DP_OK)
        return st;
    journal->number_last = journal->options.released << NUMBER_SHIFT;
    for (size_t i = 0; i < found->count; i++) {
        struct dp_journal_segment *segment = &found->files[i].segment;
        if (found->files[i].needed)
            journal->segments[journal->count++] = *segment;
        else if (!found->files[i].released)
            journal->spares[journal->spare_count++] = *segment;
        if (segment->number > journal->number_last)
            journal->number_last = segment->number;
        segment->file = NULL;
    }
    return DP_OK;
}

/* Makes the opening's own segment. Its page is durable before anything is appended. */
static enum dp_status begin(struct dp_journal *journal, struct dp_error *err)
{
    _Alignas(DP_JOURNAL_PAGE) uint8_t bytes[DP_JOURNAL_PAGE];
    struct dp_journal_segment old = {0}, made;
    for (size_t i = 0; i < journal->spare_count && !old.file; i++) {
        if (journal->spares[i].bytes < journal->first_bytes ||
            journal->spares[i].bytes > journal->segment_bytes)
            continue;
        old = journal->spares[i];
        journal->spares[i] = journal->spares[--journal->spare_count];
    }
    enum dp_status st = dp_journal_segment_make(journal->disk, &old, journal->number_last + 1,
                                                old.file ? old.bytes : journal->first_bytes, &made, err);
    if (st != DP_OK)
        return st;
    made.first_lsn = journal->last + 1;
    made.last_lsn = journal->last;
    made.page_synced = true;
    dp_journal_go_direct(journal, &made);
    journal->number_last = made.number;
    journal->segments[journal->count++] = made;
    dp_journal_page_of(journal, &journal->segments[journal->count - 1], journal->last, bytes);
    struct dp_disk_piece piece = {bytes, sizeof bytes};
    st = journal->disk->write(journal->disk->self, made.file, 0, &piece, 1, err);
    if (st == DP_OK)
        st = journal->disk->sync(journal->disk->self, made.file, err);
    journal->stage.end = DP_JOURNAL_PAGE;
    return st;
}

static void release_all(struct dp_journal *journal)
{
    for (size_t i = 0; i < journal->count; i++)
        dp_journal_segment_close(journal->disk, &journal->segments[i]);
    for (size_t i = 0; i < journal->spare_count; i++)
        dp_journal_segment_close(journal->disk, &journal->spares[i]);
    if (journal->next.file)
        dp_journal_segment_close(journal->disk, &journal->next);
    if (journal->wanted_made)
        (void)pthread_cond_destroy(&journal->wanted);
    if (journal->written_made)
        (void)pthread_cond_destroy(&journal->written);
    if (journal->lock_made)
        (void)pthread_mutex_destroy(&journal->lock);
    free(journal->segments);
    free(journal->spares);
    dp_journal_stage_clear(&journal->stage);
    free(journal);
}

enum dp_status dp_journal_open(const struct dp_journal_options *options, struct dp_journal **out,
                               struct dp_error *err)
{
    struct dp_journal_found found = {0};
    struct dp_journal *journal = calloc(1, sizeof *journal);
    if (!journal)
        return dp_fail(err, DP_NOMEM, "no memory for the journal");
    enum dp_status st = check_options(options, journal, err);
    if (st == DP_OK)
        st = make_threads_tools(journal, err);
    if (st == DP_OK)
        st = dp_journal_look(options, &found, err);
    if (st == DP_OK)
        st = dp_journal_harden(options, &found, err);
    if (st == DP_OK)
        st = dp_journal_replay(options, &found, err);
    if (st != DP_OK)
        goto done;
    journal->last = found.last_lsn;
    journal->incarnation =
        (found.incarnation > options->incarnation ? found.incarnation : options->incarnation) + 1;
    journal->secret = found.secret ? found.secret : options->secret;
    journal->keep_from = options->replay_after + 1;
    atomic_store(&journal->durable, journal->last);
    atomic_store(&journal->synced, journal->last);
    journal->claimed = journal->watched = journal->last; /* by the page of the segment below */
    journal->opened.replayed_records = found.replayed_records;
    journal->opened.replayed_bytes = found.replayed_bytes;
    journal->opened.cut = found.cut;
    st = remove_released(journal->disk, &found, err);
    if (st == DP_OK)
        st = adopt(journal, &found, err);
    if (st == DP_OK)
        st = begin(journal, err);
    if (st == DP_FULL)
        st = dp_wrap(err, st,
                     "its journal starts with %" PRIu64 " KiB and may grow to %" PRIu64
                     " MiB (--journal-bytes, journal_bytes in the cluster file)",
                     journal->first_bytes >> 10, journal->budget_bytes >> 20);
    if (st != DP_OK)
        goto done;
    dp_journal_prepare(journal); /* so that the first turn has a next segment */
    if (options->commit_thread)
        st = dp_journal_thread_start(journal, err);
done:
    dp_journal_found_clear(options, &found);
    if (st == DP_OK)
        *out = journal;
    else
        release_all(journal);
    return st;
}

enum dp_status dp_journal_read(const struct dp_journal_options *options, struct dp_journal_figures *out,
                               struct dp_error *err)
{
    struct dp_journal_found found = {0};
    enum dp_status st = dp_journal_look(options, &found, err);
    if (st == DP_OK)
        st = dp_journal_replay(options, &found, err);
    *out = (struct dp_journal_figures){.last_lsn = found.last_lsn,
                                       .incarnation = found.incarnation,
                                       .replayed_records = found.replayed_records,
                                       .replayed_bytes = found.replayed_bytes,
                                       .cut = found.cut};
    dp_journal_found_clear(options, &found);
    return st;
}

/* Writes and syncs everything and stops the commit thread. */
static void stop(struct dp_journal *journal)
{
    bool threaded = journal->thread_runs;
    dp_journal_thread_stop(journal); /* does a last round */
    if (!threaded)
        dp_journal_round(journal);
}

void dp_journal_close(struct dp_journal **out)
{
    struct dp_journal *journal = *out;
    if (!journal)
        return;
    stop(journal);
    if (atomic_load(&journal->poison) == DP_OK)
        dp_journal_claim_end(journal);
    release_all(journal);
    *out = NULL;
}

static enum dp_status remove_segment(const struct dp_journal *journal, struct dp_journal_segment *segment,
                                     struct dp_error *err)
{
    char name[DP_JOURNAL_NAME_BYTES];
    dp_journal_segment_name(name, segment->number);
    dp_journal_segment_close(journal->disk, segment);
    return journal->disk->remove(journal->disk->self, name, err);
}

enum dp_status dp_journal_end(struct dp_journal **out, struct dp_error *err)
{
    struct dp_journal *journal = *out;
    enum dp_status st = DP_OK;
    if (!journal)
        return st;
    stop(journal);
    for (size_t i = 0; st == DP_OK && i < journal->spare_count; i++)
        st = remove_segment(journal, &journal->spares[i], err);
    for (size_t i = 0; st == DP_OK && i < journal->count; i++)
        st = remove_segment(journal, &journal->segments[i], err);
    if (st == DP_OK && journal->next.file)
        st = remove_segment(journal, &journal->next, err);
    if (st == DP_OK)
        st = journal->disk->sync_directory(journal->disk->self, err);
    release_all(journal);
    *out = NULL;
    return st == DP_OK ? st : dp_wrap(err, st, "journal: cannot remove its segments");
}
