/* Weights: the rows that one fetch of up to batches_max minibatches needs, of every parameter of the graph.
 *     take (batches)  ->  issue  ->  wait  ->  for each batch in order: of, step
 * Of dense parameters a fetch has all blocks, with keys prepared once; of sparse ones the union of the
 * batches' distinct keys, group by group. With one minibatch in a fetch (the hot path) the batch lends its
 * keys and `of` returns the pull's rows: nothing is copied. With several, `of` gathers the batch's rows from
 * the local copy, and `step` moves the local copy by plain SGD, as Downpour SGD does between two fetches
 * (Dean et al. 2012, algorithm 7.1).
 * Memory    All buffers are allocated by new. Taken batches must live until the last `of`. Between issue and
 *           wait the client owns the buffers, also after a failed wait: close the client before they are
 *           freed.
 * Thread    The client's. */
#ifndef DP_CONTEXT_WEIGHTS_H
#define DP_CONTEXT_WEIGHTS_H

#include "common/client/downpour.h"
#include "worker/compute/backend.h"
#include "worker/compute/graph.h"
#include "worker/context/row_source.h"
#include "worker/read/batch.h"

struct dp_weights;

struct dp_weights_options {
    const struct dp_graph *graph;
    struct dp_client_table *const *tables; /* [parameters of the graph] */
    uint32_t shards;
    const struct dp_batch_shape *worst; /* of a minibatch; read by new only */
    uint32_t batches_max;
    /* NULL, or the backend that copies from the buffers: they are pinned for it, and it outlives them. */
    const struct dp_backend *backend;
    const struct dp_weights *dense_of; /* NULL, or weights whose dense parameters these share */
    /* NULL: rows come from the client. Else from here, in `issue`, which then needs no client; it outlives
     * the weights. */
    const struct dp_row_source *source;
};

enum dp_weights_which { DP_WEIGHTS_ALL, DP_WEIGHTS_DENSE, DP_WEIGHTS_SPARSE };

enum dp_status dp_weights_new(const struct dp_weights_options *options, struct dp_weights **out,
                              struct dp_error *err);
void dp_weights_free(struct dp_weights **weights);

/* count: 1 .. batches_max. */
enum dp_status dp_weights_take(struct dp_weights *weights, struct dp_batch *const *batches, uint32_t count,
                               struct dp_error *err);
/* Issues the pull of the parameters that `which` selects. step: NULL, or the step of the run whose weights
 * the pull asks for (dp_client_pull_step). The caller waits (dp_client_wait); without
 * parameters, or with a source, *ticket is {0}, and there is no wait. */
enum dp_status dp_weights_issue(struct dp_weights *weights, struct dp_client *client,
                                enum dp_weights_which which, const uint64_t *step, uint32_t timeout_ms,
                                struct dp_ticket *ticket, struct dp_error *err);
/* [shards]: how far each had come at the pull. */
const struct dp_pulled_at *dp_weights_pulled_at(const struct dp_weights *weights);

/* The weights for a program and batch i of those taken: [parameters]. Lent until the next `of`. */
const float *const *dp_weights_of(struct dp_weights *weights, uint32_t i);
/* w -= rate * g on the local copy, for the batch of the last `of`. gradients: as a program computes them for
 * that batch. */
void dp_weights_step(struct dp_weights *weights, float rate, float *const *gradients);

/* The local copy of one parameter ([blocks][dim], or [union of keys][dim]), and a group's union, for tests
 * and for callers that fill it without a client. */
float *dp_weights_local(struct dp_weights *weights, int parameter);
const uint64_t *dp_weights_keys(const struct dp_weights *weights, uint32_t group, size_t *n);

/* The keys of a dense parameter: the numbers of its blocks, prepared once. On failure *out may be set, and is
 * the caller's to free. */
enum dp_status dp_weights_block_keys(const struct dp_parameter *parameter, struct dp_keys **out,
                                     struct dp_error *err);

/* A view: one thread's, of weights that several threads use at once (Hogwild!, Niu et al. 2011).
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
struct dp_weights_view;

/* options: batches_max is above 1; tables, shards and backend are not used. */
enum dp_status dp_weights_view_new(const struct dp_weights_options *options, struct dp_weights_view **out,
                                   struct dp_error *err);
void dp_weights_view_free(struct dp_weights_view **view);

/* batch: one that `weights` has taken. Returns for each group, and each distinct key of it, the index in the
 * group's union: [groups], lent until the next `at`. */
const uint32_t *const *dp_weights_view_at(struct dp_weights_view *view, struct dp_weights *weights,
                                          const struct dp_batch *batch);
/* The weights for a program: [parameters]. Lent until the next `of`. */
const float *const *dp_weights_view_of(struct dp_weights_view *view);
/* gradients: as a program computes them for the batch of the last `at`. */
void dp_weights_view_step(struct dp_weights_view *view, float rate, float *const *gradients);

#endif
