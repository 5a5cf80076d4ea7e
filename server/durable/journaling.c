/* Why       Replay reads no configuration and no clock: the record and the table's mark have all that
 *           applying needs. */
#include "server/durable/journaling.h"

#include "common/base/log.h"

#include <inttypes.h>
#include <stdlib.h>

#define TELL_NS UINT64_C(10000000000) /* between two warnings of a journal without space */
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
    DP_ASSERT(j->durable <= j->lsn && j->synced <= j->lsn);
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

/* ---- records */

void dp_journaling_describe(struct dp_record *record, enum dp_record_kind kind, const struct dp_request *push)
{
    const struct dp_membership *member = &push->member;
    record->kind = kind;
    record->refused = DP_OK;
    record->dropped = false;
    record->members = member->given;
    record->run = member->run;
    record->rank = member->rank;
    record->step = member->step;
    record->examples = member->examples;
    record->view = member->view;
    record->rate = push->rate;
}

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

static enum dp_appended no_room(struct dp_journaling *j, enum dp_status st, struct dp_error *err)
{
    if (j->put_off > 0)
        DP_COUNT(&j->base->counters, checkpoint_delays, 1);
    if (st == DP_FULL) {
        DP_COUNT(&j->base->counters, pushes_no_segment, 1);
        j->no_segment = *err;
        j->no_segment_ns = dp_shard_now(j->base);
    }
    j->wanted = true;
    bool is_over = j->stuck.status != DP_OK && j->stuck.status != DP_AGAIN;
    if (is_over || (st == DP_AGAIN && j->stuck.status == DP_AGAIN))
        *err = j->stuck;
    err->wait.reason = DP_WAIT_DISK;
    return is_over ? DP_APPEND_REFUSED : DP_APPEND_NO_ROOM;
}

static void refuse_failed(const struct dp_journaling *j, enum dp_status st, struct dp_error *err)
{
    *err = j->failed;
    err->wait.reason = DP_WAIT_FAULT;
    (void)dp_wrap(err, st, "shard %" PRIu32 " takes no pushes, restart its server", j->base->index);
}

enum dp_appended dp_journaling_append(struct dp_journaling *j, const struct dp_record *record,
                                      const struct dp_request *push, struct dp_error *err)
{
    DP_ASSERT(!j->replays);
    if (!j->journal) {
        DP_ASSERT(j->durable == j->lsn && j->synced == j->lsn);
        j->durable = j->synced = ++j->lsn;
        return DP_APPENDED;
    }
    if (j->failed.status != DP_OK) {
        refuse_failed(j, j->failed.status, err);
        return DP_APPEND_REFUSED;
    }
    enum dp_status st = append(j, record, push, err);
    check(j);
    switch (st) {
    case DP_OK:
        j->no_segment.status = DP_OK;
        j->view_lsn = record->kind == DP_RECORD_VIEW ? j->lsn : j->view_lsn;
        return DP_APPENDED;
    case DP_AGAIN:
    case DP_FULL:
        return no_room(j, st, err);
    case DP_BEHIND:
        err->wait.reason = DP_WAIT_DISK;
        return DP_APPEND_BEHIND;
    default:
        return DP_APPEND_REFUSED;
    }
}

/* Usually the disk catches up within milliseconds; if not, the push is refused. */
bool dp_journaling_may_wait(struct dp_journaling *j)
{
    uint64_t now = dp_shard_now(j->base);
    if (j->behind_ns == 0)
        j->behind_ns = now;
    return now - j->behind_ns < BEHIND_NS;
}

bool dp_journaling_lost(const struct dp_journaling *j, struct dp_error *err)
{
    bool lost = j->failed.status != DP_OK && j->durable < j->lsn;
    if (lost)
        refuse_failed(j, DP_AGAIN, err);
    return lost;
}

bool dp_journaling_lacks_segment(const struct dp_journaling *j)
{
    return j->no_segment.status != DP_OK && dp_shard_now(j->base) - j->no_segment_ns < 2 * TELL_NS;
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

/* The server's operator must make room, and may not see the clients' errors. */
static void warn_of_no_segment(struct dp_journaling *j)
{
    if (j->no_segment.status == DP_OK) {
        if (j->warned_ns > 0)
            dp_log(DP_LOG_INFO, "shard %" PRIu32 " takes pushes again", j->base->index);
        j->warned_ns = 0;
    } else if (j->warned_ns == 0 || dp_shard_now(j->base) - j->warned_ns >= TELL_NS) {
        dp_log(DP_LOG_WARN, "shard %" PRIu32 " takes no pushes: %s", j->base->index, j->no_segment.text);
        j->warned_ns = dp_shard_now(j->base);
    }
}

void dp_journaling_turn(struct dp_journaling *j)
{
    if (!j->journal || j->failed.status != DP_OK)
        return;
    enum dp_status st = DP_OK;
    struct dp_error err = {0};
    uint64_t durable = j->durable, synced = j->synced;
    warn_of_no_segment(j);
    j->durable = dp_journal_durable(j->journal, &st, &err);
    j->synced = dp_journal_synced(j->journal);
    DP_ASSERT(j->durable >= durable && j->synced >= synced);
    check(j);
    if (j->durable > durable) {
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
    if (!j->journal || j->failed.status != DP_OK || (j->durable >= j->lsn && !j->recycles))
        return;
    j->recycles = false;
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
    j->recycles = true;
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
    j->pushed = j->wanted = false;
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

void dp_journaling_set_stuck(struct dp_journaling *j, const struct dp_error *why)
{
    j->stuck = *why;
}

/* ---- opening and closing */

struct putting {
    bool done;
    struct dp_error error;
};

static void mark_put(void *context, struct dp_io_job *job)
{
    struct putting *putting = context;
    putting->done = true;
    putting->error = job->store.error;
    dp_io_job_free(job);
}

static enum dp_status put_mark(struct dp_journaling *j, const char *key, uint64_t number,
                               struct dp_error *err)
{
    struct putting putting = {0};
    enum dp_status st = dp_io_jobs_put_number(j->jobs, key, number, mark_put, &putting);
    if (st != DP_OK)
        return dp_fail(err, st, "cannot put the journal's mark");
    while (!putting.done)
        dp_io_jobs_wait(j->jobs);
    if (putting.error.status == DP_OK)
        return DP_OK;
    *err = putting.error;
    return dp_wrap(err, err->status, "cannot put the journal's mark");
}

enum dp_status dp_journaling_open(struct dp_journaling *j, struct dp_journal **journal, uint64_t stored_lsn,
                                  struct dp_error *err)
{
    DP_ASSERT(!j->journal && !j->replays && *journal);
    j->journal = *journal;
    *journal = NULL;
    dp_journaling_release(j, stored_lsn);
    return put_mark(j, "journal", dp_journaling_opening(j), err);
}

enum dp_status dp_journaling_release_old(struct dp_journaling *j, struct dp_error *err)
{
    if (j->released >= j->incarnation)
        return DP_OK;
    enum dp_status st = put_mark(j, "released", j->incarnation, err);
    j->released = st == DP_OK ? j->incarnation : j->released;
    return st;
}

enum dp_status dp_journaling_end(struct dp_journaling *j, struct dp_error *err)
{
    DP_ASSERT(j->synced == j->lsn);
    return dp_journal_end(&j->journal, err);
}

void dp_journaling_clear(struct dp_journaling *j)
{
    dp_journal_close(&j->journal);
}
