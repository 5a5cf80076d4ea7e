/* Push replies: a push is answered when the journal is durable past it; a repeated push, when it is durable
 * past the last one appended, so that the first copy is durable too. A refusal that used up a number waits
 * in the same way, because a crash must not free the number. The answer to a restarted worker about its
 * positions waits in the same way: the worker skips them, so a crash must not undo one.
 *     hold -> (durable) -> turn: answered; the journal is lost -> all that wait are refused
 * Holds     The order of their lsns.
 * Thread    The shard's. */
#ifndef DP_SHARD_PUSH_REPLIES_H
#define DP_SHARD_PUSH_REPLIES_H

#include "server/durable/journaling.h"
#include "server/shard/replies.h"

/* What the answer to a push says (reply.h). */
struct dp_pushed {
    uint64_t staleness, gap;
    uint32_t rows, changed_rows;
    float rate;
    bool repeated, dropped;
};

struct dp_push_replies {
    const struct dp_replies *replies;
    const struct dp_journaling *journaling;
    struct dp_push_reply {
        uint64_t lsn;
        struct dp_pushed pushed;
        struct dp_asker asker;
        struct dp_error *refused;  /* malloc'd; NULL: applied */
        struct dp_frame positions; /* data NULL: the answer to a push */
    } * reply;                     /* a ring */
    uint32_t first, count, capacity;
    uint32_t positions; /* of them */
};

/* refused: why; NULL: `pushed` says what became of it. */
void dp_push_replies_hold(struct dp_push_replies *held, const struct dp_waiting *waiting,
                          const struct dp_pushed *pushed, const struct dp_error *refused);
/* What was applied (reply.h) as of now; takes the frame over. */
void dp_push_replies_hold_positions(struct dp_push_replies *held, const struct dp_asker *asker,
                                    struct dp_frame *bits);
/* Those that are durable by now are answered. */
void dp_push_replies_turn(struct dp_push_replies *held);
/* What will never be durable here, or not soon: whether it is in the journal, the next opening sees. It is to be asked again. */
void dp_push_replies_refuse_all(struct dp_push_replies *held);
void dp_push_replies_clear(struct dp_push_replies *held);

#endif
