/* Positions: which numbers of a stream this shard has applied, told to a worker that was started again.
 *     asked -> read from the push ids, now -> (the journal is durable past the last push) -> answered
 * Why       A worker skips what it is told: a number that a crash takes back after that would be lost. So the answer
 *           waits as a repeated push's does, and says what was applied when it was asked, not what came since.
 * Bound     HELD_MAX answers wait; one more hears AGAIN. */
#include "server/shard/shard_inner.h"

#include "common/base/bytes.h"

#include <inttypes.h>
#include <stdlib.h>

#define HELD_MAX 64u

struct dp_held_positions {
    struct dp_held_positions *next;
    uint64_t lsn, id, session, stream;
    struct dp_peer peer;
    struct dp_error refused; /* DP_OK: the bits */
    uint32_t words;
    uint64_t word[DP_POSITIONS_MAX / 64];
};

static void look(const struct dp_shard *shard, const struct dp_request *request,
                 struct dp_held_positions *held)
{
    held->words = (request->numbers + 63) / 64;
    if (dp_shard_admit(shard, request->stream, &held->refused) != DP_OK)
        return;
    for (uint32_t i = 0; i < request->numbers; i++) {
        enum dp_status before;
        switch (dp_push_ids_look(shard->ids, request->stream, request->number + i, &before)) {
        case DP_PUSH_REPEATED:
            held->word[i / 64] |= (uint64_t)1 << i % 64;
            break;
        case DP_PUSH_TOO_OLD:
            (void)dp_shard_too_old(shard, request->stream, &held->refused);
            return;
        case DP_PUSH_ABOVE: /* so is all behind it */
            return;
        case DP_PUSH_NEW:
        case DP_PUSH_REFUSED:
            break;
        }
    }
}

static void refuse(struct dp_shard *shard, const struct dp_held_positions *held, const struct dp_error *err)
{
    struct dp_request request = {0};
    request.id = held->id;
    request.session = held->session;
    request.stream = held->stream;
    dp_shard_refuse(shard, &held->peer, &request, 0, err);
}

static void answer(struct dp_shard *shard, const struct dp_held_positions *held)
{
    struct dp_error err = {0};
    struct dp_waiting to = {.peer = held->peer};
    struct dp_reply reply = {.kind = DP_REPLY_POSITIONS};
    struct dp_frame bits = {0};
    to.request.id = held->id;
    to.request.session = held->session;
    if (held->refused.status != DP_OK) {
        refuse(shard, held, &held->refused);
        return;
    }
    bits = dp_frame_new((size_t)held->words * 8);
    if (!bits.data) {
        (void)dp_fail(&err, DP_AGAIN, "shard %" PRIu32 ": no memory for an answer", shard->options.index);
        refuse(shard, held, &err);
        return;
    }
    for (uint32_t w = 0; w < held->words; w++)
        dp_store_u64le((char *)bits.data + (size_t)w * 8, held->word[w]);
    dp_shard_answer(shard, &to, &reply, &bits, 1);
}

/* Where a new one goes: behind the last, as lsns ascend. NULL: there are too many. */
static struct dp_held_positions **end_of(struct dp_shard *shard)
{
    struct dp_held_positions **at = &shard->positions;
    uint32_t n = 0;
    for (; *at; at = &(*at)->next)
        n++;
    return n < HELD_MAX ? at : NULL;
}

void dp_shard_positions(struct dp_shard *shard, const struct dp_waiting *waiting)
{
    const struct dp_request *request = &waiting->request;
    struct dp_held_positions **end = end_of(shard), *held = NULL;
    struct dp_error err = {0};
    if (shard->draining)
        (void)dp_shard_stopping(shard, &err);
    else if (!dp_shard_journal_lost(shard, &err) && (!end || !(held = calloc(1, sizeof *held))))
        (void)dp_fail(&err, DP_AGAIN, "shard %" PRIu32 ": %u answers about positions wait for its journal",
                      shard->options.index, HELD_MAX);
    if (!held) {
        dp_shard_refuse(shard, &waiting->peer, request, 0, &err);
        return;
    }
    held->lsn = shard->lsn;
    held->peer = waiting->peer;
    held->id = request->id;
    held->session = request->session;
    held->stream = request->stream;
    look(shard, request, held);
    *end = held;
    dp_shard_positions_turn(shard);
}

void dp_shard_positions_turn(struct dp_shard *shard)
{
    struct dp_error err = {0};
    bool lost = dp_shard_journal_lost(shard, &err);
    while (shard->positions && (lost || shard->positions->lsn <= shard->durable)) {
        struct dp_held_positions *held = shard->positions;
        shard->positions = held->next;
        if (held->lsn <= shard->durable)
            answer(shard, held);
        else
            refuse(shard, held, &err);
        free(held);
    }
}

void dp_shard_positions_clear(struct dp_shard *shard)
{
    while (shard->positions) {
        struct dp_held_positions *held = shard->positions;
        shard->positions = held->next;
        free(held);
    }
}
