/* Pending replies: replies to pushes that wait until the journal is durable past their lsn.
 * Holds     The order of their lsns.
 * Thread    The shard's. */
#ifndef DP_DURABLE_PENDING_H
#define DP_DURABLE_PENDING_H

#include "common/wire/message.h"

#include <stdbool.h>

/* Who gets the reply, and what a refusal names. */
struct dp_asker {
    struct dp_peer peer;
    uint64_t id, session, stream, sequence;
};

struct dp_pending_reply {
    uint64_t lsn, staleness, gap;
    uint32_t rows, changed_rows;
    float rate;
    bool repeated, dropped;
    struct dp_asker asker;
    struct dp_error *refused; /* malloc'd; NULL: applied */
};

struct dp_pending {
    struct dp_pending_reply *reply; /* a ring */
    uint32_t first, count, capacity;
};

/* lsn: not below the last one's. Takes ownership of `refused` if it succeeds. */
DP_MUST_USE
enum dp_status dp_pending_add(struct dp_pending *pending, const struct dp_pending_reply *reply);
/* Takes the oldest reply out, with its refusal, if its lsn is at most `durable`; false: there is none. */
bool dp_pending_take(struct dp_pending *pending, uint64_t durable, struct dp_pending_reply *out);
void dp_pending_clear(struct dp_pending *pending);

#endif
