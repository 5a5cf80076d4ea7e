/* Blocked pulls: pulls that the consistency mode blocks until other members of the run have come as far.
 *     a pull's verdict is HELD -> add: it leaves its session's order -> HELD at once and every 250 ms, with the
 *     member that it waits for -> its verdict changes: back into its session | its deadline passes: TIMEOUT |
 *     drain: STOPPING
 * Why       The push that a pull waits for may come after it in the same session. So a blocked pull counts
 *           as done in its session's order. Blocked pulls have bounds of their own, so they use no space
 *           for pushes. A pull beyond these bounds gets AGAIN, and later requests go on.
 * Promise   A pull is blocked only once: its resend renews peer and deadline, and is answered HELD. Its
 *           session is not forgotten. The pull of a process that was replaced, or whose run is over, goes
 *           back to its session, where it is checked again.
 * Holds     count is the sum of its sessions' `held`; each pull here was HELD by `changes`, or `more` is set.
 * Thread    The shard's. Memory: the pulls. */
#ifndef DP_SHARD_BLOCKED_PULLS_H
#define DP_SHARD_BLOCKED_PULLS_H

#include "server/shard/replies.h"
#include "server/shard/schedule.h"
#include "server/steps/steps.h"

#define DP_HELD_MAX       4096u
#define DP_HELD_BYTES_MAX ((uint64_t)512 << 20)

struct dp_blocked_pulls {
    struct dp_shard_base *base;
    struct dp_steps *steps;
    const struct dp_replies *replies;
    struct dp_schedule *schedule;
    struct dp_sessions *sessions;
    uint32_t released_max; /* requests waiting in the schedule beyond which none goes back: room for others */
    struct dp_waiting *first, *last; /* by next, in the order in which they came */
    uint32_t count;
    uint64_t bytes;
    uint64_t changes; /* of steps, when the verdicts were looked at */
    bool more;        /* some may go back when there is room */
    uint64_t due_ns;  /* when the next HELD or TIMEOUT is due */
};

/* Takes over a pull that was taken out of its session, before it counts as done there. */
void dp_blocked_pulls_add(struct dp_blocked_pulls *held, struct dp_session *session,
                          struct dp_waiting **pull);
/* Whether it is a resend of one that is held, which lives on by it; freed then. For what is not new in its session: many may be
 * held. */
bool dp_blocked_pulls_renew(struct dp_blocked_pulls *held, const struct dp_session *session,
                            struct dp_waiting **resend);
/* stopping: why all are refused; else NULL. */
void dp_blocked_pulls_turn(struct dp_blocked_pulls *held, const struct dp_error *stopping);
/* Whether its next turn lets a pull go. */
static inline bool dp_blocked_pulls_goes_on(const struct dp_blocked_pulls *held)
{
    return held->first && (held->changes != held->steps->changes ||
                           (held->more && held->schedule->requests < held->released_max));
}
/* In how many ms, at least 1, its turn has something to say; UINT32_MAX: no pull is blocked. */
uint32_t dp_blocked_pulls_rest_ms(const struct dp_blocked_pulls *held);
void dp_blocked_pulls_clear(struct dp_blocked_pulls *held);

#endif
