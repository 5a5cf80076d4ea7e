/* One turn of a shard: all that waited and all that the store completed.
 *     journal durable -> held answers -> completed jobs, some rows of reads -> held pulls -> each runnable session's requests,
 *     in its order -> commit of the journal -> a step of write-back                        (this order, always)
 * Why       Completed first: a parked request goes on before a later one of its session is looked at. One
 *           request of a session is parked or being done at a time: requests of a session take effect in
 *           the order of their sequence numbers. One commit, at the end: the turn's pushes share a sync.
 *           Nothing in a turn waits (blocking.h asserts it). Work that waits is done by jobs or by the
 *           commit thread. One exception: in mode process the journal is written, to the page cache, at the
 *           end.
 * Holds     A push that was answered OK was applied in full, and is durable (push_replies.h); a request that was not
 *           applied changed no row. */
#include "common/base/blocking.h"
#include "server/shard/requests.h"
#include "server/shard/sections.h"
#include "server/shard/shard_state.h"

#include <inttypes.h>

#define TURN_MAX   256u                 /* requests done in one turn */
#define TURN_BYTES ((uint64_t)64 << 20) /* gathered in one turn by its pulls */

/* ---- requests in order */

/* The caller's from now on; its rows would have to be looked for again. */
static struct dp_waiting *take_first(struct dp_shard *shard, struct dp_session *session)
{
    struct dp_waiting *waiting = dp_session_take_first(session);
    dp_cache_budget_forget(&shard->budget, &waiting->lookup);
    dp_schedule_remove(&shard->schedule, waiting);
    return waiting;
}

/* Before all that would leave a trace in the journal, as a refused push does. */
static enum dp_done refuse_change(const struct dp_shard *shard, const char *what, struct dp_error *err)
{
    (void)dp_fail(err, DP_UNSUPPORTED,
                  "shard %" PRIu32 " serves its store read-only: %s; start its server without --read-only",
                  shard->base.index, what);
    return DP_DONE_REFUSED;
}

static enum dp_done do_close(struct dp_shard *shard, struct dp_waiting *waiting)
{
    struct dp_error err = {0};
    if (!dp_close_may(&shard->close, waiting))
        return waiting->waits_for == DP_WAIT_NONE ? DP_DONE : DP_DONE_WAIT;
    if (dp_sections_wait(&shard->misses, &shard->schedule, waiting, &err))
        return DP_DONE_WAIT;
    return dp_close_do(&shard->close, waiting, &err);
}

/* err: why, where it is refused. */
static enum dp_done do_request(struct dp_shard *shard, struct dp_waiting *waiting,
                               struct dp_shard_answer *answer, struct dp_error *err)
{
    const struct dp_request *request = &waiting->request;
    if (request->kind == DP_REQUEST_CLOSE)
        return do_close(shard, waiting);
    if (shard->options.read_only && waiting->decoded && request->kind == DP_REQUEST_PUSH)
        return refuse_change(shard, "it takes no pushes", err);
    if (waiting->broken.status != DP_OK) {
        *err = waiting->broken;
        return waiting->decoded && request->kind == DP_REQUEST_PUSH
                   ? dp_shard_refuse_push(shard, waiting, err)
                   : DP_DONE_REFUSED;
    }
    if (dp_shard_now(&shard->base) > waiting->deadline_ns) {
        (void)dp_schedule_late(waiting->waits_for, shard->base.index, err);
        return DP_DONE_REFUSED;
    }
    switch (request->kind) {
    case DP_REQUEST_PULL:
        return dp_shard_pull(shard, waiting, answer, err);
    case DP_REQUEST_PUSH:
        return dp_shard_push(shard, waiting, err);
    default:
        DP_ASSERT(request->kind == DP_REQUEST_CREATE_TABLE);
        if (shard->options.read_only &&
            !dp_cached_tables_find(&shard->tables, dp_table_id(request->spec.name)))
            return refuse_change(shard, "it makes no tables", err);
        return dp_shard_create_table(shard, waiting, answer, err);
    }
}

/* All that is answered at once is answered here. */
static enum dp_done do_and_answer(struct dp_shard *shard, struct dp_waiting *waiting)
{
    struct dp_shard_answer answer;
    struct dp_error err = {0};
    enum dp_done done = do_request(shard, waiting, &answer, &err);
    DP_ASSERT(done != DP_DONE_REFUSED || err.status != DP_OK);
    struct dp_asker to = dp_asker_of(waiting);
    if (done == DP_DONE_ANSWER)
        dp_replies_send(&shard->replies, &to, &answer.reply, answer.frame, answer.frames);
    if (done != DP_DONE_REFUSED)
        return done == DP_DONE_ANSWER ? DP_DONE : done;
    dp_replies_refuse(&shard->replies, &to, &err);
    enum dp_status answered = dp_status_answered(err.status);
    /* The client sends both again: later requests must not overtake them. */
    return answered == DP_AGAIN || answered == DP_TIMEOUT ? DP_DONE_LATER : DP_DONE;
}

/* Reads the rows of the request after one that waits, where no request waits for room. */
static void read_ahead(struct dp_shard *shard, struct dp_waiting *waiting)
{
    if (!waiting || waiting->lookup.ahead || dp_schedule_first(&shard->schedule, DP_WAIT_ROOM) ||
        !waiting->decoded || waiting->broken.status != DP_OK ||
        (waiting->request.kind != DP_REQUEST_PULL && waiting->request.kind != DP_REQUEST_PUSH))
        return;
    /* A failure is answered when its turn comes. */
    if (dp_sections_check(&shard->base, &shard->tables, waiting, NULL) == DP_OK)
        dp_misses_read_ahead(&shard->misses, &waiting->lookup);
}

static void do_first(struct dp_shard *shard, struct dp_session *session)
{
    struct dp_waiting *first = session->first;
    uint64_t sequence = first->request.sequence;
    DP_ASSERT(session->done < session->expected && sequence < session->expected);
    enum dp_done done = do_and_answer(shard, first);
    DP_ASSERT(session->first == first && (done != DP_DONE_WAIT || first->waits_for != DP_WAIT_NONE));
    DP_ASSERT(done != DP_DONE_HELD || first->request.member.given);
    if (done == DP_DONE_WAIT) {
        /* What it waits for may need the room that is kept for it, or may take long. */
        if (first->waits_for == DP_WAIT_STEP || first->waits_for == DP_WAIT_UNREAD)
            dp_cache_budget_forget(&shard->budget, &first->lookup);
        else if (first->waits_for != DP_WAIT_ROOM)
            dp_cache_budget_unpark(&shard->budget, &first->lookup);
        else if (session->waits != DP_WAIT_ROOM)
            DP_COUNT(&shard->base.counters, requests_parked, 1);
        dp_schedule_park(&shard->schedule, session, first->waits_for);
        if (first->waits_for != DP_WAIT_ROOM && first->waits_for != DP_WAIT_DISK &&
            first->waits_for != DP_WAIT_UNREAD)
            read_ahead(shard, first->next);
        return;
    }
    dp_schedule_leave(&shard->schedule, session);
    if (done != DP_DONE_LATER || sequence <= session->done) {
        /* (The resend of an answered request is not part of the order below: it alone comes again.) */
        first = take_first(shard, session);
        if (done == DP_DONE_HELD)
            dp_blocked_pulls_add(&shard->held, session, &first);
        dp_waiting_free(&first);
        session->done = sequence > session->done ? sequence : session->done;
        return;
    }
    /* Later requests would overtake it: the client sends all of them again, in order. Answered ones are not among
     * them: a pull that was held comes back after later requests, and no client would send it again. */
    session->expected = sequence;
    for (uint32_t n = session->waiting; n > 0; n--) {
        first = take_first(shard, session);
        if (first->request.sequence > session->done) {
            dp_waiting_free(&first);
            continue;
        }
        dp_schedule_add(&shard->schedule, first);
        dp_session_append(session, first);
    }
}

/* ---- turns */

/* Once a ms, since a shard may have many tables. */
static void count_state(struct dp_shard *shard, uint64_t up_ms)
{
    struct dp_counters *c = &shard->base.counters;
    if (up_ms == atomic_load_explicit(&c->up_ms, memory_order_relaxed))
        return;
    DP_COUNT_SET(c, up_ms, up_ms);
    DP_COUNT_SET(c, rows_dirty, dp_cached_tables_dirty_rows(&shard->tables));
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
    DP_COUNT_MAX(c, turn_ns_max, ns);
}

/* Durable pushes are answered, and requests that wait for the disk go on. */
static void journal_turn(struct dp_shard *shard)
{
    struct dp_schedule *schedule = &shard->schedule;
    dp_journaling_turn(&shard->journaling);
    bool progressed = dp_journaling_take_progress(&shard->journaling);
    dp_push_replies_turn(&shard->push_replies);
    if (dp_schedule_first(schedule, DP_WAIT_DISK) &&
        (progressed || !dp_journaling_may_wait(&shard->journaling)))
        dp_schedule_wake_first(schedule, DP_WAIT_DISK);
}

/* The session that gets room next: the first that waits for it, or the urgent one where it is among them. */
static struct dp_session *room_head(const struct dp_shard *shard)
{
    struct dp_session *session = dp_schedule_first(&shard->schedule, DP_WAIT_ROOM);
    while (shard->budget.urgent && session && &session->first->lookup != shard->budget.urgent)
        session = session->next_waiting;
    return session;
}

static void room_turn(struct dp_shard *shard)
{
    struct dp_session *head = room_head(shard);
    bool anyone_waits = dp_schedule_first(&shard->schedule, DP_WAIT_ROOM) != NULL;
    if (dp_cache_budget_turn(&shard->budget, head ? &head->first->lookup : NULL, anyone_waits))
        dp_schedule_wake(&shard->schedule, head);
}

static bool goes_on(const struct dp_shard *shard)
{
    const struct dp_session *head = room_head(shard);
    return shard->schedule.run_first || shard->misses.first || dp_write_back_goes_on(&shard->write_back) ||
           (!shard->draining && dp_step_buffering_goes_on(shard)) || dp_blocked_pulls_goes_on(&shard->held) ||
           (shard->draining && shard->held.count > 0) ||
           dp_cache_budget_goes_on(&shard->budget, head ? &head->first->lookup : NULL);
}

/* For each reason in schedule.c's rules: whether something is under way that will wake its sessions. */
static void will_wake(const struct dp_shard *shard, bool out[DP_SCHEDULE_QUEUES])
{
    const struct dp_session *head = room_head(shard);
    const struct dp_cache_budget *budget = &shard->budget;
    bool reads = budget->reads_bytes > 0;
    out[DP_WAIT_STORE] = reads;
    out[DP_WAIT_MARK] = shard->jobs.under_way > 0;
    out[DP_WAIT_STREAMS] = shard->reserving > 0;
    out[DP_WAIT_DISK] = shard->journaling.behind_ns > 0;
    out[DP_WAIT_STEP] = dp_close_will_wake(&shard->close);
    out[DP_WAIT_UNREAD] = shard->options.may_reply != NULL; /* its caller turns when a client has read */
    /* It goes on by itself, or waits for a change: a read that ends, rows that become clean, the urgent one's end. */
    out[DP_WAIT_ROOM] = reads || budget->wants_clean || budget->urgent || shard->jobs.under_way > 0 ||
                        dp_write_back_is_busy(&shard->write_back) ||
                        dp_write_back_goes_on(&shard->write_back) ||
                        dp_cache_budget_goes_on(budget, head ? &head->first->lookup : NULL);
}

static void check(const struct dp_shard *shard)
{
    bool wakers[DP_SCHEDULE_QUEUES] = {false};
    if (!dp_schedule_waits(&shard->schedule))
        return;
    will_wake(shard, wakers);
    dp_schedule_check(&shard->schedule, wakers);
}

static void held_turn(struct dp_shard *shard)
{
    struct dp_error stopping = {0};
    if (shard->draining && shard->held.count > 0)
        (void)dp_replies_stopping(&shard->replies, &stopping);
    dp_blocked_pulls_turn(&shard->held, stopping.status != DP_OK ? &stopping : NULL);
}

static void do_requests(struct dp_shard *shard)
{
    shard->turn_bytes = 0;
    for (uint32_t done = 0; done < TURN_MAX && shard->turn_bytes < TURN_BYTES; done++) {
        struct dp_session *session = dp_schedule_take(&shard->schedule);
        if (!session)
            return;
        do_first(shard, session);
        dp_schedule_run(&shard->schedule, session);
        if (shard->push_replies.count > 0)
            journal_turn(shard); /* answers do not wait for the turn's end */
    }
}

bool dp_shard_turn(struct dp_shard *shard)
{
    uint64_t start = dp_shard_now(&shard->base);
    bool before = dp_blocking_set(false);
    journal_turn(shard);
    dp_schedule_wake_late(&shard->schedule, start);
    dp_write_back_set_quiet(&shard->write_back, dp_shard_is_quiet(shard));
    dp_io_jobs_take(&shard->jobs);
    dp_misses_turn(&shard->misses, shard->journaling.lsn);
    room_turn(shard);
    dp_shard_wake_unread(shard);
    dp_close_turn(&shard->close, shard->draining);
    held_turn(shard);
    if (!shard->draining)
        dp_step_buffering_turn(shard);
    do_requests(shard);
    dp_journaling_commit(&shard->journaling);
    journal_turn(shard);
    dp_write_back_set_quiet(&shard->write_back, dp_shard_is_quiet(shard));
    dp_write_back_turn(&shard->write_back);
    journal_turn(shard); /* its sync may have shown progress */
    dp_close_turn(&shard->close, shard->draining);
    dp_cut_requests_turn(&shard->cut_requests, shard->draining);
    dp_close_turn(&shard->close,
                  shard->draining); /* a close that has just become durable hides nothing any more */
    check(shard);
    (void)dp_blocking_set(before);
    dp_journaling_count(&shard->journaling, shard->write_back.marked_lsn);
    count_state(shard, (start - shard->opened_ns) / 1000000u);
    count_turn(&shard->base.counters, dp_shard_now(&shard->base) - start);
    /* Where nothing can change any more from here on, the last cycle begins: the answers of just now may have been the last. */
    dp_write_back_set_quiet(&shard->write_back, dp_shard_is_quiet(shard));
    return goes_on(shard);
}
