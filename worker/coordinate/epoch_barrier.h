/* Epoch barrier: after an epoch all workers stop training and evaluate the validation or test set together.
 * One decision makes all continue or stop. Without an early-stopping rule they always go on, and only the
 * metrics are wanted.
 *     open -> (an epoch -> wait)* -> close
 *     all have ended (peers.h) -> resting (the last to come) -> every worker's part -> judged (the decider)
 * Promise   All workers stop after the same epoch, and the metrics are those of weights that no worker was
 *           changing. Whichever processes are killed and restarted, the first server included, every epoch is
 *           judged once, and no worker waits for a decision that is already made. While the first server is
 *           away nothing is decided: a resting worker waits for it, and names it.
 * How       `resting` and the decision are one value of the register (decision.h), changed by
 *           compare-and-set: a worker that read an older version cannot change it, however long it was
 *           suspended. No worker begins an epoch before it has read that the previous one was judged; so all
 *           workers rest in an epoch that is not judged yet. The last worker to come is the decider. When it
 *           has ended or gives no sign of life, another resting worker takes its place. The others wait for
 *           the register to change, and every half second check their notes and the others' signs of life.
 * Thread    The client's. */
#ifndef DP_COORDINATE_EPOCH_BARRIER_H
#define DP_COORDINATE_EPOCH_BARRIER_H

#include "worker/coordinate/decision.h"
#include "worker/coordinate/peers.h"

/* What a worker does at the barrier. part: evaluates a worker's share (its own, and the decider those of workers that
 * have left), into malloc'd bytes. merge: parts[workers] ->
 * metrics. kind: DP_PEERS_PART, the set that is judged, or, with `tests`, DP_PEERS_TEST, the test set.
 * keep: keeps the weights of an epoch that is the best so far, before that is decided, and sets
 * state->kept; NULL: no weights are kept. */
struct dp_epoch_barrier_ops {
    enum dp_status (*part)(void *context, enum dp_peers_kind kind, uint32_t worker, uint32_t epoch,
                           void **bytes, size_t *size, struct dp_error *err);
    enum dp_status (*merge)(void *context, enum dp_peers_kind kind, uint32_t epoch,
                            const struct dp_shared_note *parts, struct dp_figures *out, struct dp_error *err);
    enum dp_status (*keep)(void *context, uint32_t epoch, struct dp_early_stop *state, struct dp_error *err);
    bool tests;
};

struct dp_epoch_barrier {
    struct dp_peers *peers;
    struct dp_early_stop_rule rule;
    struct dp_epoch_barrier_ops ops;
    void *context;
    struct dp_decision decision; /* as last read */
    uint64_t version;            /* its version in the register */
    uint32_t known_from;         /* decision.from when it was last read */
    uint32_t known_epoch;        /* decision.state.epoch then */
    uint32_t evaluated;          /* the last epoch for which this process gave its part */
};

/* Call before the first epoch, with peers, rule, ops and context set. ended, begun: how many epochs an
 * earlier process of this worker ended and began; both 0 when there was none, and for a worker that was away (takeover.h): it takes part
 * in the barrier of each epoch that is not judged yet, from the first on, though it trains nothing of them. */
enum dp_status dp_epoch_barrier_open(struct dp_epoch_barrier *barrier, uint32_t epochs, uint32_t ended,
                                     uint32_t begun, struct dp_error *err);
void dp_epoch_barrier_close(struct dp_epoch_barrier *barrier); /* accepts {0} */
/* Waits until `epoch` (counted from 1, all its pushes answered) is judged. */
enum dp_status dp_epoch_barrier_wait(struct dp_epoch_barrier *barrier, uint32_t epoch, struct dp_error *err);
static inline bool dp_epoch_barrier_stops(const struct dp_epoch_barrier *barrier, uint32_t epoch)
{
    const struct dp_early_stop *state = &barrier->decision.state;
    return state->why != DP_EARLY_STOP_NO && state->epoch == epoch;
}

#endif
