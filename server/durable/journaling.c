/* Why       Replay reads no configuration and no clock: the record and the table's mark have all that
 *           applying needs. */
#include "server/durable/journaling.h"

#include "common/base/log.h"

#include <inttypes.h>
#include <stdlib.h>

#define PUT_AGAIN_NS UINT64_C(1000000000)  /* between attempts to put a mark on a full disk */
#define TELL_NS      UINT64_C(10000000000) /* between two warnings of a journal without space */
/* How long a push waits for a disk that is behind before it is refused. */
#define BEHIND_NS UINT64_C(1000000000)
#define FILLS_SHARE                                                                                          \
    2u /* of the journal's budget: the later a cycle, the more pushes a row written stands for */

/* The part of the journal's budget at which a hold is to end. */
#define HOLD_PARTS 4u
#define HOLD_MOST  3u

static void check(const struct dp_journaling *j)
{
    DP_ASSERT(!j->holds || j->held <= j->lsn);
    DP_ASSERT(j->put_off == 0 || (j->holds && j->put_off > j->held));
    DP_ASSERT(j->durable <= j->lsn && j->synced <= j->lsn && j->on_disk <= j->lsn);
    DP_ASSERT(!j->mark_again || j->mark_full.status != DP_OK);
}

void dp_journaling_start(struct dp_journaling *j, uint64_t lsn)
{
    DP_ASSERT(!j->journal && j->lsn == 0);
    j->lsn = j->durable = j->synced = lsn;
    j->since_ns = dp_shard_now(j->base);
    check(j);
}

void dp_journaling_replayed(struct dp_journaling *j, uint64_t lsn)
{
    DP_ASSERT(j->replays && lsn > j->lsn);
    j->lsn = j->durable = j->synced = lsn;
}

/* ---- pushes */

static enum dp_status append(struct dp_journaling *j, const struct dp_record *record,
                             const struct dp_request *push, struct dp_error *err)
{
    struct dp_journal_piece pieces[DP_RECORD_PIECES_MAX];
    char head[DP_RECORD_HEAD_MAX];
    uint64_t before = j->lsn;
    size_t bytes = 0;
    uint32_t n = dp_record_encode(record, push, head, pieces);
    for (uint32_t i = 0; i < n; i++)
        bytes += pieces[i].bytes;
    enum dp_status st = dp_journal_append(j->journal, pieces, n, &j->lsn, err);
    DP_ASSERT(j->lsn == before + (st == DP_OK));
    if (st == DP_OK) {
        if (!j->pushed)
            j->since_ns = dp_shard_now(j->base);
        j->pushed = true;
        DP_COUNT(&j->base->counters, journal_bytes, bytes);
    }
    return st;
}

/* Logs that the disk has no space for a segment: the server's operator must make room and may not see the
 * clients' errors. */
static void tell_room(struct dp_journaling *j, enum dp_status appended, const struct dp_error *err)
{
    if (appended == DP_OK && j->no_segment) {
        dp_log(DP_LOG_INFO, "shard %" PRIu32 " takes pushes again", j->base->index);
        j->no_segment = false;
    }
    if (appended != DP_FULL)
        return;
    uint64_t now = dp_shard_now(j->base);
    DP_COUNT(&j->base->counters, pushes_no_segment, 1);
    if (j->no_segment_ns == 0 || now - j->no_segment_ns >= TELL_NS) {
        dp_log(DP_LOG_WARN, "shard %" PRIu32 " takes no pushes: %s", j->base->index, err->text);
        j->no_segment_ns = now;
        j->no_segment = true;
    }
}

bool dp_journaling_lacks_segment(const struct dp_journaling *j)
{
    return j->no_segment && dp_shard_now(j->base) - j->no_segment_ns < 2 * TELL_NS;
}

static enum dp_appended append_record(struct dp_journaling *j, const struct dp_record *record,
                                      const struct dp_request *push, struct dp_error *err)
{
    DP_ASSERT(!j->replays);
    if (!j->journal) {
        DP_ASSERT(j->durable == j->lsn && j->synced == j->lsn);
        j->durable = j->synced = ++j->lsn;
        return DP_APPENDED;
    }
    if (j->failed.status != DP_OK || j->mark_full.status != DP_OK) {
        bool failed = j->failed.status != DP_OK;
        *err = failed ? j->failed : j->mark_full;
        err->wait.reason = failed ? DP_WAIT_FAULT : DP_WAIT_MARK;
        (void)dp_wrap(err, err->status, "shard %" PRIu32 " takes no pushes%s", j->base->index,
                      failed ? ", restart its server" : " until its store has the journal's mark");
        return DP_APPEND_REFUSED;
    }
    enum dp_status st = append(j, record, push, err);
    tell_room(j, st, err);
    check(j);
    if ((st == DP_AGAIN || st == DP_FULL) && j->put_off > 0)
        DP_COUNT(&j->base->counters, checkpoint_delays, 1);
    if (st == DP_AGAIN || st == DP_FULL || st == DP_BEHIND)
        err->wait.reason = DP_WAIT_DISK;
    if (st == DP_ARGUMENT) {
        struct dp_error why = *err;
        (void)dp_fail(err, st,
                      "shard %" PRIu32
                      ": %s, an eighth of journal_bytes and at most 256 MiB; send smaller pushes, or raise "
                      "journal_bytes in the cluster file",
                      j->base->index, why.text);
    }
    return st == DP_OK                       ? DP_APPENDED
           : st == DP_AGAIN || st == DP_FULL ? DP_APPEND_NO_ROOM
           : st == DP_BEHIND                 ? DP_APPEND_BEHIND
                                             : DP_APPEND_REFUSED;
}

/* All but `refused` and `dropped`. tables: NULL: a push without sections. (Dims of other sections are not cleared: each
 * push would take longer.) */
static void describe(struct dp_record *record, enum dp_record_kind kind, const struct dp_request *push,
                     struct dp_cached_table *const *tables)
{
    const struct dp_membership *member = &push->member;
    record->kind = kind;
    record->members = member->given;
    record->run = member->run;
    record->rank = member->rank;
    record->step = member->step;
    record->examples = member->examples;
    record->view = member->view;
    record->rate = push->rate;
    for (uint32_t s = 0; tables && s < push->sections; s++)
        record->dims[s] = tables[s]->spec.dim;
}

enum dp_appended dp_journaling_append(struct dp_journaling *j, const struct dp_request *push,
                                      struct dp_cached_table *const *tables, float rate,
                                      enum dp_status refused, struct dp_error *err)
{
    struct dp_record record;
    DP_ASSERT(tables || refused != DP_OK);
    describe(&record, DP_RECORD_PUSH, push, refused == DP_OK ? tables : NULL);
    record.refused = refused;
    record.dropped = false;
    record.rate = rate;
    return append_record(j, &record, push, err);
}

enum dp_appended dp_journaling_append_kept(struct dp_journaling *j, const struct dp_request *push,
                                           struct dp_cached_table *const *tables, struct dp_error *err)
{
    struct dp_record record;
    DP_ASSERT(push->member.given && tables);
    describe(&record, DP_RECORD_KEPT_PUSH, push, tables);
    record.refused = DP_OK;
    record.dropped = false;
    return append_record(j, &record, push, err);
}

enum dp_appended dp_journaling_append_dropped(struct dp_journaling *j, const struct dp_request *push,
                                              struct dp_error *err)
{
    struct dp_record record;
    DP_ASSERT(push->member.given);
    describe(&record, DP_RECORD_PUSH, push, NULL);
    record.refused = DP_OK;
    record.dropped = true;
    return append_record(j, &record, push, err);
}

enum dp_appended dp_journaling_append_close(struct dp_journaling *j, const struct dp_record *step,
                                            const struct dp_request *rows, struct dp_error *err)
{
    DP_ASSERT(step->kind == DP_RECORD_CLOSE && step->refused == DP_OK && step->members > 0);
    return append_record(j, step, rows, err);
}

enum dp_appended dp_journaling_append_step(struct dp_journaling *j, const struct dp_record *record,
                                           const struct dp_request *rows, struct dp_error *err)
{
    DP_ASSERT(record->kind == DP_RECORD_KEPT_PUSH ||
              (record->kind == DP_RECORD_CLOSE && record->members == 0));
    return append_record(j, record, rows, err);
}

enum dp_appended dp_journaling_append_view(struct dp_journaling *j, const void *bytes, size_t size,
                                           struct dp_error *err)
{
    const struct dp_record record = {.kind = DP_RECORD_VIEW, .bytes = bytes, .size = size};
    enum dp_appended appended = append_record(j, &record, NULL, err);
    if (appended == DP_APPENDED)
        j->view_lsn = j->lsn;
    return appended;
}

/* Usually the disk catches up within milliseconds; if not, the clients are told. */
bool dp_journaling_may_wait(struct dp_journaling *j)
{
    uint64_t now = dp_shard_now(j->base);
    if (j->behind_ns == 0)
        j->behind_ns = now;
    return now - j->behind_ns < BEHIND_NS;
}

bool dp_journaling_lost(const struct dp_journaling *j, struct dp_error *err)
{
    bool failed = j->failed.status != DP_OK;
    if ((!failed && j->mark_full.status == DP_OK) || j->durable >= j->lsn)
        return false;
    *err = failed ? j->failed : j->mark_full;
    (void)dp_wrap(err, DP_AGAIN, "shard %" PRIu32 " takes no pushes%s", j->base->index,
                  failed ? ", restart its server" : " until its store has the journal's mark");
    err->wait.reason = failed ? DP_WAIT_FAULT : DP_WAIT_MARK;
    return true;
}

/* ---- turns */

static void fail(struct dp_journaling *j, const struct dp_error *err)
{
    DP_ASSERT(j->failed.status == DP_OK && err->status != DP_OK);
    j->failed = *err;
    dp_log(DP_LOG_ERROR, "shard %" PRIu32 ": %s; it takes no more pushes, restart the server", j->base->index,
           err->text);
    j->lost(j->context);
}

void dp_journaling_turn(struct dp_journaling *j)
{
    if (!j->journal || j->failed.status != DP_OK)
        return;
    enum dp_status st = DP_OK;
    struct dp_error err = {0};
    uint64_t before = j->on_disk, synced = j->synced;
    j->on_disk = dp_journal_durable(j->journal, &st, &err);
    j->durable = j->incarnation_put ? j->on_disk : j->durable;
    j->synced = dp_journal_synced(j->journal);
    DP_ASSERT(j->on_disk >= before && j->synced >= synced);
    check(j);
    if (j->on_disk > before) {
        j->progressed = true;
        j->behind_ns = 0;
    }
    if (st != DP_OK)
        fail(j, &err);
}

bool dp_journaling_take_progress(struct dp_journaling *j)
{
    bool progressed = j->progressed;
    j->progressed = false;
    return progressed;
}

void dp_journaling_commit(struct dp_journaling *j)
{
    if (!j->journal || j->failed.status != DP_OK || j->durable >= j->lsn)
        return;
    dp_journal_commit(j->journal);
    dp_journaling_turn(j); /* mode process: it is durable already, and no wake will come */
}

void dp_journaling_sync(struct dp_journaling *j, uint64_t lsn)
{
    DP_ASSERT(lsn <= j->lsn);
    if (!j->journal || j->failed.status != DP_OK || j->synced >= lsn)
        return;
    dp_journal_sync(j->journal);
    dp_journaling_turn(j);
}

void dp_journaling_release(struct dp_journaling *j, uint64_t lsn)
{
    DP_ASSERT(lsn <= j->synced || !j->journal);
    if (!j->journal)
        return;
    if (j->holds && lsn > j->held) {
        j->put_off = lsn;
        return;
    }
    dp_journal_release(j->journal, lsn + 1);
    dp_journal_commit(j->journal); /* a round recycles the released segments */
}

void dp_journaling_hold(struct dp_journaling *j, uint64_t lsn)
{
    DP_ASSERT(j->journal && lsn <= j->lsn && !j->holds);
    j->holds = true;
    j->held = lsn;
    check(j);
}

void dp_journaling_end_hold(struct dp_journaling *j)
{
    uint64_t put_off = j->put_off;
    j->holds = false;
    j->put_off = 0;
    if (put_off > 0)
        dp_journaling_release(j, put_off);
    check(j);
}

bool dp_journaling_hold_fills(const struct dp_journaling *j)
{
    struct dp_journal_figures figures;
    if (!j->journal || j->put_off == 0)
        return false;
    dp_journal_figures(j->journal, &figures);
    return figures.bytes_kept / HOLD_MOST > figures.bytes_budget / HOLD_PARTS;
}

void dp_journaling_begin_cycle(struct dp_journaling *j)
{
    check(j);
    j->since_ns = dp_shard_now(j->base);
    j->pushed = false;
}

bool dp_journaling_fills(const struct dp_journaling *j)
{
    struct dp_journal_figures figures;
    if (!j->journal || j->put_off > 0) /* during replay; or a cycle would not help */
        return false;
    dp_journal_figures(j->journal, &figures);
    return figures.bytes_kept > figures.bytes_budget / FILLS_SHARE;
}

uint64_t dp_journaling_opening(const struct dp_journaling *j)
{
    struct dp_journal_figures figures = {0};
    if (j->journal)
        dp_journal_figures(j->journal, &figures);
    DP_ASSERT(!j->journal || figures.last_lsn == j->lsn);
    return figures.incarnation;
}

void dp_journaling_count(struct dp_journaling *j, uint64_t stored_lsn)
{
    struct dp_journal_figures figures = {0};
    if (j->journal && j->lsn > stored_lsn)
        dp_journal_figures(j->journal, &figures);
    DP_COUNT_SET(&j->base->counters, journal_kept_bytes, figures.bytes_kept);
}

/* ---- the journal's marks */

static void mark_put(void *context, struct dp_io_job *job)
{
    struct dp_journaling *j = context;
    DP_ASSERT(!j->incarnation_put && !j->mark_again);
    if (job->store.status == DP_FULL && j->failed.status == DP_OK) {
        if (j->mark_full.status == DP_OK)
            dp_log(
                DP_LOG_ERROR,
                "shard %" PRIu32
                ": no space for the journal's mark: %s; the server retries each second and takes no pushes "
                "until then",
                j->base->index, job->store.error.text);
        j->mark_full = job->store.error;
        j->mark_again = job;
        j->mark_again_ns = dp_shard_now(j->base) + PUT_AGAIN_NS;
        DP_COUNT(&j->base->counters, writes_full, 1);
        j->lost(j->context);
        return;
    }
    if (job->store.status == DP_OK && j->mark_full.status != DP_OK)
        dp_log(DP_LOG_INFO, "shard %" PRIu32 " takes pushes", j->base->index);
    j->mark_full = (struct dp_error){0};
    j->incarnation_put = job->store.status == DP_OK;
    if (!j->incarnation_put && j->failed.status == DP_OK)
        fail(j, &job->store.error);
    dp_io_job_free(job);
}

void dp_journaling_put_again(struct dp_journaling *j)
{
    struct dp_io_job *job = j->mark_again;
    if (!job || j->failed.status != DP_OK || dp_shard_now(j->base) < j->mark_again_ns)
        return;
    job->store.status = DP_OK;
    job->store.error = (struct dp_error){0};
    if (dp_io_jobs_submit(j->jobs, job) == DP_OK)
        j->mark_again = NULL;
}

enum dp_status dp_journaling_open(struct dp_journaling *j, struct dp_journal **journal, uint64_t stored_lsn,
                                  struct dp_error *err)
{
    DP_ASSERT(!j->journal && !j->replays && *journal);
    j->journal = *journal;
    *journal = NULL;
    dp_journaling_release(j, stored_lsn);
    enum dp_status st = dp_io_jobs_put_number(j->jobs, "journal", dp_journaling_opening(j), mark_put, j);
    return st == DP_OK ? st : dp_fail(err, st, "cannot put the journal's mark");
}

static void release_put(void *context, struct dp_io_job *job)
{
    struct dp_journaling *j = context;
    DP_ASSERT(!j->release_put && !j->journal);
    j->release_put = true;
    j->unreleased = job->store.error;
    dp_io_job_free(job);
}

enum dp_status dp_journaling_release_old(struct dp_journaling *j, struct dp_error *err)
{
    if (j->released >= j->incarnation)
        return DP_OK;
    j->release_put = false;
    enum dp_status st = dp_io_jobs_put_number(j->jobs, "released", j->incarnation, release_put, j);
    if (st != DP_OK)
        return dp_fail(err, st, "cannot put the journal's mark");
    while (!j->release_put)
        dp_io_jobs_wait(j->jobs);
    if (j->unreleased.status != DP_OK) {
        *err = j->unreleased;
        return err->status;
    }
    j->released = j->incarnation;
    return DP_OK;
}

enum dp_status dp_journaling_end(struct dp_journaling *j, struct dp_error *err)
{
    /* durable may be behind, if the store never had space for the journal's mark. */
    DP_ASSERT(j->synced == j->lsn);
    return dp_journal_end(&j->journal, err);
}

void dp_journaling_clear(struct dp_journaling *j)
{
    dp_journal_close(&j->journal);
    dp_io_job_free(j->mark_again);
    j->mark_again = NULL;
}
