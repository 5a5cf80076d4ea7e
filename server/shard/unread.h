/* Unread: pulls whose answers would be dropped now, because their client, or all clients, have left too much unread.
 *     a pull's answer would not be sent -> parked (UNREAD), before its rows are looked for -> a client reads -> tried again, in
 *     the order in which they came
 * Why       A waiting pull holds its keys only. A waiting answer would hold its rows, and the bound on unread bytes is one on memory.
 * Bound     While more than half of the places for requests, or of their bytes, are taken, such a pull is answered AGAIN: clients that
 *           do not read leave the other half to those that do. A client that reads nothing loses its connection (net/guard.h).
 * Thread    The shard's. */
#ifndef DP_SHARD_UNREAD_H
#define DP_SHARD_UNREAD_H

#include "server/cache/shard_base.h"
#include "server/shard/schedule.h"

struct dp_unread {
    const struct dp_shard_base *base;
    struct dp_schedule *schedule;
    bool (*may_reply)(void *context, const struct dp_peer *to, uint64_t bytes); /* as in shard.h */
    void *context;
    uint32_t requests_many; /* in the schedule: above either, nothing waits here */
    uint64_t bytes_many;
};

enum dp_unread_verdict { DP_UNREAD_GO, DP_UNREAD_WAIT, DP_UNREAD_REFUSED };

/* Whether the answer to this pull, answer_bytes long, may be made. REFUSED: why in err. */
enum dp_unread_verdict dp_unread_check(const struct dp_unread *unread, const struct dp_waiting *pull,
                                       struct dp_error *err);
/* Wakes those that need not wait any more; all: each of them. */
void dp_unread_turn(const struct dp_unread *unread, bool all);
/* Whether something will wake those that wait: the shard's caller turns when a client has read. */
bool dp_unread_will_wake(const struct dp_unread *unread);

#endif
