/* Weights view: one thread's view of weights that several threads use at once (Hogwild!, Niu et al. 2011).
 *     at (batch)  ->  of  ->  the thread computes  ->  step
 * `at` finds where the rows of a minibatch are; `of` copies them, and all dense parameters, out of the local
 * copy of a fetch; `step` moves the local copy by w -= rate * g, without locks.
 * Promise   Alone, a view gives the bits of dp_weights_of and dp_weights_step. Among others each component
 *           is read and written completely, by relaxed atomic loads and stores, and nothing more: `of` may
 *           see a part of another's step, and of two steps of one component at the same time one may be
 *           lost. That costs the local copy little where minibatches seldom meet in a component (the paper's
 *           condition), and servers nothing: each thread sums its own gradients.
 * Why       A load and a store, not a compare-and-swap: with two threads on imdb_bow that takes 1.7 times the
 *           time, to the same loss (tests/bench/README.md).
 * Thread    One thread uses one view; dp_weights_take and what fills the weights happen before.
 * Memory    All buffers are allocated by new; of these weights it needs the same options. */
#ifndef DP_CONTEXT_WEIGHTS_VIEW_H
#define DP_CONTEXT_WEIGHTS_VIEW_H

#include "worker/context/weights.h"

struct dp_weights_view;

/* options: batches_max is above 1; tables, shards and backend are not used. */
DP_MUST_USE
enum dp_status dp_weights_view_new(const struct dp_weights_options *options, struct dp_weights_view **out,
                                   struct dp_error *err);
void dp_weights_view_free(struct dp_weights_view **view);

/* batch: one that `weights` has taken. Returns for each group, and each distinct key of it, the index in the group's
 * union: [groups], lent until the next `at`. */
const uint32_t *const *dp_weights_view_at(struct dp_weights_view *view, struct dp_weights *weights,
                                          const struct dp_batch *batch);
/* The weights for a program: [parameters]. Lent until the next `of`. */
const float *const *dp_weights_view_of(struct dp_weights_view *view);
/* gradients: as a program computes them for the batch of the last `at`. */
void dp_weights_view_step(struct dp_weights_view *view, float rate, float *const *gradients);

#endif
