/* Behind: how a worker continues after steps that the servers committed without it, with backups (sync:B). A
 * pull hears that a later step is open: the steps before it are passed over. Their minibatches are not
 * computed, and their pushes are empty, since their numbers have to be used up.
 *     hears (what the pull of a step said) -> is (a step below the open one)?
 * Holds     The open step never falls.
 * Thread    hears: the client's; is: the reader's too. */
#ifndef DP_LOOP_BEHIND_H
#define DP_LOOP_BEHIND_H

#include "common/env/clock.h"

#include <stdatomic.h>
#include <stdbool.h>

struct dp_behind {
    _Atomic uint64_t open; /* steps below it are passed over; 0: none is */
    uint64_t told_ns;      /* when the log said so last; 0: never */
};

static inline bool dp_behind_is(const struct dp_behind *behind, uint64_t step)
{
    return step < atomic_load_explicit(&behind->open, memory_order_relaxed);
}
/* A pull of `step` was answered with rows of step `open` on some shard; 0: in this mode none is told. The log says at most
 * every 10 s that the worker is behind. */
void dp_behind_hears(struct dp_behind *behind, uint64_t step, uint64_t open, const struct dp_clock *clock);

#endif
