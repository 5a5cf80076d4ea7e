/* Positions: which numbers of a stream this shard has applied, told to a worker that was started again.
 *     asked -> read from the push ids, now -> (the journal is durable past the last push) -> answered
 * Why       A worker skips what it is told: a number that a crash takes back after that would be lost. So the answer
 *           waits as a repeated push's does, and says what was applied when it was asked, not what came since.
 * Bound     64 answers wait; one more hears AGAIN.
 * Holds     Those that wait are in the order of their lsns.
 * Thread    The shard's. Memory: its own. */
#ifndef DP_SHARD_POSITIONS_H
#define DP_SHARD_POSITIONS_H

#include "server/durable/journaling.h"
#include "server/shard/admission.h"
#include "server/shard/replies.h"

struct dp_blocked_pulls_positions;

struct dp_positions {
    const struct dp_replies *replies;
    const struct dp_admission *admission;
    const struct dp_journaling *journaling;
    struct dp_blocked_pulls_positions *first; /* oldest first */
};

void dp_positions_ask(struct dp_positions *positions, const struct dp_waiting *waiting);
void dp_positions_turn(struct dp_positions *positions);
void dp_positions_clear(struct dp_positions *positions);

#endif
