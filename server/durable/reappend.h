/* Kept again: what the journal holds of an open synchronous step, appended anew, so that older segments can go.
 *     the store has all up to the floor, and half of the journal is full -> kept pushes, then the weights from before the last close
 *     -> the floor is behind those
 * Why       While a step is open nothing beyond its floor is recycled (step_buffer.h), but each opening takes a segment, and views, dropped
 *           pushes and others are appended. A step that stays open for long would fill the journal, and could not close then.
 * Promise   Replay finds the same pushes twice, or a part of them, and is none the wiser. Where not all could be appended the floor
 *           stays.
 * Thread    The shard's. */
#ifndef DP_DURABLE_REAPPEND_H
#define DP_DURABLE_REAPPEND_H

#include "server/durable/journaling.h"
#include "server/steps/step_buffer.h"

/* Not APPENDED: why in err; the next call goes on behind what was appended. */
DP_MUST_USE
enum dp_appended dp_reappend(struct dp_step_buffer *kept, struct dp_journaling *journaling,
                             struct dp_error *err);
/* marked_lsn: the store's marks tell so much. Not for a step that is complete: it would have to wait until it is durable anew. */
bool dp_reappend_is_due(const struct dp_step_buffer *kept, const struct dp_journaling *journaling,
                        uint64_t marked_lsn);

#endif
