#include "server/shard/push_replies.h"

#include "common/base/log.h"

#include <inttypes.h>
#include <stdlib.h>

static void release(struct dp_push_reply *reply)
{
    free(reply->refused);
    dp_frame_release(&reply->positions);
}

/* Room for one more. */
static enum dp_status reserve(struct dp_push_replies *held)
{
    if (held->count < held->capacity)
        return DP_OK;
    uint32_t capacity = held->capacity ? held->capacity * 2 : 256;
    struct dp_push_reply *more = malloc(capacity * sizeof more[0]);
    if (!more)
        return DP_NOMEM;
    for (uint32_t i = 0; i < held->count; i++)
        more[i] = held->reply[(held->first + i) % held->capacity];
    free(held->reply);
    held->reply = more;
    held->first = 0;
    held->capacity = capacity;
    return DP_OK;
}

/* Takes over what it has. */
static void hold(struct dp_push_replies *held, struct dp_push_reply *reply)
{
    const struct dp_journaling *j = held->journaling;
    reply->lsn = j->lsn;
    DP_ASSERT(j->durable <= j->lsn);
    DP_ASSERT(held->count == 0 ||
              held->reply[(held->first + held->count - 1) % held->capacity].lsn <= reply->lsn);
    if (reserve(held) != DP_OK) {
        dp_log(DP_LOG_WARN, "shard %" PRIu32 ": no memory to hold an answer: the client will ask again",
               held->replies->base->index);
        release(reply);
        return;
    }
    held->positions += reply->positions.data != NULL;
    held->reply[(held->first + held->count++) % held->capacity] = *reply;
}

void dp_push_replies_hold(struct dp_push_replies *held, const struct dp_waiting *waiting,
                          const struct dp_pushed *pushed, const struct dp_error *refused)
{
    struct dp_push_reply reply = {.asker = dp_asker_of(waiting)};
    if (refused)
        reply.refused = malloc(sizeof *refused);
    else
        reply.pushed = *pushed;
    if (reply.refused)
        *reply.refused = *refused;
    if (!refused || reply.refused) /* without memory the client asks again */
        hold(held, &reply);
}

void dp_push_replies_hold_positions(struct dp_push_replies *held, const struct dp_asker *asker,
                                    struct dp_frame *bits)
{
    struct dp_push_reply reply = {.asker = *asker, .positions = *bits};
    *bits = (struct dp_frame){0};
    hold(held, &reply);
}

/* The oldest, if its lsn is at most `durable`. */
static bool take(struct dp_push_replies *held, uint64_t durable, struct dp_push_reply *out)
{
    if (held->count == 0 || held->reply[held->first].lsn > durable)
        return false;
    DP_ASSERT(held->count <= held->capacity);
    *out = held->reply[held->first];
    held->positions -= out->positions.data != NULL;
    held->first = (held->first + 1) % held->capacity;
    held->count--;
    DP_ASSERT(held->count == 0 || held->reply[held->first].lsn >= out->lsn);
    return true;
}

static void answer(const struct dp_push_replies *held, struct dp_push_reply *of)
{
    struct dp_reply reply = {.kind = DP_REPLY_PUSHED,
                             .staleness = of->pushed.staleness,
                             .gap = of->pushed.gap,
                             .rows = of->pushed.rows,
                             .changed_rows = of->pushed.changed_rows,
                             .rate = of->pushed.rate,
                             .repeated = of->pushed.repeated,
                             .dropped = of->pushed.dropped};
    bool has_bits = of->positions.data != NULL;
    if (has_bits)
        reply = (struct dp_reply){.kind = DP_REPLY_POSITIONS};
    if (of->refused)
        dp_replies_refuse(held->replies, &of->asker, of->refused);
    else
        dp_replies_send(held->replies, &of->asker, &reply, has_bits ? &of->positions : NULL, has_bits);
    free(of->refused);
}

void dp_push_replies_turn(struct dp_push_replies *held)
{
    struct dp_push_reply reply;
    while (take(held, held->journaling->durable, &reply)) {
        DP_ASSERT(reply.lsn <= held->journaling->durable);
        answer(held, &reply);
    }
    DP_COUNT_SET(&held->replies->base->counters, answers_held, held->count);
}

void dp_push_replies_refuse_all(struct dp_push_replies *held)
{
    struct dp_push_reply reply;
    struct dp_error err = {0};
    dp_push_replies_turn(held); /* what is durable is answered so */
    while (take(held, UINT64_MAX, &reply)) {
        bool lost = dp_journaling_lost(held->journaling, &err);
        DP_ASSERT(lost);
        dp_replies_refuse(held->replies, &reply.asker, &err);
        release(&reply);
    }
}

void dp_push_replies_clear(struct dp_push_replies *held)
{
    for (uint32_t i = 0; i < held->count; i++)
        release(&held->reply[(held->first + i) % held->capacity]);
    free(held->reply);
    held->reply = NULL;
    held->first = held->count = held->capacity = 0;
}
