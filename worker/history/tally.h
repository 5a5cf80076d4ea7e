/* Tally: how much of a worker's share its pushes have, and how much it missed because it was away
 * (position.h).
 * Exact     In epochs that the servers have forgotten every minibatch counts as that of a complete one.
 * Thread    Any: plain functions. */
#ifndef DP_HISTORY_TALLY_H
#define DP_HISTORY_TALLY_H

#include "worker/history/position.h"
#include "worker/schedule/rounds.h"

struct dp_amount {
    uint64_t steps; /* with minibatches */
    uint64_t minibatches, examples;
};
struct dp_tally {
    struct dp_amount before; /* made in the epochs before the one under way, */
    struct dp_amount here;   /* and in this one */
    struct dp_amount missed; /* done without it */
};

/* examples, batch: as of dp_share_examples. */
struct dp_tally dp_tally_of(const struct dp_position *position, const struct dp_rounds *rounds,
                            uint64_t examples, uint32_t batch);
static inline uint64_t dp_tally_examples(const struct dp_tally *tally)
{
    return tally->before.examples + tally->here.examples;
}

#endif
