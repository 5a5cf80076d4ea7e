#include "server/shard/replies.h"

#include "common/base/log.h"

#include <inttypes.h>
#include <stdio.h>

void dp_replies_send(const struct dp_replies *replies, const struct dp_asker *to, struct dp_reply *reply,
                     struct dp_frame *frames, uint32_t frame_count)
{
    reply->id = to->id;
    reply->session = to->session;
    reply->generation = replies->generation;
    reply->history = replies->history;
    reply->cluster = replies->cluster;
    struct dp_message *message = NULL;
    struct dp_error err = {0};
    if (dp_reply_encode(reply, frames, frame_count, &message, &err) != DP_OK) {
        /* Without an answer the client asks again. */
        dp_log(DP_LOG_WARN, "shard %" PRIu32 ": an answer was dropped: %s", replies->base->index, err.text);
        return;
    }
    replies->reply(replies->context, &to->peer, &message);
}

static void count_refusal(struct dp_shard_base *base, enum dp_status status, enum dp_wait_reason reason)
{
    _Atomic uint64_t *by_cause = &base->refusals[dp_refusal_cause(status, reason)];
    atomic_store_explicit(by_cause, atomic_load_explicit(by_cause, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    if (status == DP_AGAIN || status == DP_ORDER || status == DP_SESSION || status == DP_STOPPING)
        DP_COUNT(&base->counters, requests_postponed, 1);
    else if (status == DP_TIMEOUT)
        DP_COUNT(&base->counters, requests_expired, 1);
    else
        DP_COUNT(&base->counters, requests_refused, 1);
}

void dp_replies_refuse(const struct dp_replies *replies, const struct dp_asker *to,
                       const struct dp_error *err)
{
    enum dp_status answered = dp_status_answered(err->status);
    DP_ASSERT(answered != DP_OK && answered != DP_BEHIND);
    struct dp_reply reply = {
        .kind = DP_REPLY_NONE, .status = answered, .wait = dp_wait_answered(err), .sequence = to->sequence};
    count_refusal(replies->base, answered, reply.wait.reason);
    DP_ASSERT(reply.wait.reason != DP_WAIT_NONE ||
              (answered != DP_AGAIN && answered != DP_STOPPING && answered != DP_TIMEOUT));
    if (answered == DP_TOO_OLD)
        reply.too_old = dp_push_ids_too_old(replies->ids, to->stream);
    (void)snprintf(reply.reason, sizeof reply.reason, "%s", err->text);
    dp_replies_send(replies, to, &reply, NULL, 0);
}

enum dp_status dp_replies_stopping(const struct dp_replies *replies, struct dp_error *err)
{
    return dp_fail_wait(err, DP_STOPPING, (struct dp_wait){.reason = DP_WAIT_STOPPING},
                        "shard %" PRIu32 " is shutting down", replies->base->index);
}
