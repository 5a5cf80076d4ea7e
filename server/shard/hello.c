/* Hello: opens a client's session and, on request, a stream for the client alone. Also answers a restarted
 * worker's question which numbers of a stream this shard has applied (push_replies.h).
 * Order     A hello is outside a session's order, because it must be answered while the session is stuck.
 *           It only moves `expected` forward: all lower numbers were answered. */
#include "server/shard/requests.h"
#include "server/shard/shard_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define STREAM_BLOCK  1024u /* streams reserved at once, durably */
#define POSITIONS_MAX 64u   /* answers about positions that wait for the journal */

/* The stream that this hello is to be given; 0: none, or it has one that will do. */
static uint64_t stream_due(const struct dp_shard *shard, const struct dp_request *request)
{
    const struct dp_session *session = dp_sessions_find(shard->sessions, request->session);
    if (!request->want_stream || (session && session->stream > request->stream_above))
        return 0;
    return shard->admission.next_stream > request->stream_above ? shard->admission.next_stream
                                                                : request->stream_above + 1;
}

static void refuse(const struct dp_shard *shard, const struct dp_waiting *hello, const struct dp_error *err)
{
    struct dp_asker to = dp_asker_of(hello);
    to.sequence = 0;
    dp_replies_refuse(&shard->replies, &to, err);
}

static void welcome(struct dp_shard *shard, const struct dp_waiting *hello)
{
    uint64_t now = dp_shard_now(&shard->base);
    const struct dp_request *request = &hello->request;
    struct dp_session *session = dp_sessions_find(shard->sessions, request->session);
    bool fresh = !session;
    uint64_t stream = stream_due(shard, request);
    if (fresh)
        session = dp_sessions_add(shard->sessions, request->session);
    if (!session) {
        struct dp_error err = {0};
        (void)dp_fail_wait(&err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_QUEUE},
                           "%u sessions are open on shard %" PRIu32 ", each with requests waiting",
                           DP_SESSIONS_MAX, shard->base.index);
        refuse(shard, hello, &err);
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
        DP_COUNT_SET(&shard->base.counters, sessions, dp_sessions_count(shard->sessions));
    }
    if (stream) {
        dp_admission_give(&shard->admission, stream);
        session->stream = stream;
    }
    struct dp_reply reply = {.kind = DP_REPLY_WELCOME,
                             .first = shard->base.range.first,
                             .last = shard->base.range.last,
                             .boot = shard->options.boot,
                             .store = shard->options.store_id,
                             .register_id = shard->options.register_id,
                             .stream = request->want_stream ? session->stream : 0,
                             .too_old = dp_push_ids_too_old(shard->ids, 1),
                             .run = shard->steps.view.run,
                             .window = DP_SESSION_WINDOW,
                             .clock_ms =
                                 shard->base.range.first == 0 ? dp_admission_clock_ms(&shard->admission) : 0};
    struct dp_asker to = dp_asker_of(hello);
    dp_replies_send(&shard->replies, &to, &reply, NULL, 0);
}

/* Streams are given only below a bound that is in the store: a restarted server never gives one twice. */
static void streams_reserved(void *context, struct dp_io_job *job)
{
    struct dp_shard *shard = context;
    DP_ASSERT(shard->reserving > 0);
    if (job->store.status == DP_OK)
        dp_admission_reserve(&shard->admission, shard->reserving);
    shard->reserving = 0;
    for (struct dp_waiting *hello; (hello = dp_schedule_take_hello(&shard->schedule));) {
        if (job->store.status != DP_OK)
            refuse(shard, hello, &job->store.error);
        else if (stream_due(shard, &hello->request) < shard->admission.reserved)
            welcome(shard, hello);
        /* else: more than a block's worth waited, or it wants a later one; it says hello again */
        dp_waiting_free(&hello);
    }
    dp_io_job_free(job);
}

static enum dp_status reserve_streams(struct dp_shard *shard, uint64_t stream)
{
    DP_ASSERT(shard->reserving == 0 && stream >= shard->admission.reserved);
    uint64_t bound = stream + STREAM_BLOCK;
    enum dp_status st = dp_io_jobs_put_number(&shard->jobs, "streams", bound, streams_reserved, shard);
    shard->reserving = st == DP_OK ? bound : 0;
    return st;
}

void dp_shard_hello(struct dp_shard *shard, struct dp_waiting **waiting)
{
    struct dp_error err = {0};
    const struct dp_request *request = &(*waiting)->request;
    enum dp_status st = DP_OK;
    if (request->session == 0 || request->next_sequence == 0 || request->next_sequence == UINT64_MAX)
        st = dp_fail(&err, DP_INVALID,
                     "hello: session and next_sequence start at 1, and next_sequence ends below 2^64 - 1");
    else if (request->want_stream && shard->base.range.first != 0)
        st = dp_fail(&err, DP_INVALID, "hello: streams are given by shard 0, this is shard %" PRIu32,
                     shard->base.index);
    else if (shard->draining)
        st = dp_replies_stopping(&shard->replies, &err);
    else
        st = dp_admission_check_above(&shard->admission, request->stream_above, &err);
    uint64_t stream = stream_due(shard, request);
    /* As no push is taken, a stream may be given twice. */
    if (st == DP_OK && shard->options.read_only && stream >= shard->admission.reserved)
        dp_admission_reserve(&shard->admission, stream + STREAM_BLOCK);
    if (st == DP_OK && stream >= shard->admission.reserved) {
        if (shard->schedule.requests >= shard->options.requests_max)
            st = dp_fail_wait(&err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_QUEUE},
                              "shard %" PRIu32 " is busy", shard->base.index);
        else if (!shard->reserving && reserve_streams(shard, stream) != DP_OK)
            st = dp_fail_wait(&err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_QUEUE},
                              "shard %" PRIu32 ": its store is busy", shard->base.index);
        if (st == DP_OK) {
            dp_schedule_park_hello(&shard->schedule, waiting);
            return;
        }
    }
    if (st == DP_OK)
        welcome(shard, *waiting);
    else
        refuse(shard, *waiting, &err);
}

/* ---- positions */

/* Bit i: number + i was applied. */
static void look(const struct dp_shard *shard, const struct dp_request *request, char *bits,
                 struct dp_error *err)
{
    if (dp_admission_check(&shard->admission, request->stream, err) != DP_OK)
        return;
    for (uint32_t i = 0; i < request->numbers; i++) {
        enum dp_status before;
        enum dp_push_seen seen = dp_push_ids_look(shard->ids, request->stream, request->number + i, &before);
        if (seen == DP_PUSH_REPEATED)
            bits[i / 8] = (char)(bits[i / 8] | 1 << i % 8);
        if (seen == DP_PUSH_TOO_OLD)
            (void)dp_admission_too_old(&shard->admission, request->stream, err);
        if (seen == DP_PUSH_TOO_OLD || seen == DP_PUSH_ABOVE) /* so are all after it */
            return;
    }
}

void dp_shard_positions(struct dp_shard *shard, const struct dp_waiting *waiting, struct dp_error *err)
{
    const struct dp_request *request = &waiting->request;
    struct dp_asker asker = dp_asker_of(waiting);
    size_t bytes = (size_t)(request->numbers + 63) / 64 * 8;
    struct dp_frame bits = {0};
    asker.sequence = 0;
    if (dp_journaling_lost(&shard->journaling, err))
        return;
    if (shard->push_replies.positions == POSITIONS_MAX)
        (void)dp_fail_wait(err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_QUEUE},
                           "shard %" PRIu32 ": %u answers about positions wait for its journal",
                           shard->base.index, POSITIONS_MAX);
    else if (!(bits = dp_frame_new(bytes)).data)
        (void)dp_fail(err, DP_NOMEM, "shard %" PRIu32 ": no memory for an answer", shard->base.index);
    else
        look(shard, request, memset(bits.data, 0, bytes), err);
    if (err->status == DP_OK)
        dp_push_replies_hold_positions(&shard->push_replies, &asker, &bits);
    dp_frame_release(&bits);
    dp_push_replies_turn(&shard->push_replies);
}
