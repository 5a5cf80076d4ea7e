/* Verdict: the end of an epoch where a validation set, or a rule to stop, wants one: all workers come to rest, evaluate the
 * set together, and learn from worker 0 whether they go on.
 *     every worker: "ended" -> (all have ended) -> its part of the evaluation -> verdict of worker 0 -> go on, or stop
 *     worker 0:     merges the parts -> judges -> "verdict"
 * Promise   All stop after the same epoch, and the figures are those of weights that nobody was changing. A worker that was
 *           killed comes to the same verdict: it finds worker 0's note, or is waited for. Should worker 0 or the first server
 *           lose what was judged before, the other workers' "ended" notes hold it: each carries the last verdict its worker saw.
 * Notes     run/<run>/ended/<worker>: the epoch (u32), then the state (stop.h); run/<run>/verdict/0: the state. Both are
 *           written over each epoch, and put again where the first server lost them.
 * Thread    The client's. */
#ifndef DP_WORKER_VERDICT_H
#define DP_WORKER_VERDICT_H

#include "worker/evaluate.h"
#include "worker/stop.h"

struct dp_verdict {
    struct dp_job *job;
    struct dp_progress *progress;
    const struct dp_dataset *data;
    struct dp_eval_ring ring; /* dp_evaluate_plan, rest */
    struct dp_stop_rule rule;
    struct dp_stop state; /* of the last verdict */
};

/* epoch: counted from 1. *known: worker 0 has new figures in *figures. */
DP_MUST_USE
enum dp_status dp_verdict_epoch(struct dp_verdict *verdict, uint32_t epoch, bool *known,
                                struct dp_figures *figures, struct dp_error *err);
static inline bool dp_verdict_stops(const struct dp_verdict *verdict, uint32_t epoch)
{
    return verdict->state.why != DP_STOP_NO && verdict->state.epoch == epoch;
}

#endif
