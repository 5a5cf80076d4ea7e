/* Step: the loop of one worker over its minibatches.
 *     read -> pull -> compute -> push
 * With overlap the next fetch is read and pulled while this one is computed, and the loop waits for a push
 * only when pushes_max are unanswered. Without overlap it waits for each push before it issues the next pull:
 * with one worker the order is then fixed, and a run can be repeated bit for bit. fetch_every F, push_every
 * P: Downpour SGD (Dean et al. 2012, algorithm 7.1): parameters are fetched every F minibatches, between two
 * fetches the local copy moves by w -= rate g; gradients of P minibatches are summed and pushed. Groups of F
 * and P never cross epochs. accumulate N: N minibatches are fetched together and pushed together, and the
 * local copy does not move between them. threads: the minibatches of a fetch are computed by several threads
 * and are one push (hogwild.h).
 * Promise   When an epoch returns every push of it is answered: no request crosses the boundary of an epoch.
 *           Each group is pushed under its push id (shares.h), even if it has no rows. Minibatches whose
 *           push is already done are skipped: not read, not computed, not pushed; their examples count as
 *           found.
 * Thread    The client's; a reader's inside.
 * Failure   DP_NOT_FINITE: the loss or a gradient is NaN or infinite; nothing of that step was pushed.
 *           DP_STOPPING: a signal came; the step under way was finished and its pushes answered. The client
 *           is then closed, because pulls may be unanswered. */
#ifndef DP_LOOP_STEP_H
#define DP_LOOP_STEP_H

#include "worker/context/exchange.h"
#include "worker/context/job.h"
#include "worker/history/position.h"
#include "worker/history/stats_history.h"
#include "worker/telemetry/progress.h"
#include "worker/telemetry/worker_stats.h"

struct dp_loop;

/* All that they point to outlives the loop. */
struct dp_loop_options {
    struct dp_job *job;
    const struct dp_dataset *data;
    struct dp_progress *progress;
    struct dp_worker_stats *stats;      /* its measurements are added */
    const struct dp_position *position; /* the pushes that are already done */
    struct dp_stats_history *history;   /* records every push before it is sent */
    const struct dp_exchange *exchange; /* takes the steps (exchange.h); NULL: the servers do */
};

enum dp_status dp_loop_open(const struct dp_loop_options *options, struct dp_loop **out,
                            struct dp_error *err);
void dp_loop_close(struct dp_loop **loop);
/* Trains one epoch. Call for position->epoch and each later epoch once, in order. */
enum dp_status dp_loop_epoch(struct dp_loop *loop, uint32_t epoch, struct dp_error *err);

#endif
