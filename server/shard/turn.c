/* One turn of a shard: all that waited and all that the store completed.
 *     journal durable -> held answers -> completed jobs, some rows of reads -> each runnable session's requests, in its
 *     order -> commit of the journal -> a step of write-back                        (this order, always)
 * Why       Completed first: a parked request goes on before a later one of its session is looked at. One
 *           request of a session is parked or being done at a time: requests of a session take effect in
 *           the order of their sequence numbers. One commit, at the end: the turn's pushes share a sync.
 *           Nothing in a turn waits (blocking.h asserts it); what must be waited for is a job or the commit thread's. One
 *           exception: in mode process the journal is written, to the page cache, at the end.
 * Holds     What was answered OK was applied in full, and is durable (journaling.c); a request that was not
 *           applied changed no row. */
#include "server/shard/shard_inner.h"

#include "common/base/blocking.h"
#include "common/base/bytes.h"
#include "common/base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- answers */

void dp_shard_answer(struct dp_shard *shard, const struct dp_waiting *waiting, struct dp_reply *reply,
                     struct dp_frame *frames, uint32_t frame_count)
{
    reply->id = waiting->request.id;
    reply->session = waiting->request.session;
    reply->generation = shard->options.generation;
    reply->cluster = shard->options.cluster;
    struct dp_message *message = NULL;
    struct dp_error err = {0};
    if (dp_reply_encode(reply, frames, frame_count, &message, &err) != DP_OK) {
        /* Without an answer the client asks again. */
        dp_log(DP_LOG_WARN, "shard %" PRIu32 ": an answer was dropped: %s", shard->options.index, err.text);
        return;
    }
    shard->options.reply(shard->options.reply_context, &waiting->peer, &message);
}

static void count_refusal(struct dp_shard *shard, enum dp_status status)
{
    if (status == DP_AGAIN || status == DP_ORDER || status == DP_SESSION || status == DP_STOPPING)
        DP_COUNT(&shard->counters, requests_postponed, 1);
    else if (status == DP_TIMEOUT)
        DP_COUNT(&shard->counters, requests_expired, 1);
    else
        DP_COUNT(&shard->counters, requests_refused, 1);
}

/* What this server lacks refuses no request for good: the client hears why, with AGAIN, and tries until its deadline. */
void dp_shard_refuse(struct dp_shard *shard, const struct dp_peer *peer, const struct dp_request *request,
                     uint64_t sequence, const struct dp_error *err)
{
    enum dp_status answered = dp_status_answered(err->status);
    count_refusal(shard, answered);
    struct dp_waiting to = {.peer = *peer};
    to.request.id = request->id;
    to.request.session = request->session;
    struct dp_reply reply = {.kind = DP_REPLY_NONE, .status = answered, .sequence = sequence};
    if (answered == DP_TOO_OLD)
        reply.too_old = dp_push_ids_too_old(shard->ids, request->stream);
    (void)snprintf(reply.reason, sizeof reply.reason, "%s", err->text);
    dp_shard_answer(shard, &to, &reply, NULL, 0);
}

enum dp_done dp_shard_refuse_waiting(struct dp_shard *shard, const struct dp_waiting *waiting,
                                     const struct dp_error *err)
{
    dp_shard_refuse(shard, &waiting->peer, &waiting->request, waiting->request.sequence, err);
    enum dp_status answered = dp_status_answered(err->status);
    /* Both are sent again by the client: what is behind them must not overtake them. */
    return answered == DP_AGAIN || answered == DP_TIMEOUT ? DP_DONE_LATER : DP_DONE;
}

/* ---- hello and status */

/* The stream that this hello is to be given; 0: none, or it has one that will do. */
static uint64_t stream_due(const struct dp_shard *shard, const struct dp_request *request)
{
    const struct dp_session *session = dp_sessions_find(shard->sessions, request->session);
    if (!request->want_stream || (session && session->stream > request->stream_above))
        return 0;
    return shard->next_stream > request->stream_above ? shard->next_stream : request->stream_above + 1;
}

static void welcome(struct dp_shard *shard, const struct dp_waiting *hello)
{
    uint64_t now = dp_clock_ns(&shard->options.clock);
    const struct dp_request *request = &hello->request;
    struct dp_session *session = dp_sessions_find(shard->sessions, request->session);
    bool fresh = !session;
    uint64_t stream = stream_due(shard, request);
    if (fresh)
        session = dp_sessions_add(shard->sessions, request->session);
    if (!session) {
        struct dp_error err = {0};
        (void)dp_fail(&err, DP_AGAIN, "%u sessions are open on shard %" PRIu32 ", each with requests waiting",
                      DP_SESSIONS_MAX, shard->options.index);
        dp_shard_refuse(shard, &hello->peer, request, 0, &err);
        return;
    }
    session->heard_ns = now;
    /* An old hello that arrives late must not turn the order back. */
    if (fresh || request->next_sequence > session->expected)
        session->expected = request->next_sequence;
    if (request->next_sequence - 1 > session->done)
        session->done = request->next_sequence - 1; /* the client has the answers to those */
    if (fresh) {
        (void)snprintf(session->client, sizeof session->client, "%s", request->client);
        DP_COUNT_SET(&shard->counters, sessions, dp_sessions_count(shard->sessions));
    }
    if (stream) {
        DP_ASSERT(shard->next_stream <= stream && stream < shard->streams_reserved);
        session->stream = stream;
        shard->next_stream = stream + 1;
    }
    struct dp_reply reply = {.kind = DP_REPLY_WELCOME,
                             .first = shard->range.first,
                             .last = shard->range.last,
                             .boot = shard->options.boot,
                             .stream = request->want_stream ? session->stream : 0,
                             .too_old = dp_push_ids_too_old(shard->ids, 1),
                             .window = DP_SHARD_WINDOW};
    dp_shard_answer(shard, hello, &reply, NULL, 0);
}

/* Streams are given only below a bound that is in the store: a restarted server never gives one twice. */
static enum dp_status reserve_streams(struct dp_shard *shard, uint64_t stream)
{
    uint64_t bound = stream + DP_STREAM_BLOCK;
    char *memory = calloc(1, sizeof(struct dp_store_mark) + 8);
    if (!memory)
        return DP_NOMEM;
    struct dp_store_mark *mark = (struct dp_store_mark *)(void *)memory;
    dp_store_u64le(memory + sizeof *mark, bound);
    *mark = (struct dp_store_mark){
        .key = "streams", .key_bytes = 7, .value = memory + sizeof *mark, .value_bytes = 8};
    struct dp_shard_job *job = dp_shard_job_new(DP_JOB_STREAMS, memory);
    if (!job)
        return DP_NOMEM;
    job->store.kind = DP_STORE_MARKS;
    job->store.count = 1;
    job->store.marks = mark;
    enum dp_status st = dp_shard_submit(shard, job);
    shard->reserving = st == DP_OK ? bound : 0;
    return st;
}

void dp_shard_streams_reserved(struct dp_shard *shard, const struct dp_shard_job *job)
{
    if (job->store.status == DP_OK)
        shard->streams_reserved = shard->reserving;
    shard->reserving = 0;
    while (shard->hello_first) {
        struct dp_waiting *hello = shard->hello_first;
        shard->hello_first = hello->next;
        shard->waiting--;
        shard->waiting_bytes -= hello->bytes;
        if (job->store.status != DP_OK)
            dp_shard_refuse(shard, &hello->peer, &hello->request, 0, &job->store.error);
        else if (stream_due(shard, &hello->request) < shard->streams_reserved)
            welcome(shard, hello);
        /* else: more than a block's worth waited, or it wants a later one; it says hello again */
        dp_waiting_free(&hello);
    }
}

static void hello(struct dp_shard *shard, struct dp_waiting **waiting)
{
    struct dp_error err = {0};
    const struct dp_request *request = &(*waiting)->request;
    enum dp_status st = DP_OK;
    if (request->session == 0 || request->next_sequence == 0)
        st = dp_fail(&err, DP_INVALID, "hello: session and next_sequence start at 1");
    else if (request->want_stream && shard->range.first != 0)
        st = dp_fail(&err, DP_INVALID, "hello: streams are given by shard 0, this is shard %" PRIu32,
                     shard->options.index);
    else if (shard->draining)
        st = dp_shard_stopping(shard, &err);
    else
        st = dp_shard_check_above(shard, request->stream_above, &err);
    uint64_t stream = stream_due(shard, request);
    /* As no push is taken, a stream may be given twice. */
    if (st == DP_OK && shard->options.read_only && stream >= shard->streams_reserved)
        shard->streams_reserved = stream + DP_STREAM_BLOCK;
    if (st == DP_OK && stream >= shard->streams_reserved) {
        if (shard->waiting >= shard->options.requests_max)
            st = dp_fail(&err, DP_AGAIN, "shard %" PRIu32 " is busy", shard->options.index);
        else if (!shard->reserving && reserve_streams(shard, stream) != DP_OK)
            st = dp_fail(&err, DP_AGAIN, "shard %" PRIu32 ": its store is busy", shard->options.index);
        if (st == DP_OK) {
            (*waiting)->next = shard->hello_first;
            shard->hello_first = *waiting;
            shard->waiting++;
            shard->waiting_bytes += (*waiting)->bytes;
            *waiting = NULL;
            return;
        }
    }
    if (st == DP_OK)
        welcome(shard, *waiting);
    else
        dp_shard_refuse(shard, &(*waiting)->peer, request, 0, &err);
}

void dp_shard_unsequenced(struct dp_shard *shard, struct dp_waiting *waiting)
{
    if (waiting->request.kind == DP_REQUEST_HELLO) {
        hello(shard, &waiting);
    } else if (waiting->request.kind == DP_REQUEST_STATUS) {
        dp_shard_status(shard, waiting);
    } else if (waiting->request.kind == DP_REQUEST_POSITIONS_GET) {
        dp_shard_positions(shard, waiting);
    } else if (waiting->request.kind == DP_REQUEST_SNAPSHOT) {
        dp_shard_snapshot(shard, waiting);
    } else {
        struct dp_error err = {0};
        (void)dp_fail(&err, DP_UNSUPPORTED, "notes are kept by the control socket of the first server");
        dp_shard_refuse(shard, &waiting->peer, &waiting->request, 0, &err);
    }
    dp_waiting_free(&waiting);
}

/* ---- requests in order */

void dp_shard_make_runnable(struct dp_shard *shard, struct dp_session *session)
{
    if (session->runnable || session->parked || !session->first)
        return;
    session->runnable = true;
    session->next_runnable = NULL;
    if (shard->run_last)
        shard->run_last->next_runnable = session;
    else
        shard->run_first = session;
    shard->run_last = session;
}

static struct dp_session *take_runnable(struct dp_shard *shard)
{
    struct dp_session *session = shard->run_first;
    shard->run_first = session->next_runnable;
    if (!shard->run_first)
        shard->run_last = NULL;
    session->runnable = false;
    return session;
}

static void drop_first(struct dp_shard *shard, struct dp_session *session)
{
    struct dp_waiting *waiting = dp_session_take_first(session);
    if (shard->room.urgent == waiting) {
        shard->room.urgent = NULL;
        shard->room.changed = true;
    }
    shard->waiting--;
    shard->waiting_bytes -= waiting->bytes;
    dp_waiting_free(&waiting);
}

/* Before all that would leave a trace in the journal, as a refused push does. */
static enum dp_done refuse_change(struct dp_shard *shard, const struct dp_waiting *waiting, const char *what)
{
    struct dp_error err = {0};
    (void)dp_fail(&err, DP_UNSUPPORTED,
                  "shard %" PRIu32 " serves its store read-only: %s; start its server without --read-only",
                  shard->options.index, what);
    return dp_shard_refuse_waiting(shard, waiting, &err);
}

static enum dp_done do_request(struct dp_shard *shard, struct dp_waiting *waiting)
{
    if (shard->options.read_only && waiting->decoded && waiting->request.kind == DP_REQUEST_PUSH)
        return refuse_change(shard, waiting, "it takes no pushes");
    if (waiting->broken.status != DP_OK && !waiting->decoded)
        return dp_shard_refuse_waiting(shard, waiting, &waiting->broken);
    if (waiting->broken.status != DP_OK)
        return waiting->request.kind == DP_REQUEST_PUSH
                   ? dp_shard_refuse_push(shard, waiting, &waiting->broken)
                   : dp_shard_refuse_waiting(shard, waiting, &waiting->broken);
    if (dp_clock_ns(&shard->options.clock) > waiting->deadline_ns) {
        struct dp_error err = {0};
        if (waiting->needs_disk)
            (void)dp_fail(&err, DP_AGAIN,
                          "shard %" PRIu32 ": its journal's disk is behind: this push waited for it until "
                          "its deadline, and was not applied",
                          shard->options.index);
        else
            (void)dp_fail(&err, DP_TIMEOUT, "the request's deadline passed while it waited on shard %" PRIu32,
                          shard->options.index);
        return dp_shard_refuse_waiting(shard, waiting, &err);
    }
    switch (waiting->request.kind) {
    case DP_REQUEST_PULL:
        return dp_shard_pull(shard, waiting);
    case DP_REQUEST_PUSH:
        return dp_shard_push(shard, waiting);
    default:
        DP_ASSERT(waiting->request.kind == DP_REQUEST_CREATE_TABLE);
        if (shard->options.read_only && !dp_shard_find_table(shard, dp_table_id(waiting->request.spec.name)))
            return refuse_change(shard, waiting, "it makes no tables");
        return dp_shard_create_table(shard, waiting);
    }
}

static void do_first(struct dp_shard *shard, struct dp_session *session)
{
    uint64_t sequence = session->first->request.sequence;
    enum dp_done done = do_request(shard, session->first);
    if (done == DP_DONE_WAIT && session->first->needs_room)
        dp_shard_park_for_room(shard, session);
    else
        dp_shard_unpark(shard, session);
    if (done == DP_DONE_WAIT && session->first->needs_disk)
        dp_shard_park_for_disk(shard, session);
    else
        dp_shard_unpark_for_disk(shard, session);
    switch (done) {
    case DP_DONE:
        session->done = sequence > session->done ? sequence : session->done;
        drop_first(shard, session);
        break;
    case DP_DONE_WAIT:
        session->parked = true;
        if (!session->in_room && !session->for_disk)
            dp_shard_read_ahead(shard, session->first->next);
        break;
    case DP_DONE_LATER:
        /* What came behind it would overtake it: the client sends all of them again, in order. (A resend of
         * what was done before is not part of that order: it alone comes again.) */
        if (sequence > session->done) {
            session->expected = sequence;
            while (session->first)
                drop_first(shard, session);
        } else {
            drop_first(shard, session);
        }
        break;
    }
}

static void completed(struct dp_shard *shard, struct dp_shard_job *job)
{
    shard->jobs -= job->kind != DP_JOB_MISSES; /* that one has yet to be taken in */
    switch (job->kind) {
    case DP_JOB_MISSES:
        dp_shard_misses_read(shard, job);
        return;
    case DP_JOB_TABLE:
        dp_shard_table_stored(shard, job);
        break;
    case DP_JOB_STREAMS:
        dp_shard_streams_reserved(shard, job);
        break;
    case DP_JOB_ROWS:
    case DP_JOB_MARKS:
        if (dp_shard_written_back(shard, job))
            return;
        break;
    case DP_JOB_JOURNAL:
        if (dp_shard_journal_put(shard, job))
            return;
        break;
    case DP_JOB_RELEASED:
        shard->released_put = true;
        shard->unreleased = job->store.error;
        break;
    case DP_JOB_REPLAY:
        dp_shard_recovery_read(shard, job);
        break;
    case DP_JOB_COUNT:
        dp_shard_counted(shard, job);
        break;
    case DP_JOB_SNAPSHOT:
        dp_shard_snapshot_taken(shard, job);
        break;
    }
    dp_shard_job_free(job);
}

void dp_shard_take_completed(struct dp_shard *shard)
{
    const struct dp_store *store = shard->options.store;
    for (struct dp_store_job *job = store->completed(store->self); job; job = store->completed(store->self))
        completed(shard, job->owner);
}

static void count_turn(struct dp_counters *c, uint64_t ns)
{
    _Atomic uint64_t *const over[] = {&c->turns_over_1ms,   &c->turns_over_2ms,   &c->turns_over_5ms,
                                      &c->turns_over_10ms,  &c->turns_over_20ms,  &c->turns_over_50ms,
                                      &c->turns_over_100ms, &c->turns_over_200ms, &c->turns_over_500ms};
    static const uint32_t ms[] = {1, 2, 5, 10, 20, 50, 100, 200, 500};
    DP_COUNT(c, turns, 1);
    for (size_t i = 0; i < sizeof ms / sizeof ms[0] && ns > ms[i] * UINT64_C(1000000); i++)
        atomic_store_explicit(over[i], atomic_load_explicit(over[i], memory_order_relaxed) + 1,
                              memory_order_relaxed);
    if (ns > atomic_load_explicit(&c->turn_ns_max, memory_order_relaxed))
        DP_COUNT_SET(c, turn_ns_max, ns);
}

bool dp_shard_turn(struct dp_shard *shard)
{
    uint64_t start = dp_clock_ns(&shard->options.clock);
    bool before = dp_blocking_set(false);
    dp_shard_journal_turn(shard);
    dp_shard_journal_end_late(shard);
    dp_shard_positions_turn(shard);
    dp_shard_take_completed(shard);
    dp_shard_reads_turn(shard);
    dp_shard_room_turn(shard);
    shard->turn_bytes = 0;
    for (uint32_t done = 0;
         done < DP_SHARD_TURN_MAX && shard->turn_bytes < DP_SHARD_TURN_BYTES && shard->run_first; done++) {
        struct dp_session *session = take_runnable(shard);
        do_first(shard, session);
        dp_shard_make_runnable(shard, session);
        if (shard->held.count > 0)
            dp_shard_journal_turn(shard); /* what became durable meanwhile does not wait for the turn's end */
    }
    dp_shard_journal_commit(shard);
    dp_shard_write_back_turn(shard);
    dp_shard_snapshot_turn(shard);
    (void)dp_blocking_set(before);
    dp_shard_journal_count(shard);
    DP_COUNT_SET(&shard->counters, up_ms, (start - shard->opened_ns) / 1000000u);
    uint64_t took = dp_clock_ns(&shard->options.clock) - start;
    count_turn(&shard->counters, took);
    return shard->run_first || shard->read_first || dp_shard_write_back_goes_on(shard) ||
           dp_shard_room_goes_on(shard);
}
