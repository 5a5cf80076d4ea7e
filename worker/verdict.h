/* Verdict: the end of an epoch where a validation or a test set is looked at: all workers come to rest, evaluate the
 * set together, and learn from worker 0 whether they go on. Without a rule they always do: the figures are then what it is for.
 *     begin -> (an epoch -> verdict_epoch)*
 *     every worker: "ended" -> (all have ended) -> its part of the evaluation -> verdict of worker 0 -> go on, or stop
 *     worker 0:     merges the parts -> judges -> "verdict"
 * Promise   All stop after the same epoch, and the figures are those of weights that nobody was changing. Whichever workers are
 *           killed and started again, the first server with its notes too, nobody waits for a verdict that was given.
 * How       That somebody has begun an epoch says that the verdict on the one before it was to go on. It shows in his position,
 *           which the servers keep with his pushes, and in his progress; he tells it in his notes, and who rests at that epoch then
 *           goes on without parts or a verdict. Nobody begins an epoch before his "ended" note tells that verdict: so worker 0 judges
 *           only what was not judged, or was by one whom nobody heard. It looks for a verdict of its earlier process before it
 *           looks for "ended" notes: whoever heard that one while the first server held it says so in his.
 *           Best figures are handed on in the same notes. Where all who knew them were killed, and the first server too, the log
 *           says so and patience counts from the next epoch.
 *           An earlier process of a worker, which had stood still, may put an older note over a newer one: whoever waits puts his
 *           own again where an older one lies, and who waits for a verdict looks at worker 0's "ended", too.
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
    struct dp_stop_rule rule;
    /* Worker 0: the figures of an epoch, counted from 1, before anybody hears the verdict on it; state: what follows from
     * them, NULL where it is known already. */
    void (*judged)(void *context, uint32_t epoch, const struct dp_figures *figures,
                   const struct dp_stop *state);
    /* Worker 0, before that, where the epoch is the best so far: keeps its weights, and says so in state->kept; NULL: none are
     * kept. Not DP_OK: the epoch is not judged. */
    enum dp_status (*keep)(void *context, uint32_t epoch, struct dp_stop *state, struct dp_error *err);
    void *context;
    struct dp_stop state; /* of the last verdict */
    uint32_t evaluated;   /* the last epoch of which this process has given its part; 0: none */
    bool over;            /* others have finished with the last epoch, and why is known to nobody any more */
};

/* Once, before the first epoch: takes in what others know, and tells what this one does. ended: how many epochs an earlier
 * process of this worker has ended, begun: how many it has begun; 0, 0: there was none. */
DP_MUST_USE
enum dp_status dp_verdict_begin(struct dp_verdict *verdict, uint32_t ended, uint32_t begun,
                                struct dp_error *err);
/* epoch: counted from 1; its pushes are answered. */
DP_MUST_USE
enum dp_status dp_verdict_epoch(struct dp_verdict *verdict, uint32_t epoch, struct dp_error *err);
static inline bool dp_verdict_stops(const struct dp_verdict *verdict, uint32_t epoch)
{
    return verdict->over || (verdict->state.why != DP_STOP_NO && verdict->state.epoch == epoch);
}
/* After `epoch`, the last one, by every worker: one that was started again behind its evaluation gives its part once more, as the
 * first server may have lost it. Worker 0 that does not know the figures (they went with its earlier process and the first
 * server) has them `judged` again: they are of the same weights. */
DP_MUST_USE
enum dp_status dp_verdict_finish(struct dp_verdict *verdict, uint32_t epoch, bool known,
                                 struct dp_error *err);

#endif
