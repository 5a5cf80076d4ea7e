/* Saved register: the register that goes with a cut, made of the copies from before and after it.
 * The workers' decisions (worker/coordinate/decision.h) are those from before the cut. A restored worker
 * reaches the end of each later epoch again, evaluates the same weights, and decides the same. All else is
 * taken from after the cut: shards must not know of a later view than the register.
 * Promise   If an epoch has pushes in the cut, the decision on every earlier epoch is in the register.
 * Thread    Any.
 * Failure   DP_AGAIN: cut again. An epoch began between the first copy and the cut; or, with `strict`, more than the workers'
 *           decisions changed. DP_CORRUPT: a copy is no register. */
#ifndef DP_COORDINATOR_SAVED_REGISTER_H
#define DP_COORDINATOR_SAVED_REGISTER_H

#include "common/client/downpour.h"

struct dp_saved_register_position {
    uint32_t run, epoch; /* of the last push in the cut; epoch from 0; run 0: there is none */
};

/* The copies' bytes are changed. out: heap, dp_register_value_clear. */
enum dp_status dp_saved_register(const struct dp_register_value *before,
                                 const struct dp_register_value *after,
                                 const struct dp_saved_register_position *position, bool strict,
                                 struct dp_register_value *out, struct dp_error *err);
/* Whether the register in a checkpoint's directory knows the same last run, and whether it is done. */
bool dp_saved_register_has_runs(const char *checkpoint, const struct dp_register_value *of);

#endif
