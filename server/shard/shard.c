/* Opening, closing, and taking messages in. */
#include "common/base/memory.h"
#include "server/durable/durable_marks.h"
#include "server/durable/recovery.h"
#include "server/shard/requests.h"
#include "server/shard/shard_state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS_MAX 1024u
#define TURN_ROWS    8192u /* of reads that are done, in one turn */

/* ---- reports of the nouns below */

/* The request whose read failed hears why; others that waited for the same rows ask for themselves. */
static void read_ended(void *context, const struct dp_io_job *read, const struct dp_error *err)
{
    struct dp_shard *shard = context;
    for (struct dp_session *session = dp_schedule_first(&shard->schedule, DP_WAIT_STORE); session;
         session = session->next_waiting) {
        struct dp_waiting *first = session->first;
        if (!session->parked || (first->lookup.read && first->lookup.read != read))
            continue; /* its own is still to come */
        if (err->status != DP_OK && first->lookup.read == read)
            first->broken = *err;
        first->lookup.read = NULL;
        dp_schedule_wake(&shard->schedule, session);
    }
}

static void journal_lost(void *context)
{
    struct dp_shard *shard = context;
    dp_push_replies_refuse_all(&shard->push_replies);
    dp_cache_budget_set_changed(
        &shard->budget); /* requests that wait for clean rows hear that there will be none */
    dp_schedule_wake_first(&shard->schedule,
                           DP_WAIT_DISK); /* the first is refused and makes way for the next */
}

static const struct dp_error *cleaner_refuses(void *context)
{
    const struct dp_shard *shard = context;
    return dp_write_back_refuses(&shard->write_back);
}

static bool cleaner_is_busy(void *context)
{
    const struct dp_shard *shard = context;
    return dp_write_back_is_busy(&shard->write_back);
}

/* ---- opening and closing */

/* The nouns of members and steps. */
static void join_steps(struct dp_shard *shard)
{
    dp_histogram_init_numbers(&shard->histogram[DP_MEASURE_STALENESS], "staleness");
    dp_histogram_init_numbers(&shard->histogram[DP_MEASURE_GAP], "clock_gap");
    dp_histogram_init_shares(&shard->histogram[DP_MEASURE_CHANGED], "changed");
    const struct dp_shard_options *o = &shard->options;
    struct dp_shard_base *base = &shard->base;
    shard->held = (struct dp_blocked_pulls){.base = base,
                                            .steps = &shard->steps,
                                            .replies = &shard->replies,
                                            .schedule = &shard->schedule,
                                            .sessions = shard->sessions,
                                            .released_max = (o->requests_max + 1) / 2};
    shard->close = (struct dp_close){.base = base,
                                     .tables = &shard->tables,
                                     .misses = &shard->misses,
                                     .schedule = &shard->schedule,
                                     .steps = &shard->steps,
                                     .kept = &shard->kept,
                                     .journaling = &shard->journaling,
                                     .read_only = o->read_only};
}

static void join_cut(struct dp_shard *shard)
{
    const struct dp_shard_options *o = &shard->options;
    shard->cut = (struct dp_cut){.write_back = &shard->write_back};
    shard->cut_requests = (struct dp_cut_requests){.base = &shard->base,
                                                   .replies = &shard->replies,
                                                   .cut = &shard->cut,
                                                   .write_back = &shard->write_back,
                                                   .journaling = &shard->journaling,
                                                   .steps = &shard->steps,
                                                   .copier = o->copier,
                                                   .store = o->store_id,
                                                   .read_only = o->read_only};
}

static void join(struct dp_shard *shard)
{
    const struct dp_shard_options *o = &shard->options;
    struct dp_shard_base *base = &shard->base;
    struct dp_io_jobs *jobs = &shard->jobs;
    struct dp_cached_tables *tables = &shard->tables;
    base->index = o->index;
    base->shards = o->shards;
    base->range = dp_range_of_shard(o->index, o->shards);
    base->clock = o->clock;
    jobs->store = o->store;
    shard->budget = (struct dp_cache_budget){.base = base,
                                             .tables = tables,
                                             .cleaner = {cleaner_refuses, cleaner_is_busy, shard},
                                             .bytes = o->cache_bytes};
    shard->misses = (struct dp_misses){.base = base,
                                       .tables = tables,
                                       .jobs = jobs,
                                       .budget = &shard->budget,
                                       .turn_rows = o->taken_rows_max ? o->taken_rows_max : TURN_ROWS,
                                       .ended = read_ended,
                                       .context = shard};
    shard->journaling =
        (struct dp_journaling){.base = base, .jobs = jobs, .lost = journal_lost, .context = shard};
    shard->write_back = (struct dp_write_back){.base = base,
                                               .tables = tables,
                                               .jobs = jobs,
                                               .budget = &shard->budget,
                                               .journaling = &shard->journaling,
                                               .ids = shard->ids,
                                               .steps = &shard->steps,
                                               .kept = &shard->kept};
    shard->count = (struct dp_row_count){.base = base, .tables = tables, .jobs = jobs};
    shard->replies = (struct dp_replies){.base = base,
                                         .ids = shard->ids,
                                         .cluster = o->cluster,
                                         .generation = o->generation,
                                         .history = o->history,
                                         .reply = o->reply,
                                         .context = o->reply_context};
    shard->push_replies =
        (struct dp_push_replies){.replies = &shard->replies, .journaling = &shard->journaling};
    shard->admission = (struct dp_admission){.base = base, .ids = shard->ids, .wall = &shard->options.wall};
    join_steps(shard);
    join_cut(shard);
}

static enum dp_status load(struct dp_shard *shard, struct dp_error *err)
{
    const struct dp_durable_marks_into into = {&shard->tables, shard->ids, &shard->steps};
    struct dp_durable_marks marks;
    enum dp_status st = dp_durable_marks_load(shard->jobs.store, shard->options.salt, shard->base.range,
                                              dp_shard_now(&shard->base), &into, &marks, err);
    if (st != DP_OK)
        return st;
    shard->journaling.incarnation = marks.incarnation;
    shard->journaling.released = marks.released;
    dp_journaling_start(&shard->journaling, marks.lsn);
    dp_write_back_start(&shard->write_back, marks.lsn);
    dp_admission_start(&shard->admission, marks.streams);
    return DP_OK;
}

static enum dp_status recover(struct dp_shard *shard, struct dp_error *err)
{
    const struct dp_shard_options *o = &shard->options;
    const struct dp_recovery_options recovery = {.write_back = &shard->write_back,
                                                 .count = &shard->count,
                                                 .journal = &o->journal,
                                                 .recovers = o->recovers,
                                                 .read_only = o->read_only,
                                                 .secret = o->salt};
    enum dp_status st = DP_OK;
    if (o->recovers)
        dp_row_count_forget(&shard->count);
    if (o->read_only)
        dp_write_back_refuse_all(&shard->write_back);
    /* A store that was closed cleanly has all that was pushed: a reader needs no journal. */
    if (o->journaled && (o->recovers || !o->read_only))
        st = dp_recovery_run(&recovery, err);
    if (st == DP_OK)
        st = dp_row_count_start_if_due(&shard->count, err);
    dp_row_count_say(&shard->count);
    return st;
}

/* A shard that could not be opened is closed: nothing of it may be at the store any more. */
static void end_jobs(struct dp_shard *shard)
{
    dp_row_count_stop(&shard->count);
    while (shard->jobs.under_way > 0)
        dp_io_jobs_wait(&shard->jobs);
}

enum dp_status dp_shard_open(const struct dp_shard_options *options, struct dp_shard **out,
                             struct dp_error *err)
{
    DP_ASSERT(options->index < options->shards && options->store && options->reply);
    struct dp_shard *shard = calloc(1, sizeof *shard);
    if (!shard)
        return dp_fail(err, DP_NOMEM, "shard %" PRIu32, options->index);
    shard->options = *options;
    if (shard->options.requests_max == 0)
        shard->options.requests_max = REQUESTS_MAX;
    shard->opened_ns = dp_clock_ns(&options->clock);
    enum dp_status st = dp_sessions_new(&shard->sessions);
    if (st == DP_OK)
        st = dp_push_ids_new(&shard->ids);
    join(shard);
    shard->scratch = dp_alloc_aligned(DP_TABLE_DIM_MAX * sizeof(float));
    if (st != DP_OK || !shard->scratch) {
        st = dp_fail(err, DP_NOMEM, "shard %" PRIu32 ": sessions and push ids", options->index);
        goto done;
    }
    st = load(shard, err);
    if (st == DP_OK)
        st = recover(shard, err);
    if (st != DP_OK)
        st = dp_wrap(err, st, "shard %" PRIu32, options->index);
    else if (options->recovered)
        st = options->recovered(options->recovered_context, err);
    if (st != DP_OK)
        end_jobs(shard);
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
    struct dp_shard *s = *shard;
    dp_misses_clear(&s->misses);
    dp_io_jobs_clear(&s->jobs);
    dp_schedule_clear(&s->schedule);
    dp_blocked_pulls_clear(&s->held);
    dp_close_clear(&s->close);
    dp_cut_requests_clear(&s->cut_requests);
    dp_cut_clear(&s->cut);
    dp_journaling_clear(&s->journaling);
    dp_push_replies_clear(&s->push_replies);
    dp_write_back_clear(&s->write_back);
    dp_step_buffer_clear(&s->kept);
    dp_steps_clear(&s->steps);
    dp_cached_tables_clear(&s->tables);
    dp_push_ids_free(&s->ids);
    dp_sessions_free(&s->sessions);
    free(s->scratch);
    free(s);
    *shard = NULL;
}

/* ---- messages */

/* The header's checks, before the body is looked at. */
static enum dp_status check_cluster(const struct dp_shard *shard, const struct dp_request *request,
                                    struct dp_error *err)
{
    if (request->cluster != shard->options.cluster)
        return dp_fail(err, DP_GENERATION,
                       "this server belongs to cluster %016" PRIx64 ", the request names %016" PRIx64
                       ": the two read different cluster files",
                       shard->options.cluster, request->cluster);
    if (request->shard != 0 && request->shard != shard->base.index + 1)
        return dp_fail_wait(
            err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_PLACE, .subject = shard->base.index},
            "this is shard %" PRIu32 ", the request is for shard %" PRIu32 ", which was here before",
            shard->base.index, request->shard - 1);
    /* A client that does not know the generation yet may ask for it, and for what changes nothing. */
    bool asks = request->generation == 0 && request->history == 0 &&
                (request->kind == DP_REQUEST_HELLO || request->kind == DP_REQUEST_STATUS);
    if (asks ||
        (request->generation == shard->options.generation && request->history == shard->options.history))
        return DP_OK;
    return dp_fail(err, DP_GENERATION,
                   "shard %" PRIu32 " is at generation %" PRIu64 " (history %016" PRIx64
                   "), the request at %" PRIu64 " (history %016" PRIx64
                   "): the cluster was restored since this client opened; open it again",
                   shard->base.index, shard->options.generation, shard->options.history, request->generation,
                   request->history);
}

/* A session's next request in its order, or a resend of an earlier one; else what to answer. *sequence: the
 * expected. */
static enum dp_status check_order(struct dp_shard *shard, const struct dp_request *request,
                                  struct dp_session *session, struct dp_error *err)
{
    if (!session)
        return dp_fail(err, DP_SESSION, "session unknown to shard %" PRIu32 ": say hello first",
                       shard->base.index);
    if (shard->draining)
        return dp_replies_stopping(&shard->replies, err);
    if (request->sequence == UINT64_MAX)
        return dp_fail(err, DP_INVALID, "there is no number after %" PRIu64 ": start another session",
                       request->sequence);
    if (request->sequence > session->expected)
        return dp_fail(err, DP_ORDER, "request %" PRIu64 " came before request %" PRIu64, request->sequence,
                       session->expected);
    if (session->waiting >= DP_SESSION_WINDOW) /* more: pulls that were held came back */
        return dp_fail_wait(err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_QUEUE},
                            "%u requests of this session wait already", DP_SESSION_WINDOW);
    return DP_OK;
}

static enum dp_status check_room(const struct dp_shard *shard, size_t bytes, struct dp_error *err)
{
    if (shard->schedule.requests >= shard->options.requests_max ||
        (shard->schedule.requests > 0 && shard->schedule.bytes + bytes > DP_SHARD_WAITING_MAX))
        return dp_fail_wait(err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_QUEUE},
                            "shard %" PRIu32 " has %" PRIu32 " requests waiting", shard->base.index,
                            shard->schedule.requests);
    return DP_OK;
}

static void admit(struct dp_shard *shard, struct dp_session *session, struct dp_waiting *waiting)
{
    dp_schedule_add(&shard->schedule, waiting);
    if (waiting->request.sequence == session->expected)
        session->expected++;
    dp_session_append(session, waiting);
    dp_schedule_run(&shard->schedule, session);
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

/* NULL: there is no memory, or no peer that could be answered. */
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
        DP_COUNT(&shard->base.counters, requests_unreadable, 1);
    return waiting;
}

/* A request without a place in a session's order. */
static void do_at_once(struct dp_shard *shard, struct dp_waiting *waiting)
{
    struct dp_error err = {0};
    enum dp_request_kind kind = waiting->request.kind;
    if (kind == DP_REQUEST_HELLO)
        dp_shard_hello(shard, &waiting);
    else if (kind == DP_REQUEST_STATUS)
        dp_shard_status(shard, waiting);
    else if (kind == DP_REQUEST_POSITIONS_GET && shard->draining)
        (void)dp_replies_stopping(&shard->replies, &err);
    else if (kind == DP_REQUEST_POSITIONS_GET)
        dp_shard_positions(shard, waiting, &err);
    else if (kind == DP_REQUEST_VIEW_PUT && shard->draining)
        (void)dp_replies_stopping(&shard->replies, &err);
    else if (kind == DP_REQUEST_VIEW_PUT && shard->options.read_only)
        (void)dp_fail(&err, DP_UNSUPPORTED,
                      "shard %" PRIu32 " serves its store read-only: it takes no training",
                      shard->base.index);
    else if (kind == DP_REQUEST_VIEW_PUT)
        dp_shard_put_view(shard, waiting, &err);
    else if (kind == DP_REQUEST_CHECKPOINT)
        dp_cut_requests_do(&shard->cut_requests, waiting, shard->draining, &err);
    else
        (void)dp_fail(&err, DP_UNSUPPORTED, "notes are kept by the control socket of the first server");
    if (err.status != DP_OK) {
        struct dp_asker to = dp_asker_of(waiting);
        to.sequence = 0;
        dp_replies_refuse(&shard->replies, &to, &err);
    }
    dp_waiting_free(&waiting);
}

/* A connection has a routing id of its own, which the socket draws. */
static void heard(struct dp_shard *shard, struct dp_session *session, const struct dp_peer *from,
                  uint64_t now)
{
    session->heard_ns = now;
    if (session->peer.size == from->size && memcmp(session->peer.id, from->id, from->size) == 0)
        return;
    if (session->peer.size > 0)
        DP_COUNT(&shard->base.counters, reconnects, 1);
    session->peer = *from;
}

void dp_shard_receive(struct dp_shard *shard, const struct dp_peer *from, struct dp_message **message)
{
    DP_COUNT(&shard->base.counters, requests_received, 1);
    struct dp_waiting *waiting = decode(shard, from, message);
    if (!waiting)
        return;
    const struct dp_request *request = &waiting->request;
    uint64_t now = dp_shard_now(&shard->base);
    waiting->deadline_ns = now + (uint64_t)request->timeout_ms * 1000000u;
    struct dp_session *session = dp_sessions_find(shard->sessions, request->session);
    if (session)
        heard(shard, session, from, now);
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
        struct dp_asker to = dp_asker_of(waiting);
        to.sequence = session ? session->expected : 0;
        dp_replies_refuse(&shard->replies, &to, &err);
        dp_waiting_free(&waiting);
    } else if (sequenced) {
        if (request->sequence == session->expected ||
            (!dp_blocked_pulls_renew(&shard->held, session, &waiting) &&
             !dp_session_renew(session, &waiting)))
            admit(shard, session, waiting);
    } else {
        do_at_once(shard, waiting);
    }
}

uint32_t dp_shard_rest_ms(const struct dp_shard *shard)
{
    uint32_t held_ms = dp_blocked_pulls_rest_ms(&shard->held), close_ms = dp_close_rest_ms(&shard->close);
    uint32_t cut_ms = dp_cut_requests_rest_ms(&shard->cut_requests);
    held_ms = held_ms < cut_ms ? held_ms : cut_ms;
    return held_ms < close_ms ? held_ms : close_ms;
}

/* ---- its end */

void dp_shard_drain(struct dp_shard *shard)
{
    shard->draining = true;
    dp_row_count_stop(&shard->count);
}

bool dp_shard_is_quiet(const struct dp_shard *shard)
{
    return shard->draining && shard->schedule.requests == 0 && shard->held.count == 0 &&
           shard->push_replies.count == 0 && !dp_close_is_coming(&shard->close);
}

enum dp_status dp_shard_drained(const struct dp_shard *shard, struct dp_error *err)
{
    const struct dp_write_back *w = &shard->write_back;
    const struct dp_error *why = w->failed.status != DP_OK ? &w->failed : &shard->journaling.failed;
    if (!shard->draining || shard->schedule.requests > 0 || shard->held.count > 0 ||
        shard->jobs.under_way > 0 || shard->misses.untaken > 0 ||
        dp_cut_requests_is_busy(&shard->cut_requests) || shard->cut.number > 0)
        return DP_AGAIN;
    if (shard->options.read_only)
        return DP_OK; /* there is nothing to write */
    if (why->status != DP_OK) {
        struct dp_error text = *why;
        (void)dp_wrap(&text, text.status, "shard %" PRIu32 " could not write its rows back",
                      shard->base.index);
        if (err)
            *err = text;
        return text.status;
    }
    DP_ASSERT(!w->last_done || dp_write_back_has_all(w));
    return w->last_done ? DP_OK : DP_AGAIN;
}

bool dp_shard_keeps_journal(const struct dp_shard *shard)
{
    return !shard->options.read_only && shard->write_back.stored_lsn < shard->journaling.lsn;
}

enum dp_status dp_shard_end_journal(struct dp_shard *shard, struct dp_error *err)
{
    DP_ASSERT(dp_shard_drained(shard, NULL) == DP_OK && !dp_shard_keeps_journal(shard));
    enum dp_status st = dp_journaling_end(&shard->journaling, err);
    return st == DP_OK ? st : dp_wrap(err, st, "shard %" PRIu32, shard->base.index);
}
