/* Opening, closing, and taking messages in. */
#include "server/shard/shard_inner.h"

#include "common/base/memory.h"

#include <inttypes.h>
#include <stdio.h>

enum dp_status dp_shard_open(const struct dp_shard_options *options, struct dp_shard **out,
                             struct dp_error *err)
{
    DP_ASSERT(options->index < options->shards && options->store && options->reply);
    struct dp_shard *shard = calloc(1, sizeof *shard);
    if (!shard)
        return dp_fail(err, DP_NOMEM, "shard %" PRIu32, options->index);
    shard->options = *options;
    if (shard->options.requests_max == 0)
        shard->options.requests_max = DP_SHARD_REQUESTS_MAX;
    if (shard->options.taken_rows_max == 0)
        shard->options.taken_rows_max = DP_SHARD_TAKEN_ROWS;
    shard->opened_ns = dp_clock_ns(&options->clock);
    shard->range = dp_range_of_shard(options->index, options->shards);
    enum dp_status st = dp_sessions_new(&shard->sessions);
    if (st == DP_OK)
        st = dp_push_ids_new(&shard->ids);
    shard->scratch = dp_alloc_aligned(DP_TABLE_DIM_MAX * sizeof(float));
    if (st != DP_OK || !shard->scratch) {
        st = dp_fail(err, DP_NOMEM, "shard %" PRIu32 ": sessions and push ids", options->index);
        goto done;
    }
    st = dp_shard_load_tables(shard, err);
    if (st == DP_OK)
        st = dp_shard_open_journal(shard, err);
done:
    if (st != DP_OK)
        dp_shard_close(&shard);
    *out = shard;
    return st;
}

void dp_shard_close(struct dp_shard **shard)
{
    if (!*shard)
        return;
    const struct dp_store *store = (*shard)->options.store;
    dp_shard_reads_clear(*shard);
    for (struct dp_store_job *job; (*shard)->jobs > 0 && (job = store->completed(store->self));) {
        (*shard)->jobs--;
        dp_shard_job_free(job->owner);
    }
    DP_ASSERT((*shard)->jobs == 0); /* who closes it has let the store come to an end */
    while ((*shard)->hello_first) {
        struct dp_waiting *hello = (*shard)->hello_first;
        (*shard)->hello_first = hello->next;
        dp_waiting_free(&hello);
    }
    dp_journal_close(&(*shard)->journal);
    dp_shard_job_free((*shard)->incarnation_again);
    dp_held_clear(&(*shard)->held);
    dp_shard_positions_clear(*shard);
    dp_shard_write_back_clear(*shard);
    dp_shard_free_tables(*shard);
    dp_push_ids_free(&(*shard)->ids);
    dp_sessions_free(&(*shard)->sessions);
    free((*shard)->rows);
    free((*shard)->scratch);
    free(*shard);
    *shard = NULL;
}

/* Who may speak to this shard at all: the header's checks, before the body is looked at. */
static enum dp_status check_cluster(const struct dp_shard *shard, const struct dp_request *request,
                                    struct dp_error *err)
{
    if (request->cluster != shard->options.cluster)
        return dp_fail(err, DP_GENERATION,
                       "this server belongs to cluster %016" PRIx64 ", the request names %016" PRIx64
                       ": the two read different cluster files",
                       shard->options.cluster, request->cluster);
    if (request->generation != shard->options.generation)
        return dp_fail(err, DP_GENERATION,
                       "this server is at generation %" PRIu64 " of its cluster, the request at %" PRIu64
                       ": start the client with today's cluster file",
                       shard->options.generation, request->generation);
    return DP_OK;
}

/* A session's next request in its order, or a resend of an earlier one; else what to answer. *sequence: the
 * expected. */
static enum dp_status check_order(struct dp_shard *shard, const struct dp_request *request,
                                  struct dp_session *session, struct dp_error *err)
{
    if (!session)
        return dp_fail(err, DP_SESSION, "session unknown to shard %" PRIu32 ": say hello first",
                       shard->options.index);
    if (shard->draining)
        return dp_shard_stopping(shard, err);
    if (request->sequence > session->expected)
        return dp_fail(err, DP_ORDER, "request %" PRIu64 " came before request %" PRIu64, request->sequence,
                       session->expected);
    if (session->waiting == DP_SHARD_WINDOW)
        return dp_fail(err, DP_AGAIN, "%u requests of this session wait already", DP_SHARD_WINDOW);
    return DP_OK;
}

static enum dp_status check_room(const struct dp_shard *shard, size_t bytes, struct dp_error *err)
{
    if (shard->waiting >= shard->options.requests_max ||
        (shard->waiting > 0 && shard->waiting_bytes + bytes > DP_SHARD_WAITING_MAX))
        return dp_fail(err, DP_AGAIN, "shard %" PRIu32 " has %" PRIu32 " requests waiting",
                       shard->options.index, shard->waiting);
    return DP_OK;
}

static void admit(struct dp_shard *shard, struct dp_session *session, struct dp_waiting *waiting)
{
    shard->waiting++;
    shard->waiting_bytes += waiting->bytes;
    if (waiting->request.sequence == session->expected)
        session->expected++;
    dp_session_append(session, waiting);
    dp_shard_make_runnable(shard, session);
}

/* Hello and status have no place in a session's order: they are done at once. A request that broke the
 * protocol keeps its place, so that its refusal, too, comes in order. */
static bool is_sequenced(const struct dp_waiting *waiting)
{
    enum dp_request_kind kind = waiting->request.kind;
    return waiting->broken.status != DP_OK
               ? waiting->request.sequence != 0
               : kind == DP_REQUEST_CREATE_TABLE || kind == DP_REQUEST_PULL || kind == DP_REQUEST_PUSH;
}

/* NULL: there is no memory, or nobody who could be answered. */
static struct dp_waiting *decode(struct dp_shard *shard, const struct dp_peer *from,
                                 struct dp_message **message)
{
    struct dp_waiting *waiting = calloc(1, sizeof *waiting);
    if (waiting) {
        waiting->peer = *from;
        waiting->message = *message;
        *message = NULL;
        waiting->bytes = dp_message_bytes(waiting->message);
        enum dp_status st = dp_request_decode(waiting->message, &waiting->request, &waiting->broken);
        DP_ASSERT(st == waiting->broken.status);
        waiting->decoded = st == DP_OK;
        if (st != DP_OK && waiting->request.id == 0)
            dp_waiting_free(&waiting);
    }
    dp_message_free(message);
    if (!waiting)
        DP_COUNT(&shard->counters, requests_unreadable, 1);
    return waiting;
}

void dp_shard_receive(struct dp_shard *shard, const struct dp_peer *from, struct dp_message **message)
{
    DP_COUNT(&shard->counters, requests_received, 1);
    struct dp_waiting *waiting = decode(shard, from, message);
    if (!waiting)
        return;
    const struct dp_request *request = &waiting->request;
    uint64_t now = dp_clock_ns(&shard->options.clock);
    waiting->deadline_ns = now + (uint64_t)request->timeout_ms * 1000000u;
    struct dp_session *session = dp_sessions_find(shard->sessions, request->session);
    if (session)
        session->heard_ns = now;
    bool sequenced = is_sequenced(waiting);
    struct dp_error err =
        waiting->broken.status != DP_OK && !sequenced ? waiting->broken : (struct dp_error){0};
    if (err.status == DP_OK)
        (void)check_cluster(shard, request, &err);
    if (err.status == DP_OK && sequenced)
        (void)check_order(shard, request, session, &err);
    if (err.status == DP_OK && sequenced)
        (void)check_room(shard, waiting->bytes, &err);
    if (err.status != DP_OK) {
        dp_shard_refuse(shard, from, request, session ? session->expected : 0, &err);
        dp_waiting_free(&waiting);
    } else if (sequenced) {
        admit(shard, session, waiting);
    } else {
        dp_shard_unsequenced(shard, waiting);
    }
}

uint32_t dp_shard_counters(const struct dp_shard *shard, struct dp_counter counters[DP_COUNTERS_MAX])
{
    struct dp_store_figures figures = {0};
    shard->options.store->figures(shard->options.store->self, &figures);
    uint32_t n = dp_counters_list(&shard->counters, counters);
    return n + dp_counters_list_store(&figures, counters + n);
}
