/* Push replies: a push is answered when the journal is durable past it; a repeated push, when it is durable past the last one
 * appended, so that the first copy is durable too; a refusal that used up a number likewise: after a crash it must still be used
 * up.
 *     hold -> (durable) -> answered; the journal is lost -> all that wait are refused
 * Thread    The shard's. */
#ifndef DP_SHARD_PUSH_REPLIES_H
#define DP_SHARD_PUSH_REPLIES_H

#include "server/durable/journaling.h"
#include "server/durable/pending.h"
#include "server/shard/replies.h"

struct dp_push_replies {
    const struct dp_replies *replies;
    const struct dp_journaling *journaling;
    struct dp_pending pending;
};

/* What the answer to a push tells (reply.h). */
struct dp_pushed {
    uint64_t staleness, gap;
    uint32_t rows, changed_rows;
    float rate;
    bool repeated, dropped;
};

void dp_push_replies_hold(struct dp_push_replies *held, const struct dp_waiting *waiting,
                          const struct dp_pushed *pushed);
void dp_push_replies_hold_refusal(struct dp_push_replies *held, const struct dp_waiting *waiting,
                                  const struct dp_error *err);
/* Those that are durable by now are answered. */
void dp_push_replies_turn(struct dp_push_replies *held);
/* What will never be durable here, or not soon: whether it is in the journal, the next opening sees. It is to be asked again. */
void dp_push_replies_refuse_all(struct dp_push_replies *held);

#endif
