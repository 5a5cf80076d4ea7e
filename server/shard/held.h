/* Held: answers to pushes that wait until the journal is durable past their lsn, in the order of their lsns.
 * Thread    The shard's. Memory: its own. */
#ifndef DP_SHARD_HELD_H
#define DP_SHARD_HELD_H

#include "common/wire/message.h"

#include <stdbool.h>

struct dp_held_answer {
    uint64_t lsn;
    struct dp_peer peer;
    uint64_t id, session, stream, staleness;
    bool repeated;
    uint64_t sequence;        /* of the request; a refusal names it */
    struct dp_error *refused; /* malloc'd; NULL: applied */
};

struct dp_held {
    struct dp_held_answer *answer; /* a ring */
    uint32_t first, count, room;
};

/* lsn: not below the last one's. */
DP_MUST_USE
enum dp_status dp_held_add(struct dp_held *held, const struct dp_held_answer *answer);
/* The oldest if it waits for no lsn above `durable`, taken out, with its refusal; false: none. */
bool dp_held_take(struct dp_held *held, uint64_t durable, struct dp_held_answer *out);
void dp_held_clear(struct dp_held *held);

#endif
