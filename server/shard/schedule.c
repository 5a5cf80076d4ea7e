#include "server/shard/schedule.h"

#include "common/base/log.h"

#include <inttypes.h>

#define LATE_NS     UINT64_C(1000000)
#define CHECKED_MAX 64u /* of a queue, one by one: beyond that a turn would be longer by it */

/* A line for each reason to be parked. */
static const struct rule {
    bool known;
    bool hands_on;         /* when the first leaves the next is tried: what it needed may be there now */
    bool ends_late;        /* a deadline that passes wakes it; else its wake is a job's end, which comes */
    enum dp_status late;   /* what it hears then */
    const char *late_text; /* NULL: the common one */
    const char *woken_by;
} rules[DP_SCHEDULE_QUEUES] = {
    [DP_WAIT_STORE] = {.known = true,
                       .late = DP_TIMEOUT,
                       .woken_by =
                           "misses.c: its read, or where another reads its rows any read, was taken in"},
    [DP_WAIT_MARK] = {.known = true,
                      .late = DP_TIMEOUT,
                      .woken_by = "tables.c: the job with the table's mark"},
    [DP_WAIT_ROOM] = {.known = true,
                      .ends_late = true,
                      .late = DP_TIMEOUT,
                      .woken_by = "cache_budget.c, at the head: room was evicted, or something changed"},
    [DP_WAIT_DISK] =
        {.known = true,
         .hands_on = true,
         .ends_late = true,
         .late = DP_AGAIN,
         .late_text =
             "its journal's disk is slow: this push waited for it until its deadline, and was not applied",
         .woken_by = "journaling.c, the first: the disk took more, the journal failed, or a second passed"},
    [DP_WAIT_STEP] =
        {.known = true,
         .ends_late = true,
         .late = DP_TIMEOUT,
         .woken_by = "close.c: the step was closed, its close became durable, or it cannot be closed now"},
    [DP_WAIT_STREAMS] = {.known = true,
                         .late = DP_TIMEOUT,
                         .woken_by = "hello.c: the job that reserves streams"},
    [DP_WAIT_UNREAD] = {.known = true,
                        .ends_late = true,
                        .late = DP_TIMEOUT,
                        .woken_by = "turn.c: clients have read, the shard drains or has many requests"},
};

void dp_schedule_add(struct dp_schedule *schedule, const struct dp_waiting *waiting)
{
    schedule->requests++;
    schedule->bytes += waiting->bytes;
}

void dp_schedule_remove(struct dp_schedule *schedule, const struct dp_waiting *waiting)
{
    DP_ASSERT(schedule->requests > 0 && schedule->bytes >= waiting->bytes);
    schedule->requests--;
    schedule->bytes -= waiting->bytes;
    DP_ASSERT(schedule->requests > 0 || schedule->bytes == 0);
}

/* ---- the run queue */

void dp_schedule_run(struct dp_schedule *schedule, struct dp_session *session)
{
    if (session->runnable || session->parked || !session->first)
        return;
    session->runnable = true;
    session->next_runnable = NULL;
    *(schedule->run_last ? &schedule->run_last->next_runnable : &schedule->run_first) = session;
    schedule->run_last = session;
    DP_ASSERT(schedule->run_first && schedule->requests > 0);
}

struct dp_session *dp_schedule_take(struct dp_schedule *schedule)
{
    struct dp_session *session = schedule->run_first;
    if (!session)
        return NULL;
    DP_ASSERT(session->runnable && !session->parked && session->first);
    schedule->run_first = session->next_runnable;
    if (!schedule->run_first)
        schedule->run_last = NULL;
    session->runnable = false;
    return session;
}

/* ---- waiting */

void dp_schedule_leave(struct dp_schedule *schedule, struct dp_session *session)
{
    enum dp_wait_reason reason = session->waits;
    struct dp_schedule_queue *queue = &schedule->queue[reason];
    struct dp_session **link = &queue->first, *before = NULL;
    DP_ASSERT(!session->parked);
    if (reason == DP_WAIT_NONE)
        return;
    for (; *link != session; link = &(*link)->next_waiting)
        before = *link;
    *link = session->next_waiting;
    queue->last = queue->last == session ? before : queue->last;
    DP_ASSERT(queue->count > 0);
    queue->count--;
    DP_ASSERT((queue->count == 0) == !queue->first && (queue->count == 0) == !queue->last);
    session->waits = DP_WAIT_NONE;
    if (rules[reason].hands_on && !before)
        dp_schedule_wake_first(schedule, reason);
}

void dp_schedule_park(struct dp_schedule *schedule, struct dp_session *session, enum dp_wait_reason reason)
{
    DP_ASSERT(rules[reason].known && session->first && !session->runnable && !session->parked);
    if (session->waits != reason) {
        struct dp_schedule_queue *queue = &schedule->queue[reason];
        dp_schedule_leave(schedule, session);
        session->waits = reason;
        session->next_waiting = NULL;
        *(queue->last ? &queue->last->next_waiting : &queue->first) = session;
        queue->last = session;
        queue->count++;
    }
    session->parked = true;
    schedule->parked++;
    schedule->queue[reason].parked++;
    DP_ASSERT(schedule->queue[reason].first && schedule->queue[reason].count <= schedule->requests);
}

void dp_schedule_wake(struct dp_schedule *schedule, struct dp_session *session)
{
    DP_ASSERT(session->waits != DP_WAIT_NONE);
    if (!session->parked)
        return; /* it is tried just now, or will be */
    session->parked = false;
    DP_ASSERT(schedule->parked > 0 && schedule->queue[session->waits].parked > 0);
    schedule->parked--;
    schedule->queue[session->waits].parked--;
    dp_schedule_run(schedule, session);
}

void dp_schedule_wake_first(struct dp_schedule *schedule, enum dp_wait_reason reason)
{
    if (schedule->queue[reason].first)
        dp_schedule_wake(schedule, schedule->queue[reason].first);
}

void dp_schedule_wake_late(struct dp_schedule *schedule, uint64_t now_ns)
{
    if (now_ns - schedule->late_ns < LATE_NS)
        return;
    schedule->late_ns = now_ns;
    for (uint32_t reason = 0; reason < DP_SCHEDULE_QUEUES && schedule->parked > 0; reason++) {
        struct dp_session *session = rules[reason].ends_late ? schedule->queue[reason].first : NULL;
        for (; session; session = session->next_waiting)
            if (now_ns > session->first->deadline_ns)
                dp_schedule_wake(schedule, session);
    }
}

enum dp_status dp_schedule_late(enum dp_wait_reason reason, uint32_t shard, struct dp_error *err)
{
    const struct dp_wait wait = {.reason = reason == DP_WAIT_NONE ? DP_WAIT_QUEUE : reason};
    const struct rule *rule = &rules[reason];
    DP_ASSERT(rule->known || reason == DP_WAIT_NONE);
    if (rule->late_text)
        return dp_fail_wait(err, rule->late, wait, "shard %" PRIu32 ": %s", shard, rule->late_text);
    return dp_fail_wait(err, DP_TIMEOUT, wait,
                        "the request's deadline passed on shard %" PRIu32 " while it waited for %s", shard,
                        dp_wait_text(wait.reason));
}

/* ---- hellos */

void dp_schedule_park_hello(struct dp_schedule *schedule, struct dp_waiting **hello)
{
    struct dp_waiting *waiting = *hello;
    *hello = NULL;
    waiting->next = NULL;
    *(schedule->hello_last ? &schedule->hello_last->next : &schedule->hello_first) = waiting;
    schedule->hello_last = waiting;
    dp_schedule_add(schedule, waiting);
}

struct dp_waiting *dp_schedule_take_hello(struct dp_schedule *schedule)
{
    struct dp_waiting *waiting = schedule->hello_first;
    if (!waiting)
        return NULL;
    schedule->hello_first = waiting->next;
    if (!schedule->hello_first)
        schedule->hello_last = NULL;
    waiting->next = NULL;
    dp_schedule_remove(schedule, waiting);
    return waiting;
}

void dp_schedule_clear(struct dp_schedule *schedule)
{
    for (struct dp_waiting *hello; (hello = dp_schedule_take_hello(schedule));)
        dp_waiting_free(&hello);
}

/* ---- what holds */

static void must_wake(enum dp_wait_reason reason, bool will_wake)
{
    if (!will_wake)
        dp_log(DP_LOG_ERROR,
               "internal error: requests wait for %s, and nothing is under way that wakes them (%s)",
               dp_wait_text(reason), rules[reason].woken_by);
    DP_ASSERT(will_wake);
}

static void check_each(const struct dp_schedule_queue *queue, enum dp_wait_reason reason)
{
    uint32_t count = 0, parked = 0;
    for (const struct dp_session *session = queue->first; session; session = session->next_waiting) {
        DP_ASSERT(session->waits == reason && session->first);
        DP_ASSERT(session->parked != session->runnable);
        DP_ASSERT(session->next_waiting || session == queue->last);
        parked += session->parked;
        count++;
    }
    DP_ASSERT(count == queue->count && parked == queue->parked);
}

void dp_schedule_check(const struct dp_schedule *schedule, const bool will_wake[DP_SCHEDULE_QUEUES])
{
    uint32_t parked = 0;
    for (uint32_t reason = 0; reason < DP_SCHEDULE_QUEUES; reason++) {
        const struct dp_schedule_queue *queue = &schedule->queue[reason];
        if (queue->count <= CHECKED_MAX)
            check_each(queue, (enum dp_wait_reason)reason);
        if (queue->count > 0 && queue->parked == queue->count)
            must_wake((enum dp_wait_reason)reason, will_wake[reason]);
        parked += queue->parked;
    }
    DP_ASSERT(parked == schedule->parked);
    if (schedule->hello_first)
        must_wake(DP_WAIT_STREAMS, will_wake[DP_WAIT_STREAMS]);
}
