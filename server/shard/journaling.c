/* The shard and its journal: what is pushed is appended, what is appended becomes durable, what is durable is
 * answered.
 *     append -> apply -> (end of the turn) commit -> ... -> (start of a turn) durable -> answer (this order, always)
 * Why       An answer is held until the journal is durable past its push; a repeated push's, until past the last one
 *           appended, so that the first copy is durable too. Replay reads no configuration and no clock: the record
 *           and the table's mark have all that applying needs.
 * Holds     durable <= lsn; rows == replay(store, journal up to lsn), bit for bit. */
#include "server/shard/shard_inner.h"

#include "common/base/log.h"
#include "server/shard/record.h"

#include <inttypes.h>
#include <stdlib.h>

#define PUT_AGAIN_NS UINT64_C(1000000000)  /* the disk was full */
#define TELL_NS      UINT64_C(10000000000) /* a journal without room is told so often at most */
#define BEHIND_NS                                                                                            \
    UINT64_C(1000000000) /* so long a push waits for a disk that is behind, before the client hears why */

/* ---- pushes */

static enum dp_status append(struct dp_shard *shard, const struct dp_request *push,
                             struct dp_shard_table **tables, enum dp_status refused, struct dp_error *err)
{
    struct dp_journal_piece pieces[DP_RECORD_PIECES_MAX];
    char head[DP_RECORD_HEAD_MAX];
    uint32_t dims[DP_SECTIONS_MAX];
    size_t bytes = 0;
    for (uint32_t s = 0; refused == DP_OK && s < push->sections; s++)
        dims[s] = tables[s]->spec.dim;
    uint32_t n = dp_record_encode(push, dims, refused, head, pieces);
    for (uint32_t i = 0; i < n; i++)
        bytes += pieces[i].bytes;
    enum dp_status st = dp_journal_append(shard->journal, pieces, n, &shard->lsn, err);
    if (st == DP_OK) {
        if (!shard->write_back.pushed)
            shard->write_back.since_ns = dp_clock_ns(&shard->options.clock);
        shard->write_back.pushed = true;
        DP_COUNT(&shard->counters, journal_bytes, bytes);
    }
    return st;
}

/* Its disk has no room for a segment: somebody must make some, and is told of it here too, not by the clients alone. */
static void tell_room(struct dp_shard *shard, enum dp_status appended, const struct dp_error *err)
{
    if (appended == DP_OK && shard->no_segment) {
        dp_log(DP_LOG_INFO, "shard %" PRIu32 " takes pushes again", shard->options.index);
        shard->no_segment = false;
    }
    if (appended != DP_FULL)
        return;
    uint64_t now = dp_clock_ns(&shard->options.clock);
    DP_COUNT(&shard->counters, pushes_no_segment, 1);
    if (shard->no_segment_ns == 0 || now - shard->no_segment_ns >= TELL_NS) {
        dp_log(DP_LOG_WARN, "shard %" PRIu32 " takes no pushes: %s", shard->options.index, err->text);
        shard->no_segment_ns = now;
        shard->no_segment = true;
    }
}

enum dp_status dp_shard_journal_push(struct dp_shard *shard, const struct dp_request *push,
                                     struct dp_shard_table **tables, enum dp_status refused,
                                     struct dp_error *err)
{
    if (!shard->journal) {
        shard->durable = shard->synced = ++shard->lsn;
        return DP_OK;
    }
    if (shard->journal_failed.status != DP_OK) {
        *err = shard->journal_failed;
        return dp_wrap(err, err->status, "shard %" PRIu32 " takes no pushes, restart its server",
                       shard->options.index);
    }
    if (shard->incarnation_full.status != DP_OK) {
        *err = shard->incarnation_full;
        return dp_wrap(err, err->status,
                       "shard %" PRIu32 " takes no pushes until its store has the journal's mark",
                       shard->options.index);
    }
    enum dp_status st = append(shard, push, tables, refused, err);
    tell_room(shard, st, err);
    if (st == DP_ARGUMENT) {
        struct dp_error why = *err;
        return dp_fail(err, st,
                       "shard %" PRIu32
                       ": %s, which is an eighth of journal_bytes, 256 MiB at most; send smaller "
                       "pushes, or raise journal_bytes in the cluster file",
                       shard->options.index, why.text);
    }
    if (st != DP_AGAIN && st != DP_FULL)
        return st;
    if (shard->write_back.failed.status != DP_OK) { /* nobody will make room */
        *err = shard->write_back.failed;
        return dp_wrap(err, err->status,
                       "shard %" PRIu32
                       ": its journal is full and rows cannot be written back, restart its server "
                       "when its disk is sound",
                       shard->options.index);
    }
    shard->write_back.wanted = true;
    uint64_t merging = st == DP_AGAIN ? shard->write_back.merging : 0;
    if (merging > 0)
        return dp_wrap(err, st,
                       "shard %" PRIu32 ": rows are not written back while %" PRIu64
                       " files of them wait to be merged",
                       shard->options.index, merging);
    return st;
}

/* The disk is behind: that passes in milliseconds, or the clients hear of it. */
bool dp_shard_journal_waits(struct dp_shard *shard)
{
    uint64_t now = dp_clock_ns(&shard->options.clock);
    if (shard->behind_ns == 0)
        shard->behind_ns = now;
    return now - shard->behind_ns < BEHIND_NS;
}

bool dp_shard_journal_is_next(const struct dp_shard *shard, const struct dp_waiting *waiting)
{
    return !shard->disk_first || shard->disk_first->first == waiting;
}

void dp_shard_park_for_disk(struct dp_shard *shard, struct dp_session *session)
{
    if (session->for_disk)
        return; /* it keeps its place */
    session->for_disk = true;
    session->next_for_disk = NULL;
    *(shard->disk_last ? &shard->disk_last->next_for_disk : &shard->disk_first) = session;
    shard->disk_last = session;
}

static void wake(struct dp_shard *shard, struct dp_session *session)
{
    if (!session->parked)
        return;
    session->parked = false;
    dp_shard_make_runnable(shard, session);
}

/* The first of those who wait for the disk tries again. */
static void wake_first(struct dp_shard *shard)
{
    if (shard->disk_first)
        wake(shard, shard->disk_first);
}

void dp_shard_journal_end_late(struct dp_shard *shard)
{
    uint64_t now = shard->disk_first ? dp_clock_ns(&shard->options.clock) : 0;
    for (struct dp_session *session = shard->disk_first; session; session = session->next_for_disk)
        if (now > session->first->deadline_ns)
            wake(shard, session);
}

void dp_shard_unpark_for_disk(struct dp_shard *shard, struct dp_session *session)
{
    struct dp_session **link = &shard->disk_first, *before = NULL;
    if (!session->for_disk)
        return;
    for (; *link != session; link = &(*link)->next_for_disk)
        before = *link;
    *link = session->next_for_disk;
    shard->disk_last = shard->disk_last == session ? before : shard->disk_last;
    session->for_disk = false;
    if (!before)
        wake_first(shard); /* whoever is first now: what this one needed may be there for him */
}

static void refuse(struct dp_shard *shard, const struct dp_held_answer *answer, const struct dp_error *err)
{
    struct dp_request request = {0};
    request.id = answer->id;
    request.session = answer->session;
    request.stream = answer->stream;
    dp_shard_refuse(shard, &answer->peer, &request, answer->sequence, err);
}

static void answer_held(struct dp_shard *shard, struct dp_held_answer *answer)
{
    if (answer->refused) {
        refuse(shard, answer, answer->refused);
        free(answer->refused);
        return;
    }
    struct dp_waiting to = {.peer = answer->peer};
    to.request.id = answer->id;
    to.request.session = answer->session;
    struct dp_reply reply = {
        .kind = DP_REPLY_PUSHED, .staleness = answer->staleness, .repeated = answer->repeated};
    dp_shard_answer(shard, &to, &reply, NULL, 0);
}

static void hold(struct dp_shard *shard, const struct dp_waiting *waiting, struct dp_held_answer *answer)
{
    answer->lsn = shard->lsn;
    answer->peer = waiting->peer;
    answer->id = waiting->request.id;
    answer->session = waiting->request.session;
    answer->stream = waiting->request.stream;
    answer->sequence = waiting->request.sequence;
    if (shard->durable >= answer->lsn) {
        answer_held(shard, answer);
    } else if (dp_held_add(&shard->held, answer) != DP_OK) {
        free(answer->refused);
        dp_log(DP_LOG_WARN, "shard %" PRIu32 ": no memory to hold an answer: the client will ask again",
               shard->options.index);
    }
}

void dp_shard_hold_answer(struct dp_shard *shard, const struct dp_waiting *waiting, uint64_t staleness,
                          bool repeated)
{
    struct dp_held_answer answer = {.staleness = staleness, .repeated = repeated};
    hold(shard, waiting, &answer);
}

void dp_shard_hold_refusal(struct dp_shard *shard, const struct dp_waiting *waiting,
                           const struct dp_error *err)
{
    struct dp_held_answer answer = {.refused = malloc(sizeof *err)};
    if (!answer.refused)
        return; /* the client will ask again */
    *answer.refused = *err;
    hold(shard, waiting, &answer);
}

bool dp_shard_journal_lost(const struct dp_shard *shard, struct dp_error *err)
{
    bool failed = shard->journal_failed.status != DP_OK;
    if ((!failed && shard->incarnation_full.status == DP_OK) || shard->durable >= shard->lsn)
        return false;
    *err = failed ? shard->journal_failed : shard->incarnation_full;
    (void)dp_wrap(err, DP_AGAIN, "shard %" PRIu32 " takes no pushes%s", shard->options.index,
                  failed ? ", restart its server" : " until its store has the journal's mark");
    err->status = DP_AGAIN;
    return true;
}

/* ---- turns */

/* What will never be durable here, or not soon: whether it is in the journal, the next opening sees. It is to be asked again. */
static void refuse_held(struct dp_shard *shard)
{
    struct dp_held_answer answer;
    struct dp_error err = {0};
    while (dp_held_take(&shard->held, UINT64_MAX, &answer)) {
        (void)dp_shard_journal_lost(shard, &err);
        refuse(shard, &answer, &err);
        free(answer.refused);
    }
}

static void fail_journal(struct dp_shard *shard, const struct dp_error *err)
{
    shard->journal_failed = *err;
    shard->room.changed = true; /* who waits for clean rows hears that there will be none */
    dp_log(DP_LOG_ERROR, "shard %" PRIu32 ": %s; no push is taken any more, restart the server",
           shard->options.index, err->text);
    refuse_held(shard);
    wake_first(shard); /* who is refused makes way for the next */
}

static void keep_put(struct dp_shard *shard, struct dp_shard_job *job)
{
    if (shard->incarnation_full.status == DP_OK)
        dp_log(DP_LOG_ERROR,
               "shard %" PRIu32
               ": the journal's mark has no room: %s; it is tried again each second, no push "
               "is taken until then",
               shard->options.index, job->store.error.text);
    shard->incarnation_full = job->store.error;
    shard->incarnation_again = job;
    shard->incarnation_again_ns = dp_clock_ns(&shard->options.clock) + PUT_AGAIN_NS;
    DP_COUNT(&shard->counters, writes_full, 1);
    refuse_held(shard);
    wake_first(shard); /* who is refused makes way for the next */
}

bool dp_shard_journal_put(struct dp_shard *shard, struct dp_shard_job *job)
{
    if (job->store.status == DP_FULL && shard->journal_failed.status == DP_OK) {
        keep_put(shard, job);
        return true;
    }
    if (job->store.status == DP_OK && shard->incarnation_full.status != DP_OK)
        dp_log(DP_LOG_INFO, "shard %" PRIu32 ": pushes are taken", shard->options.index);
    shard->incarnation_full = (struct dp_error){0};
    shard->incarnation_put = job->store.status == DP_OK;
    if (!shard->incarnation_put && shard->journal_failed.status == DP_OK)
        fail_journal(shard, &job->store.error);
    return false;
}

/* (Who stops needs no mark: after a clean close there is nothing in the journal to be missed.) */
static void put_again(struct dp_shard *shard)
{
    struct dp_shard_job *job = shard->incarnation_again;
    if (!job || shard->draining || dp_clock_ns(&shard->options.clock) < shard->incarnation_again_ns)
        return;
    job->store.status = DP_OK;
    job->store.error = (struct dp_error){0};
    if (dp_shard_try_submit(shard, job) == DP_OK)
        shard->incarnation_again = NULL;
}

void dp_shard_journal_count(struct dp_shard *shard)
{
    struct dp_journal_figures figures = {0};
    if (shard->journal && shard->lsn > shard->write_back.marked_lsn)
        dp_journal_figures(shard->journal, &figures);
    DP_COUNT_SET(&shard->counters, journal_kept_bytes, figures.bytes_kept);
}

void dp_shard_journal_turn(struct dp_shard *shard)
{
    if (!shard->journal || shard->journal_failed.status != DP_OK)
        return;
    enum dp_status st = DP_OK;
    struct dp_error err = {0};
    struct dp_held_answer answer;
    uint64_t durable = dp_journal_durable(shard->journal, &st, &err), before = shard->on_disk;
    shard->on_disk = durable;
    shard->durable = shard->incarnation_put ? durable : shard->durable;
    shard->synced = dp_journal_synced(shard->journal);
    while (dp_held_take(&shard->held, shard->durable, &answer))
        answer_held(shard, &answer);
    if (st != DP_OK)
        fail_journal(shard, &err);
    if (shard->disk_first && (durable > before || !dp_shard_journal_waits(shard)))
        wake_first(shard);
    if (durable > before)
        shard->behind_ns = shard->disk_first ? dp_clock_ns(&shard->options.clock) : 0;
    put_again(shard);
    DP_COUNT_SET(&shard->counters, answers_held, shard->held.count);
}

void dp_shard_journal_commit(struct dp_shard *shard)
{
    if (!shard->journal || shard->journal_failed.status != DP_OK)
        return;
    if (shard->durable < shard->lsn) {
        dp_journal_commit(shard->journal);
        dp_shard_journal_turn(shard); /* mode process: it is durable already, and nobody will wake us */
    }
}

void dp_shard_journal_sync_ready(struct dp_shard *shard)
{
    if (shard->journal && shard->journal_failed.status == DP_OK && shard->write_back.ready &&
        shard->synced < shard->write_back.ready_lsn) {
        dp_journal_sync(shard->journal);
        dp_shard_journal_turn(shard);
    }
}
