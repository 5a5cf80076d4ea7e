#include "server/shard/push_replies.h"

#include "common/base/log.h"

#include <inttypes.h>
#include <stdlib.h>

static void answer(const struct dp_push_replies *held, struct dp_pending_reply *pending)
{
    if (pending->refused) {
        dp_replies_refuse(held->replies, &pending->asker, pending->refused);
        free(pending->refused);
        return;
    }
    struct dp_reply reply = {.kind = DP_REPLY_PUSHED,
                             .staleness = pending->staleness,
                             .gap = pending->gap,
                             .rows = pending->rows,
                             .changed_rows = pending->changed_rows,
                             .rate = pending->rate,
                             .repeated = pending->repeated,
                             .dropped = pending->dropped};
    dp_replies_send(held->replies, &pending->asker, &reply, NULL, 0);
}

static void hold(struct dp_push_replies *held, const struct dp_waiting *waiting,
                 struct dp_pending_reply *pending)
{
    const struct dp_journaling *j = held->journaling;
    DP_ASSERT(j->durable <= j->lsn);
    pending->lsn = j->lsn;
    pending->asker = dp_asker_of(waiting);
    if (j->durable >= pending->lsn) {
        answer(held, pending);
    } else if (dp_pending_add(&held->pending, pending) != DP_OK) {
        free(pending->refused);
        dp_log(DP_LOG_WARN, "shard %" PRIu32 ": no memory to hold an answer: the client will ask again",
               held->replies->base->index);
    }
}

void dp_push_replies_hold(struct dp_push_replies *held, const struct dp_waiting *waiting,
                          const struct dp_pushed *pushed)
{
    struct dp_pending_reply pending = {.staleness = pushed->staleness,
                                       .gap = pushed->gap,
                                       .rows = pushed->rows,
                                       .changed_rows = pushed->changed_rows,
                                       .rate = pushed->rate,
                                       .repeated = pushed->repeated,
                                       .dropped = pushed->dropped};
    hold(held, waiting, &pending);
}

void dp_push_replies_hold_refusal(struct dp_push_replies *held, const struct dp_waiting *waiting,
                                  const struct dp_error *err)
{
    struct dp_pending_reply pending = {.refused = malloc(sizeof *err)};
    if (!pending.refused)
        return; /* the client will ask again */
    *pending.refused = *err;
    hold(held, waiting, &pending);
}

void dp_push_replies_turn(struct dp_push_replies *held)
{
    struct dp_pending_reply pending;
    while (dp_pending_take(&held->pending, held->journaling->durable, &pending)) {
        DP_ASSERT(pending.lsn <= held->journaling->durable);
        answer(held, &pending);
    }
    DP_COUNT_SET(&held->replies->base->counters, answers_held, held->pending.count);
}

void dp_push_replies_refuse_all(struct dp_push_replies *held)
{
    struct dp_pending_reply pending;
    struct dp_error err = {0};
    dp_push_replies_turn(held); /* what is durable is answered so */
    while (dp_pending_take(&held->pending, UINT64_MAX, &pending)) {
        bool lost = dp_journaling_lost(held->journaling, &err);
        DP_ASSERT(lost);
        dp_replies_refuse(held->replies, &pending.asker, &err);
        free(pending.refused);
    }
}
