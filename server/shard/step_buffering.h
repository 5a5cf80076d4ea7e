/* Step buffering: keeps the pushes of synchronous steps until their step is closed (close.h).
 *     new by its id, next of its member -> check: the open step, one rate, bounds of the step -> memory -> append to the journal -> kept
 * Why       The bounds of a step are checked when its pushes arrive, because an answered push is never
 *           given up. The close may take half of the cache. Its record must fit into a segment of the
 *           journal, which has the pushes and closes of at least two steps (step_buffer.h). Only pushes of
 *           the open step are kept: a push of a later step, of a member whose pulls touched other shards,
 *           is answered AGAIN. So the pushes of a step lie between two closes in the journal, and no close
 *           that is replayed needs one from below the floor.
 * Reappends While a step is open no segment beyond its floor is recycled (step_buffer.h), but each opening takes a segment, and
 *           views, dropped pushes and others are appended. A step that stays open must not fill the
 *           journal. So its kept pushes, and then the weights from before the last close, are appended
 *           again. This happens once the store has all up to the floor and half of the journal is full. The
 *           floor then moves past the old records. A replay that finds the same pushes twice, or a part of
 *           them, takes them once. Where not all could be appended the floor stays.
 * Thread    The shard's. */
#ifndef DP_SHARD_STEP_BUFFERING_H
#define DP_SHARD_STEP_BUFFERING_H

#include "server/durable/journaling.h"
#include "server/shard/sessions.h"

struct dp_shard;

struct dp_step_buffering {
    uint64_t again_ns;   /* the next attempt to reappend is not before */
    uint64_t failing_ns; /* since when attempts fail, or when that was logged; 0: the last one succeeded */
};

/* Whether a push that its mode lets be kept fits into its step. A push that does not uses up no number: the worker
 * pushes the step again under the same one. */
enum dp_status dp_step_buffering_check(const struct dp_shard *shard, const struct dp_waiting *push,
                                       struct dp_error *err);
/* A push without a member while a step is open: half of the journal is left for the pushes that complete the step,
 * as no room can be made there. */
enum dp_status dp_step_buffering_check_other(const struct dp_shard *shard, struct dp_error *err);
/* Reappends where that is due. Not while the shard drains. */
void dp_step_buffering_turn(struct dp_shard *shard);
/* Whether its next turn has something to do. */
bool dp_step_buffering_goes_on(const struct dp_shard *shard);
/* Of a push whose step was closed without it: APPENDED: its number is used up. Else why in err. */
DP_MUST_USE
enum dp_appended dp_step_buffering_drop(struct dp_shard *shard, const struct dp_waiting *push,
                                        struct dp_error *err);
/* Of a push that was checked, with its tables. APPENDED: its message is kept, too. Else why in err, and nothing changed. */
DP_MUST_USE
enum dp_appended dp_step_buffering_keep(struct dp_shard *shard, struct dp_waiting *push,
                                        struct dp_error *err);

#endif
