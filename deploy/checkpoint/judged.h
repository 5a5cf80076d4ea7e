/* Judged: the register that goes with a cut, of the copies from before and behind it.
 * What the workers have decided (worker/coordinate/decision.h) is taken from before: a worker that is restored comes to the end of each
 * epoch that was not judged then, judges it on the same weights, and keeps them. From behind the cut, an epoch could be judged whose
 * weights no shard has kept at the cut. All else is taken from behind it: shards must not know of a later view than the register.
 * Promise   No epoch that has pushes in the cut follows one that is not judged.
 * Thread    Any.
 * Failure   DP_AGAIN: an epoch began between the first copy and the cut, or `strict` and more than what the workers decided has changed: to
 *           be cut anew. DP_CORRUPT: a copy is no register. */
#ifndef DP_CHECKPOINT_JUDGED_H
#define DP_CHECKPOINT_JUDGED_H

#include "common/client/downpour.h"

struct dp_judged_position {
    uint32_t run, epoch; /* of the last push in the cut; epoch from 0; run 0: there is none */
};

/* The copies' bytes are changed. out: heap, dp_register_value_clear. */
DP_MUST_USE
enum dp_status dp_judged_register(const struct dp_register_value *before,
                                  const struct dp_register_value *behind,
                                  const struct dp_judged_position *position, bool strict,
                                  struct dp_register_value *out, struct dp_error *err);

#endif
