/* Call: the work of a ticket: its shard requests under way and their results. A call is done when no shard
 * request waits, or at the first refusal. Its other shard requests go on, for the order of the session;
 * their answers are dropped. */
#ifndef DP_CLIENT_CALL_H
#define DP_CLIENT_CALL_H

#include "common/client/downpour.h"
#include "common/client/shard_request.h"

struct dp_call_pull {
    struct dp_pull_part part;
    uint32_t dim;
    uint64_t keys_version;
};

/* What shards answered that were given a view. */
struct dp_call_view {
    uint64_t acts_on; /* the greatest number that one acts on */
    bool begun;       /* to a member that returns: all have accepted its first step */
    uint64_t begin;   /* and the least one that all would accept */
};

struct dp_call {
    struct dp_call *next;
    uint64_t id;
    uint32_t waiting;     /* shard requests that are not answered */
    uint64_t deadline_ns; /* the latest that its owner named: goes into the requests */
    struct dp_error err;  /* of the first refusal; DP_OK: none */
    bool member;          /* on behalf of a member of a run */
    /* Takes in an answer of the kind that the shard request wants (message's frames 1.. are the sections'). May take
     * heap parts of the reply and the message over. Gives why the answer cannot be used. NULL: nothing to do.
     */
    enum dp_status (*take)(struct dp_call *call, uint32_t server, const struct dp_shard_request *to_shard,
                           struct dp_reply *reply, struct dp_message **message, struct dp_error *err);
    struct dp_outcome outcome;                /* push */
    struct dp_pulled_at *pulled_at;           /* pull: the caller's, or NULL */
    uint64_t *bits;                           /* pushed: the caller's */
    struct dp_checkpoint_answer *checkpoints; /* checkpoint: the caller's, of each shard */
    struct dp_call_view *view;                /* view: the caller's */
    struct dp_reply kept;                     /* status, notes, register: the answer, with its heap parts */
    struct dp_message *message;               /* notes, register */
    uint32_t parts;
    struct dp_call_pull part[];
};

static inline bool dp_call_done(const struct dp_call *call)
{
    return call->waiting == 0 || call->err.status != DP_OK;
}

#endif
