/* Steps replay: restores views and steps from the journal's records at an opening, in their order.
 * Promise   Steps, kept pushes and the weights from before the last close are the same as before the crash.
 *           Records that the marks already include (steps_mark.h) change nothing.
 * Thread    The shard's, at its opening. */
#ifndef DP_STEPS_STEPS_REPLAY_H
#define DP_STEPS_STEPS_REPLAY_H

#include "server/cache/cached_tables.h"
#include "server/cache/shard_base.h"
#include "server/steps/step_buffer.h"
#include "server/steps/steps.h"

struct dp_steps_replay {
    struct dp_shard_base *base;
    const struct dp_cached_tables *tables;
    struct dp_steps *steps;
    struct dp_step_buffer *kept;
};

enum dp_status dp_steps_replay_view(const struct dp_steps_replay *replay, const struct dp_record *record,
                                    struct dp_error *err);
/* A push that was applied at once. */
void dp_steps_replay_push(const struct dp_steps_replay *replay, const struct dp_record *record);
/* bytes: of the record, in which the push's sections lie; copied. */
enum dp_status dp_steps_replay_kept(const struct dp_steps_replay *replay, const struct dp_record *record,
                                    const struct dp_request *push, uint64_t lsn, const void *bytes,
                                    size_t size, struct dp_error *err);
/* Applies a step to its rows, whose tables are there and which are in the cache or nowhere, and keeps their weights from
 * before. DP_CORRUPT: its pushes are not those that were closed. */
enum dp_status dp_steps_replay_close(const struct dp_steps_replay *replay, const struct dp_record *close,
                                     const struct dp_request *rows, uint64_t lsn, const void *bytes,
                                     size_t size, struct dp_error *err);
/* All was replayed: what no step needs any more goes. DP_CORRUPT: a push that the steps count is missing. */
enum dp_status dp_steps_replay_end(const struct dp_steps_replay *replay, struct dp_error *err);

#endif
