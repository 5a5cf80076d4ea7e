#include "server/shard/positions.h"

#include "common/base/bytes.h"

#include <inttypes.h>
#include <stdlib.h>

#define HELD_MAX 64u

struct dp_blocked_pulls_positions {
    struct dp_blocked_pulls_positions *next;
    uint64_t lsn;
    struct dp_asker asker;
    struct dp_error refused; /* DP_OK: the bits */
    uint32_t words;
    uint64_t word[DP_POSITIONS_MAX / 64];
};

static void look(const struct dp_positions *p, const struct dp_request *request,
                 struct dp_blocked_pulls_positions *held)
{
    held->words = (request->numbers + 63) / 64;
    if (dp_admission_check(p->admission, request->stream, &held->refused) != DP_OK)
        return;
    for (uint32_t i = 0; i < request->numbers; i++) {
        enum dp_status before;
        switch (dp_push_ids_look(p->admission->ids, request->stream, request->number + i, &before)) {
        case DP_PUSH_REPEATED:
            held->word[i / 64] |= (uint64_t)1 << i % 64;
            break;
        case DP_PUSH_TOO_OLD:
            (void)dp_admission_too_old(p->admission, request->stream, &held->refused);
            return;
        case DP_PUSH_ABOVE: /* so is all behind it */
            return;
        case DP_PUSH_NEW:
        case DP_PUSH_REFUSED:
            break;
        }
    }
}

static void answer(const struct dp_positions *p, const struct dp_blocked_pulls_positions *held)
{
    struct dp_error err = {0};
    struct dp_reply reply = {.kind = DP_REPLY_POSITIONS};
    struct dp_frame bits = {0};
    if (held->refused.status != DP_OK) {
        dp_replies_refuse(p->replies, &held->asker, &held->refused);
        return;
    }
    bits = dp_frame_new((size_t)held->words * 8);
    if (!bits.data) {
        (void)dp_fail(&err, DP_NOMEM, "shard %" PRIu32 ": no memory for an answer", p->replies->base->index);
        dp_replies_refuse(p->replies, &held->asker, &err);
        return;
    }
    for (uint32_t w = 0; w < held->words; w++)
        dp_store_u64le((char *)bits.data + (size_t)w * 8, held->word[w]);
    dp_replies_send(p->replies, &held->asker, &reply, &bits, 1);
}

/* Where a new one goes: behind the last, as lsns ascend. NULL: there are too many. */
static struct dp_blocked_pulls_positions **end_of(struct dp_positions *p)
{
    struct dp_blocked_pulls_positions **at = &p->first;
    uint32_t n = 0;
    for (; *at; at = &(*at)->next)
        n++;
    return n < HELD_MAX ? at : NULL;
}

void dp_positions_ask(struct dp_positions *p, const struct dp_waiting *waiting)
{
    const struct dp_request *request = &waiting->request;
    struct dp_blocked_pulls_positions **end = end_of(p), *held = NULL;
    struct dp_asker asker = dp_asker_of(waiting);
    struct dp_error err = {0};
    if (!dp_journaling_lost(p->journaling, &err) && (!end || !(held = calloc(1, sizeof *held))))
        (void)dp_fail_wait(&err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_QUEUE},
                           "shard %" PRIu32 ": %u answers about positions wait for its journal",
                           p->replies->base->index, HELD_MAX);
    asker.sequence = 0;
    if (!held) {
        dp_replies_refuse(p->replies, &asker, &err);
        return;
    }
    held->lsn = p->journaling->lsn;
    held->asker = asker;
    look(p, request, held);
    *end = held;
    dp_positions_turn(p);
}

void dp_positions_turn(struct dp_positions *p)
{
    struct dp_error err = {0};
    bool lost = dp_journaling_lost(p->journaling, &err);
    while (p->first && (lost || p->first->lsn <= p->journaling->durable)) {
        struct dp_blocked_pulls_positions *held = p->first;
        p->first = held->next;
        DP_ASSERT(!p->first || p->first->lsn >= held->lsn);
        if (held->lsn <= p->journaling->durable)
            answer(p, held);
        else
            dp_replies_refuse(p->replies, &held->asker, &err);
        free(held);
    }
}

void dp_positions_clear(struct dp_positions *p)
{
    while (p->first) {
        struct dp_blocked_pulls_positions *held = p->first;
        p->first = held->next;
        free(held);
    }
}
