/* Weights: the rows that one fetch of up to batches_max minibatches needs, of every parameter of the graph.
 *     take (batches)  ->  issue  ->  wait  ->  for each batch in order: of, step
 * Dense parameters: all blocks, keys prepared once. Sparse: the union of the batches' distinct keys, group by group.
 * With one minibatch a fetch (the hot path) keys are lent by the batch and `of` hands out what the pull
 * wrote: nothing is copied. With several, `of` gathers the batch's rows from the local copy, and `step` moves
 * the local copy by plain SGD, as Downpour SGD does between two fetches (Dean et al. 2012, algorithm 7.1).
 * Memory    Everything is sized at open. Batches that were taken must live until the last `of`; between
 *           issue and wait the buffers are the client's, also when the wait failed: close the client before.
 * Thread    The client's.                                                                                */
#ifndef DP_WORKER_WEIGHTS_H
#define DP_WORKER_WEIGHTS_H

#include "common/client/downpour.h"
#include "worker/compute/backend.h"
#include "worker/compute/graph.h"
#include "worker/read/batch.h"

struct dp_weights;

struct dp_weights_options {
    const struct dp_graph *graph;
    struct dp_client_table *const *tables; /* [parameters of the graph] */
    uint32_t shards;
    const struct dp_batch_shape *worst; /* of a minibatch; read at open only */
    uint32_t batches_max;
    const struct dp_backend
        *backend; /* NULL, or what copies from them: they are pinned for it, and it outlives them */
    const struct dp_weights *dense_of; /* NULL, or whose dense parameters this one shows as its own */
};

enum dp_weights_which { DP_WEIGHTS_ALL, DP_WEIGHTS_DENSE, DP_WEIGHTS_SPARSE };

DP_MUST_USE
enum dp_status dp_weights_new(const struct dp_weights_options *options, struct dp_weights **out,
                              struct dp_error *err);
void dp_weights_free(struct dp_weights **weights);

/* count: 1 .. batches_max. */
DP_MUST_USE
enum dp_status dp_weights_take(struct dp_weights *weights, struct dp_batch *const *batches, uint32_t count,
                               struct dp_error *err);
/* Parameters that are `which` says; where there are none, *ticket is {0} and nothing is to be waited for.
 * The wait is the caller's (dp_client_wait). */
DP_MUST_USE
enum dp_status dp_weights_issue(struct dp_weights *weights, struct dp_client *client,
                                enum dp_weights_which which, uint32_t timeout_ms, struct dp_ticket *ticket,
                                struct dp_error *err);
/* [shards]: what the pull found applied. */
const uint64_t *dp_weights_applied(const struct dp_weights *weights);

/* What a program takes for batch i of those taken: [parameters]. Lent until the next `of`. */
const float *const *dp_weights_of(struct dp_weights *weights, uint32_t i);
/* w -= rate * g on the local copy, for the batch that `of` was called for last. gradients: as a program
 * gives them for that batch. */
void dp_weights_step(struct dp_weights *weights, float rate, float *const *gradients);

/* The local copy of one parameter ([blocks][dim], or [union of keys][dim]) and a group's union: for tests,
 * and for whoever fills it without a client. */
float *dp_weights_local(struct dp_weights *weights, int parameter);
const uint64_t *dp_weights_keys(const struct dp_weights *weights, uint32_t group, size_t *n);

#endif
