/* Close: ends synchronous steps on a shard. When the pushes of the open step are durable, all of them, they become one change:
 *     due -> a request of the shard's own: rows found -> a close record, with their weights of before -> sums applied -> next step
 * Why       As a request it goes through the schedule like a push: its rows may have to be read, the cache may have no room, the
 *           journal's disk may be behind. It is never refused: where the journal has no room it comes again.
 * Order     While it is due all pulls wait (wait STEP): whoever was told that his push is done sees it. It is not waited for to be
 *           durable: the kept pushes are, and make the same close again.
 * Failure   Rows that cannot be read: the members that wait for the next step, and pulls of nobody, hear why, and it is tried
 *           again each second. The same where the journal has no room for a second, or at once while the shard drains.
 * Thread    The shard's. */
#ifndef DP_SHARD_CLOSE_H
#define DP_SHARD_CLOSE_H

#include "server/cache/misses.h"
#include "server/durable/write_back.h"
#include "server/shard/replies.h"
#include "server/shard/schedule.h"

struct dp_close {
    struct dp_shard_base *base;
    const struct dp_cached_tables *tables;
    struct dp_misses *misses;
    struct dp_schedule *schedule;
    struct dp_steps *steps;
    struct dp_kept *kept;
    struct dp_journaling *journaling;
    struct dp_write_back *write_back;
    uint64_t *applied; /* the shard's: pushes applied */
    bool read_only;
    struct dp_session session; /* of its requests: one at a time */
    uint64_t again_ns;         /* it is not tried again before */
    uint64_t no_room_ns;       /* since when the journal has no room for it; 0: it has, or was not asked */
    bool draining;
};

/* Whether a step is to be closed, and pulls have to wait for that. */
bool dp_close_is_due(const struct dp_close *close);
/* What a request hears that would end the run meanwhile: the step is complete, other shards may have closed it. AGAIN. */
enum dp_status dp_close_say_due(const struct dp_close *close, struct dp_error *err);
/* Begins one that is due; wakes the pulls where none is. draining: one that failed is left to the next opening. */
void dp_close_turn(struct dp_close *close, bool draining);
/* Its request. */
enum dp_done dp_close_do(struct dp_close *close, struct dp_waiting *waiting);
/* A view was taken: what nobody will close any more goes. */
void dp_close_view(struct dp_close *close);
/* In how many ms, at least 1, it is to be tried again; UINT32_MAX: it waits for no time. */
uint32_t dp_close_rest_ms(const struct dp_close *close);
void dp_close_clear(struct dp_close *close);

#endif
