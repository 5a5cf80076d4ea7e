/* Keeper: keeps the pushes of synchronous steps until their step is closed (close.h).
 *     new by its id, next of its member -> check: the open step, one rate, bounds of the step -> memory -> append to the journal -> kept
 * Why       The bounds of a step are checked as its pushes come: its close is a request that may take half of the cache, and a
 *           record that must fit into a segment of the journal, of which the pushes and closes of two steps and more are needed
 *           at a time (step_buffer.h). What was answered is never given up.
 *           Only pushes of the open step are kept: one of a later step, of a member whose pulls touched other shards, hears
 *           AGAIN. So the pushes of a step lie between two closes in the journal, and no close that is replayed wants one from
 *           below the floor.
 * Thread    The shard's. */
#ifndef DP_SHARD_STEP_BUFFERING_H
#define DP_SHARD_STEP_BUFFERING_H

#include "server/durable/write_back.h"
#include "server/shard/sessions.h"

struct dp_step_buffering {
    const struct dp_shard_base *base;
    const struct dp_cached_tables *tables;
    const struct dp_cache_budget *budget;
    const struct dp_journal_options *journal;
    const struct dp_steps *steps;
    struct dp_step_buffer *kept;
    struct dp_journaling *journaling;
    struct dp_write_back *write_back;
    uint64_t again_ns;   /* what is kept is not appended anew before */
    uint64_t failing_ns; /* since when it could not be, or when that was told; 0: it could */
};

/* Whether a push that its rule lets be kept fits into its step. What breaks that uses up no number: whoever mends it pushes the step under the same. */
DP_MUST_USE
enum dp_status dp_step_buffering_check(const struct dp_step_buffering *keeper, const struct dp_waiting *push,
                                       struct dp_error *err);
/* A push of nobody while a step is open: half of the journal is left for what closes it, as no room can be made there. */
DP_MUST_USE
enum dp_status dp_step_buffering_check_other(const struct dp_step_buffering *keeper, struct dp_error *err);
/* Sees to it that a step which stays open does not fill the journal (reappend.h). Not while the shard drains. */
void dp_step_buffering_turn(struct dp_step_buffering *keeper);
/* Whether its next turn has something to do. */
bool dp_step_buffering_goes_on(const struct dp_step_buffering *keeper);
/* Of a push whose step was closed without it: APPENDED: its number is used up. Else why in err. */
DP_MUST_USE
enum dp_appended dp_step_buffering_drop(const struct dp_step_buffering *keeper, const struct dp_waiting *push,
                                        struct dp_error *err);
/* Of a push that was checked, with its tables. APPENDED: its message is kept, too. Else why in err, and nothing changed. */
DP_MUST_USE
enum dp_appended dp_step_buffering_keep(const struct dp_step_buffering *keeper, struct dp_waiting *push,
                                        struct dp_error *err);

#endif
