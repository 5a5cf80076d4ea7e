/* Schedule: whose request is done next, and which requests wait for what.
 *     admitted -> run -> (done: the session's next) | park(reason) -> wake -> run -> ...
 * Reasons   A request in a session's order is parked for a reason. Each reason has a line in rules[]
 *           (schedule.c): the order in which waiting sessions are tried, and the answer when a deadline
 *           passes. A hello that waits for streams has no session yet: it waits in a queue of its own. To
 *           add a reason, add a line in common/base/wait.h, one in rules[] and one in will_wake() (turn.c:
 *           why waiting sessions will be woken). Call the verbs below where the wait begins and ends.
 * Promise   One request of a session is parked or being done at a time. Requests that wait for the same thing wait
 *           in the order in which they came; one that is tried again and waits for the same keeps its place.
 * Holds     A session is in the queue of `session->waits` or, with DP_WAIT_NONE, in none; one that is parked is in a
 *           queue and not in the run queue. requests = those of all sessions, and hellos, that are not answered.
 *           Where all sessions of a queue are parked, something will wake them (dp_schedule_check, each turn).
 * Thread    The shard's. */
#ifndef DP_SHARD_SCHEDULE_H
#define DP_SHARD_SCHEDULE_H

#include "server/shard/sessions.h"

#define DP_SCHEDULE_QUEUES (DP_WAIT_UNREAD + 1)

struct dp_schedule {
    struct dp_schedule_queue {
        struct dp_session *first, *last; /* by next_waiting */
        uint32_t count, parked;
    } queue[DP_SCHEDULE_QUEUES];                 /* by reason */
    uint32_t parked;                             /* sessions */
    uint64_t late_ns;                            /* when deadlines were looked at */
    struct dp_waiting *hello_first, *hello_last; /* that wait for streams, by next */
    struct dp_session *run_first, *run_last;     /* by next_runnable */
    uint32_t requests;
    uint64_t bytes;
};

/* A request waits from now on; it was answered. */
void dp_schedule_add(struct dp_schedule *schedule, const struct dp_waiting *waiting);
void dp_schedule_remove(struct dp_schedule *schedule, const struct dp_waiting *waiting);

/* Its first request is to be tried, unless it has none, is parked, or waits for its turn already. */
void dp_schedule_run(struct dp_schedule *schedule, struct dp_session *session);
/* The next whose first request is to be tried. NULL: none. */
struct dp_session *dp_schedule_take(struct dp_schedule *schedule);
/* Its first request was tried and waits for `reason`. */
void dp_schedule_park(struct dp_schedule *schedule, struct dp_session *session, enum dp_wait_reason reason);
/* Its first request was tried and waits for nothing: it leaves its queue. */
void dp_schedule_leave(struct dp_schedule *schedule, struct dp_session *session);
/* It is to be tried again; it keeps its place until then. */
void dp_schedule_wake(struct dp_schedule *schedule, struct dp_session *session);
static inline struct dp_session *dp_schedule_first(const struct dp_schedule *schedule,
                                                   enum dp_wait_reason reason)
{
    return schedule->queue[reason].first;
}
/* No request that waits for it came before this one. */
static inline bool dp_schedule_is_first(const struct dp_schedule *schedule, enum dp_wait_reason reason,
                                        const struct dp_waiting *waiting)
{
    const struct dp_session *first = schedule->queue[reason].first;
    return !first || first->first == waiting;
}
void dp_schedule_wake_first(struct dp_schedule *schedule, enum dp_wait_reason reason);
/* Requests whose deadline has passed are tried next and hear so (dp_schedule_late), unless their wait ends by
 * itself. Looks once a millisecond: many may wait, and a turn may be much shorter. */
void dp_schedule_wake_late(struct dp_schedule *schedule, uint64_t now_ns);
/* The answer to a request whose deadline passed while it waited for this; NONE: for its turn. */
enum dp_status dp_schedule_late(enum dp_wait_reason reason, uint32_t shard, struct dp_error *err);

/* A hello that is to be given a stream waits; takes it over. */
void dp_schedule_park_hello(struct dp_schedule *schedule, struct dp_waiting **hello);
/* The first of them; the caller's from now on, answered and freed by it. NULL: none. */
struct dp_waiting *dp_schedule_take_hello(struct dp_schedule *schedule);

/* Whether any session is parked. */
static inline bool dp_schedule_waits(const struct dp_schedule *schedule)
{
    return schedule->parked > 0 || schedule->hello_first;
}
/* At the end of a turn: asserts what stands under Holds; where many wait for the same, not of each of them. will_wake[reason]:
 * something is under way that will wake the sessions that wait for it. */
void dp_schedule_check(const struct dp_schedule *schedule, const bool will_wake[DP_SCHEDULE_QUEUES]);
/* Frees the hellos. */
void dp_schedule_clear(struct dp_schedule *schedule);

#endif
