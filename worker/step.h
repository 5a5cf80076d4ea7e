/* Step: the loop of one worker over its minibatches.
 *     read -> pull -> compute -> push
 * With overlap the reading and pulling of the next fetch goes on while this one is computed, and a push is
 * waited for when pushes_max are unanswered. Without, each push is waited for before the next pull is issued:
 * with one worker the order is then fixed and a run can be repeated bit for bit.
 * fetch_every F, push_every P: Downpour SGD (Dean et al. 2012, algorithm 7.1): parameters are fetched every F
 * minibatches, between two fetches the local copy moves by w -= rate g; gradients of P minibatches are summed
 * and pushed. Groups of F and P never cross epochs. accumulate N: N minibatches are fetched together and pushed together, and
 * the local copy does not move between them.
 * Promise   After an epoch every push of it was answered: an epoch starts from, and ends with, quiet. Each
 *           group goes out under its push id (push_id.h), even if it has no rows. Minibatches whose push was done
 *           before are left: not read, not computed, not pushed; their examples count as found.
 * Thread    The client's; a reader's inside.
 * Failure   DP_NOT_FINITE: the loss or a gradient is NaN or infinite, nothing of that step was pushed;
 *           DP_STOPPING: a signal came, the step under way was finished, its pushes answered. The client is
 *           closed then, as pulls may be unanswered.                                                     */
#ifndef DP_WORKER_STEP_H
#define DP_WORKER_STEP_H

#include "worker/figures.h"
#include "worker/ledger.h"
#include "worker/position.h"
#include "worker/progress.h"
#include "worker/remember.h"

struct dp_loop;

/* All of them outlive the loop; figures gets what happens. position: what is skipped, as it is done; remember:
 * is told of every push before it is sent; ledger: NULL or what every push adds to. */
DP_MUST_USE
enum dp_status dp_loop_open(struct dp_job *job, const struct dp_dataset *data, struct dp_progress *progress,
                            struct dp_worker_figures *figures, const struct dp_position *position,
                            struct dp_remember *remember, struct dp_ledger *ledger, struct dp_loop **out,
                            struct dp_error *err);
void dp_loop_close(struct dp_loop **loop);
/* epoch: position->epoch, and on, in order, each once. */
DP_MUST_USE
enum dp_status dp_loop_epoch(struct dp_loop *loop, uint32_t epoch, struct dp_error *err);

#endif
