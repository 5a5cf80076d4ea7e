/* Replies: how a shard answers and refuses.
 * Promise   If this server lacks a resource, the request is not refused for good. The answer AGAIN names
 *           the reason, and the client retries until its deadline.
 * Thread    The shard's. Memory: a reply's frames are taken over. */
#ifndef DP_SHARD_REPLIES_H
#define DP_SHARD_REPLIES_H

#include "common/wire/reply.h"
#include "server/cache/shard_base.h"
#include "server/ids/push_ids.h"
#include "server/shard/sessions.h"

struct dp_replies {
    struct dp_shard_base *base;
    const struct dp_push_ids *ids;
    uint64_t cluster, generation, history;
    void (*reply)(void *context, const struct dp_peer *to, struct dp_message **message);
    void *context;
};

/* The outcome of a request. */
enum dp_done {
    DP_DONE,         /* answered, or will be when it is durable */
    DP_DONE_ANSWER,  /* to be answered now */
    DP_DONE_REFUSED, /* to be refused now */
    DP_DONE_WAIT,    /* parked, for waiting->waits_for */
    DP_DONE_HELD, /* a pull that the consistency mode holds: to leave its session's order (blocked_pulls.h) */
    DP_DONE_LATER, /* answered AGAIN or TIMEOUT: its session must send it and all later requests again */
};

/* The client to answer; a refusal names its sequence number. */
struct dp_asker {
    struct dp_peer peer;
    uint64_t id, session, stream, sequence;
};
static inline struct dp_asker dp_asker_of(const struct dp_waiting *waiting)
{
    const struct dp_request *request = &waiting->request;
    return (struct dp_asker){.peer = waiting->peer,
                             .id = request->id,
                             .session = request->session,
                             .stream = request->stream,
                             .sequence = request->sequence};
}
void dp_replies_send(const struct dp_replies *replies, const struct dp_asker *to, struct dp_reply *reply,
                     struct dp_frame *frames, uint32_t frame_count);
void dp_replies_refuse(const struct dp_replies *replies, const struct dp_asker *to,
                       const struct dp_error *err);

/* Fails with DP_STOPPING: why a draining shard takes no requests. */
enum dp_status dp_replies_stopping(const struct dp_replies *replies, struct dp_error *err);

#endif
