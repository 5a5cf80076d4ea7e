/* Two passes over the source: the first decides about each record and adds up their bytes, so that a tail that fits into one
 * segment gets exactly one; the second appends. Then what is in the directory is read as a restore will read it. */
#include "server/checkpoint/tail.h"

#include "server/journal/journal_record.h"
#include "server/journal/journal_replay.h"
#include "server/journal/record.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define COMMIT_BYTES ((uint64_t)8 << 20)
#define SEGMENT_MIN  ((uint64_t)64 << 10)
#define CHUNK_BYTES  ((uint64_t)1 << 20) /* of the journal's stage */

enum tail_choice { TAIL_TAKE, TAIL_VOID, TAIL_SKIP };

struct tail {
    const struct dp_tail_journal *o;
    const struct dp_copy_job *job;
    struct dp_request *push; /* scratch: a decoded record */
    bool *found;             /* [missing_count] */
    struct dp_journal *journal;
    bool more_segments;              /* the next segment may be made */
    uint64_t uncommitted;            /* bytes */
    uint64_t records, bytes, framed; /* of the tail; framed: as a segment has them */
    uint64_t incarnation;            /* greatest of the source */
};

/* ---- which records */

static int by_push(const void *a, const void *b)
{
    const struct dp_copy_push *x = a, *y = b;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Whether the push is one that the checkpoint lacks; it is found now. */
static bool is_missing(struct tail *t)
{
    const struct dp_copy_push push = {t->push->stream, t->push->number};
    const struct dp_copy_push *at =
        t->job->missing_count == 0
            ? NULL
            : bsearch(&push, t->job->missing, t->job->missing_count, sizeof push, by_push);
    if (at)
        t->found[at - t->job->missing] = true;
    return at != NULL;
}

/* A step that the checkpoint must not know. Kept pushes of earlier runs change nothing any more. */
static bool is_open(const struct tail *t, const struct dp_record *record)
{
    return t->job->has_sync &&
           (record->run > t->job->run || (record->run == t->job->run && record->step >= t->job->step));
}

static bool is_closed(const struct tail *t, const struct dp_record *record)
{
    return t->job->has_sync && record->run == t->job->run && record->step < t->job->step;
}

static enum tail_choice choose(struct tail *t, const struct dp_record *record, uint64_t lsn)
{
    bool behind = lsn > t->job->lsn, missing = false;
    switch (record->kind) {
    case DP_RECORD_PUSH:
        missing = behind && is_missing(t);
        return !behind || missing ? TAIL_TAKE : TAIL_SKIP;
    case DP_RECORD_KEPT_PUSH:
        /* One that the shard kept at its cut, of a step that it closed after it, is among those that it lacked. */
        if (is_closed(t, record))
            (void)is_missing(t);
        if (behind)
            return is_closed(t, record) ? TAIL_TAKE : TAIL_SKIP;
        return is_open(t, record) ? TAIL_VOID : TAIL_TAKE;
    case DP_RECORD_CLOSE:
        return !behind || is_closed(t, record) ? TAIL_TAKE : TAIL_SKIP;
    case DP_RECORD_VIEW:
    case DP_RECORD_VOID:
        return behind ? TAIL_SKIP : TAIL_TAKE;
    }
    return TAIL_SKIP;
}

static enum dp_status decide(struct tail *t, uint64_t lsn, const void *bytes, size_t size,
                             enum tail_choice *out, struct dp_error *err)
{
    struct dp_record record;
    enum dp_status st = dp_record_decode(bytes, size, &record, t->push, err);
    if (st != DP_OK)
        return dp_wrap(err, st, "record %" PRIu64, lsn);
    if (lsn <= t->job->lsn && record.kind == DP_RECORD_CLOSE && record.members > 0 && is_open(t, &record))
        return dp_fail(err, DP_CORRUPT,
                       "record %" PRIu64 " closes step %" PRIu64 " of run %" PRIu32
                       ", but the cut at record %" PRIu64 " is before step %" PRIu64 " of run %" PRIu32,
                       lsn, record.step, record.run, t->job->lsn, t->job->step, t->job->run);
    *out = choose(t, &record, lsn);
    return DP_OK;
}

/* ---- first pass: how much */

static size_t encode_void(char head[DP_RECORD_HEAD_MAX])
{
    const struct dp_record record = {.kind = DP_RECORD_VOID};
    struct dp_journal_piece pieces[DP_RECORD_PIECES_MAX];
    (void)dp_record_encode(&record, NULL, head, pieces);
    return pieces[0].bytes;
}

static enum dp_status count(void *context, uint64_t lsn, const void *bytes, size_t size, struct dp_error *err)
{
    struct tail *t = context;
    char head[DP_RECORD_HEAD_MAX];
    enum tail_choice choice = TAIL_SKIP;
    enum dp_status st = decide(t, lsn, bytes, size, &choice, err);
    if (st == DP_OK && choice != TAIL_SKIP) {
        size_t taken = choice == TAIL_VOID ? encode_void(head) : size;
        t->records++;
        t->bytes += taken;
        t->framed += dp_journal_record_bytes(taken);
    }
    return st == DP_OK ? dp_pace_step(t->o->pace, 0, err) : st;
}

static enum dp_status read_source(struct tail *t,
                                  enum dp_status (*record)(void *context, uint64_t lsn, const void *bytes,
                                                           size_t size, struct dp_error *err),
                                  struct dp_error *err)
{
    struct dp_journal_figures found;
    const struct dp_journal_options options = {.disk = t->o->from,
                                               .replay_after = t->job->after,
                                               .beside_writer = true,
                                               .read_until = t->job->until,
                                               .replay = record,
                                               .replay_context = t};
    enum dp_status st = dp_journal_read(&options, &found, err);
    t->incarnation = found.incarnation;
    return st == DP_OK || st == DP_STOPPING ? st : dp_wrap(err, st, "the shard's journal");
}

static enum dp_status all_found(const struct tail *t, struct dp_error *err)
{
    for (uint32_t i = 0; i < t->job->missing_count; i++)
        if (!t->found[i])
            return dp_fail(err, DP_CORRUPT,
                           "push %" PRIu64 " of stream %016" PRIx64
                           " is not in the journal between records %" PRIu64 " and %" PRIu64
                           ", though the shard waited for it",
                           t->job->missing[i].number, t->job->missing[i].stream, t->job->lsn, t->job->until);
    return DP_OK;
}

/* ---- second pass: append */

/* One segment, unless the tail is larger: then the next one is made when it is needed. */
static enum dp_status room(void *context, uint64_t bytes, struct dp_error *err)
{
    const struct tail *t = context;
    return t->more_segments
               ? DP_OK
               : dp_fail(err, DP_FULL, "a further segment of %" PRIu64 " bytes is not needed", bytes);
}

static enum dp_status open_journal(struct tail *t, struct dp_error *err)
{
    /* page, records, what fills up a page at each commit and chunk, the end */
    uint64_t rounds = t->bytes / COMMIT_BYTES + t->framed / CHUNK_BYTES + 4;
    uint64_t whole = dp_journal_page_up(t->framed + (2 * rounds + 4) * DP_JOURNAL_PAGE);
    uint64_t segment = whole < SEGMENT_MIN ? SEGMENT_MIN : whole;
    uint64_t most = t->o->segment_bytes ? t->o->segment_bytes : DP_JOURNAL_RECORD_MAX;
    segment = segment < most ? segment : most;
    const struct dp_journal_options options = {.disk = t->o->to,
                                               .segment_bytes = segment,
                                               .first_bytes = segment,
                                               .budget_bytes = (2 * (whole / segment) + 8) * segment,
                                               .replay_after = t->job->after,
                                               .incarnation = t->incarnation,
                                               .secret = t->o->secret,
                                               .room = room,
                                               .room_context = t};
    return dp_journal_open(&options, &t->journal, err);
}

static enum dp_status commit(struct tail *t, struct dp_error *err)
{
    enum dp_status st;
    dp_journal_commit(t->journal);
    t->uncommitted = 0;
    (void)dp_journal_durable(t->journal, &st, err);
    return st;
}

static enum dp_status append_piece(struct tail *t, const void *bytes, size_t size, struct dp_error *err)
{
    const struct dp_journal_piece piece = {bytes, size};
    uint64_t lsn;
    enum dp_status st = dp_journal_append(t->journal, &piece, 1, &lsn, err);
    for (uint32_t again = 0; again < 3 && (st == DP_AGAIN || st == DP_BEHIND || st == DP_FULL); again++) {
        t->more_segments |= st != DP_BEHIND;
        st = commit(t, err);
        if (st == DP_OK)
            st = dp_journal_append(t->journal, &piece, 1, &lsn, err);
    }
    t->uncommitted += size;
    return st == DP_OK && t->uncommitted >= COMMIT_BYTES ? commit(t, err) : st;
}

static enum dp_status append(void *context, uint64_t lsn, const void *bytes, size_t size,
                             struct dp_error *err)
{
    struct tail *t = context;
    char head[DP_RECORD_HEAD_MAX];
    enum tail_choice choice = TAIL_SKIP;
    enum dp_status st = decide(t, lsn, bytes, size, &choice, err);
    if (st == DP_OK && choice == TAIL_VOID)
        st = append_piece(t, head, encode_void(head), err);
    else if (st == DP_OK && choice == TAIL_TAKE)
        st = append_piece(t, bytes, size, err);
    if (st == DP_OK)
        DP_ASSERT(lsn > t->job->lsn || dp_journal_last(t->journal) == lsn);
    return st == DP_OK ? dp_pace_step(t->o->pace, size, err) : st;
}

static enum dp_status write_all(struct tail *t, struct dp_error *err)
{
    enum dp_status st = open_journal(t, err);
    if (st == DP_OK)
        st = read_source(t, append, err);
    if (st == DP_OK)
        st = commit(t, err);
    if (st == DP_OK) {
        dp_journal_claim(t->journal);
        (void)dp_journal_durable(t->journal, &st, err);
    }
    if (st == DP_OK && dp_journal_last(t->journal) != t->job->after + t->records)
        st = dp_fail(err, DP_CORRUPT, "the shard's journal reads differently the second time");
    dp_journal_close(&t->journal);
    return st;
}

/* ---- what is there */

/* A segment that was made ahead, and in which nothing is, goes. */
static enum dp_status take_files(struct tail *t, const struct dp_journal_found *found, struct dp_error *err)
{
    const struct dp_disk *to = t->o->to;
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < found->count; i++) {
        char name[DP_JOURNAL_NAME_BYTES];
        dp_journal_segment_name(name, found->files[i].segment.number);
        if (!found->files[i].valid)
            st = to->remove(to->self, name, err);
        else if (t->o->file)
            st = t->o->file(t->o->context, name, err);
    }
    return st == DP_OK ? to->sync_directory(to->self, err) : st;
}

static enum dp_status read_back(struct tail *t, struct dp_manifest_tail *out, struct dp_error *err)
{
    struct dp_journal_found found = {0};
    const struct dp_journal_options options = {.disk = t->o->to, .replay_after = t->job->after};
    enum dp_status st = dp_journal_look(&options, &found, err);
    if (st != DP_OK)
        (void)dp_wrap(err, st, "the tail's journal reads back differently");
    if (st == DP_OK)
        st = take_files(t, &found, err);
    if (st == DP_OK && (found.last_lsn != t->job->after + t->records || found.claimed != found.last_lsn ||
                        found.incarnation <= t->incarnation))
        st = dp_fail(err, DP_CORRUPT,
                     "the tail's journal reads back up to record %" PRIu64 " instead of %" PRIu64
                     "; check the health of its disk",
                     found.last_lsn, t->job->after + t->records);
    out->last_lsn = found.last_lsn;
    out->incarnation = found.incarnation;
    out->records = t->records;
    out->bytes = t->bytes;
    dp_journal_found_clear(&options, &found);
    return st;
}

enum dp_status dp_tail_write(const struct dp_tail_journal *options, struct dp_manifest_tail *out,
                             struct dp_error *err)
{
    struct tail t = {.o = options, .job = options->job};
    DP_ASSERT(t.job->after <= t.job->lsn && t.job->lsn <= t.job->until);
    t.push = calloc(1, sizeof *t.push);
    t.found = calloc((size_t)t.job->missing_count + 1, sizeof t.found[0]);
    enum dp_status st =
        t.push && t.found ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for the journal's records");
    if (st == DP_OK)
        st = read_source(&t, count, err);
    if (st == DP_OK)
        st = all_found(&t, err);
    if (st == DP_OK)
        st = write_all(&t, err);
    if (st == DP_OK)
        st = read_back(&t, out, err);
    free(t.push);
    free(t.found);
    return st;
}
