/* Sessions: the clients a shard knows, and the requests of each that wait, in order.
 * Promise   At most DP_SESSIONS_MAX are kept; the one longest silent, with nothing waiting or held, makes room for
 *           a new one (its next request is answered SESSION, and it says hello).
 * Thread    The shard's. Memory: sessions and the waiting requests in them. */
#ifndef DP_SHARD_SESSIONS_H
#define DP_SHARD_SESSIONS_H

#include "common/model/stream.h"
#include "common/wire/request.h"
#include "server/cache/lookup.h"

#define DP_SESSIONS_MAX   (2 * DP_WORKERS_MAX) /* all of a run, and the processes that replace them */
#define DP_SESSION_WINDOW 64u                  /* requests of one session that wait at most */

/* A request that was received and is not answered yet. */
struct dp_waiting {
    struct dp_waiting *next; /* in its session */
    struct dp_peer peer;
    struct dp_message *message; /* what the request lends from */
    uint64_t deadline_ns;
    size_t bytes;
    uint64_t held_since_ns, told_ns; /* while it is held (blocked_pulls.h) */
    uint64_t held_ns;                /* in all, before */
    bool decoded;
    bool checked; /* all that cannot change while it waits was found valid, and is not checked again */
    uint64_t answer_bytes;         /* of a pull that was checked: the rows of its answer */
    enum dp_wait_reason waits_for; /* what it lacked when it was tried last */
    /* Not OK: the request broke the protocol (it is not decoded), or what it needs could not be read. */
    struct dp_error broken;
    struct dp_lookup lookup; /* pull, push */
    struct dp_request request;
};

struct dp_session {
    uint64_t id, stream, heard_ns;
    struct dp_peer peer; /* of its last request: the connection */
    uint64_t expected;   /* sequence number of the next new request */
    uint64_t done;       /* requests up to this sequence number were answered for good */
    struct dp_waiting *first, *last;
    uint32_t waiting;
    uint32_t held;             /* its pulls that a rule holds, outside its order (blocked_pulls.h) */
    enum dp_wait_reason waits; /* the queue that it is in (schedule.h) */
    bool parked;               /* the first one is not to be tried before it is woken */
    bool runnable;             /* in the run queue */
    struct dp_session *next_runnable, *next_waiting;
    char client[DP_CLIENT_NAME_MAX + 1];
};

_Static_assert(DP_SESSIONS_MAX >= 2 * DP_MEMBERS_MAX, "a dead member's held pull keeps its session");

struct dp_sessions;

enum dp_status dp_sessions_new(struct dp_sessions **out);
void dp_sessions_free(struct dp_sessions **sessions);
struct dp_session *dp_sessions_find(const struct dp_sessions *sessions, uint64_t id);
/* NULL: none could make room, or out of memory. */
struct dp_session *dp_sessions_add(struct dp_sessions *sessions, uint64_t id);
uint32_t dp_sessions_count(const struct dp_sessions *sessions);

void dp_waiting_free(struct dp_waiting **waiting);
void dp_session_append(struct dp_session *session, struct dp_waiting *waiting);
/* Whether it is a resend of a pull that waits, in a session that waits for its client to read: that one is answered, to this peer, by
 * this deadline; the resend is freed. A client that is slow sends again, and must not be sent everything twice. */
bool dp_session_renew(struct dp_session *session, struct dp_waiting **resend);
/* Unlinks the first; the caller's from now on. */
struct dp_waiting *dp_session_take_first(struct dp_session *session);

#endif
