/* Close: commits synchronous steps on a shard. When all pushes of the open step are durable (with B backup
 * members: all but B), they become one change:
 *     complete -> its keys and sums gathered, while its pushes become durable -> due -> a request of the shard's
 *     own: rows found -> a close record, with their weights of before -> sums applied -> next step
 * Why       A close is a request, so the schedule handles it like a push: it may wait for rows, for the
 *           cache or for the journal's disk. It is never refused: if the journal is full, it is tried
 *           again.
 * Order     While it is due all pulls wait (wait STEP): a client with an acknowledged push sees that push. They do
 *           not wait until the close is durable: the buffered pushes are, and make the same close again.
 * Backups   A step takes the pushes that are buffered when its close begins. Others of the step wait while
 *           it is due or under way (wait STEP) and are dropped then. Until the close is durable no answer
 *           shows it: all pulls wait, and views come again.
 * Failure   If its rows cannot be read, it is tried again each second. Members that wait for the next step,
 *           and pulls without a member, get the reason. The same where the journal has no room for a
 *           second, or at once while the shard drains.
 * Thread    The shard's. */
#ifndef DP_SHARD_CLOSE_H
#define DP_SHARD_CLOSE_H

#include "server/cache/misses.h"
#include "server/durable/journaling.h"
#include "server/shard/replies.h"
#include "server/shard/schedule.h"
#include "server/steps/step_buffer.h"
#include "server/steps/steps.h"

struct dp_close {
    struct dp_shard_base *base;
    const struct dp_cached_tables *tables;
    struct dp_misses *misses;
    struct dp_schedule *schedule;
    struct dp_steps *steps;
    struct dp_step_buffer *kept;
    struct dp_journaling *journaling;
    uint64_t lsn; /* of the last close since the opening; 0: none */
    bool read_only;
    struct dp_session session; /* of its requests: one at a time */
    struct dp_waiting *ready;  /* the next request, made while the step's pushes become durable; or NULL */
    uint32_t ready_pushes;     /* that its keys and sums are of */
    float *sums;      /* of the request that is ready or under way, section by section: [rows][dim] of each */
    size_t sums_room; /* floats that it holds: as many as the largest step of the view took */
    uint64_t again_ns;   /* it is not tried again before */
    uint64_t no_room_ns; /* since when the journal has no room for it; 0: it has, or was not asked */
    bool draining;
};

/* Whether a step is to be closed, and pulls have to wait for that. */
bool dp_close_is_due(const struct dp_close *close);
/* Whether the open step is complete and will be closed: it is due, or will be once its pushes, and the view by which they are
 * complete, are durable. */
bool dp_close_is_coming(const struct dp_close *close);
/* Whether the last close must not be shown yet, as it is not durable (sync with backup members). */
bool dp_close_is_hidden(const struct dp_close *close);
/* Whether a push of the open step comes too late for the close that is due or under way, and has to wait for it. */
bool dp_close_holds_push(const struct dp_close *close);
/* Whether requests that wait for a step will be woken: by a close, or when one is durable. */
bool dp_close_will_wake(const struct dp_close *close);
/* Why a request that would end the run, or show a close, has to come again (AGAIN). */
enum dp_status dp_close_say(const struct dp_close *close, struct dp_error *err);
/* Begins one that is due; wakes the pulls where none is. draining: one that failed is left to the next opening. */
void dp_close_turn(struct dp_close *close, bool draining);
/* Whether its request goes on: else it waits (waits_for), or there is nothing to close any more. */
bool dp_close_may(struct dp_close *close, struct dp_waiting *waiting);
/* Its rows were found, or could not be: why in err. */
enum dp_done dp_close_do(struct dp_close *close, struct dp_waiting *waiting, struct dp_error *err);
/* A view was taken: pushes of steps that will not be closed any more go. */
void dp_close_view(struct dp_close *close);
/* In how many ms, at least 1, it is to be tried again; UINT32_MAX: it waits for no time. */
uint32_t dp_close_rest_ms(const struct dp_close *close);
void dp_close_clear(struct dp_close *close);

#endif
