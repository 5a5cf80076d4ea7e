/* Exchange: takes the gradients of a training's steps in place of servers. A seam: all-reduce is a form of it
 * (worker/allreduce).
 *     rows (the weights before a step) -> step -> rows -> ...
 * Promise   All workers take part in each step of an epoch, also those that have no minibatch in it. After
 *           `step` the rows are those of the next step.
 * Thread    The training's.
 * Failure   All workers get DP_STOPPING or DP_NOT_FINITE at the same step, and none applies that step. */
#ifndef DP_CONTEXT_EXCHANGE_H
#define DP_CONTEXT_EXCHANGE_H

#include "worker/context/row_source.h"

struct dp_gradients;
struct dp_push_options;
struct dp_step_timer;

struct dp_exchange {
    /* gradients: NULL: this worker has none. Of options: step, rate and examples. watch: the caller's time ends
     * and begins with it. */
    enum dp_status (*step)(void *of, const struct dp_push_options *options,
                           const struct dp_gradients *gradients, struct dp_step_timer *watch,
                           struct dp_error *err);
    void *of;
    struct dp_row_source rows;
};

#endif
