/* Gradients: the sum of up to batches_max minibatches for one push, of every parameter of the graph.
 *     for each batch: next -> (a backward pass writes) -> add;   push sends the sum and starts again
 * With one minibatch in a push (the hot path) the batch lends its keys, and the client copies from the output
 * of the backward pass. With several, sparse gradients are written one batch after the other and the client
 * sums equal keys, in the order of the batches; dense gradients are added here.
 *     united: begin (keys) -> for each batch: next -> (a backward pass writes) -> add_at;   push, or merge
 * United gradients are those of one fetch, whose keys are known: equal keys are summed as they come, so a
 * push has nothing to sort. Each thread has its own gradients, and one thread pushes the sum of all.
 * Promise   The staleness of a push is counted from the pull of its first minibatch, the oldest.
 * Memory    All buffers are allocated by new. A batch must live until its push if batches_max is 1,
 *           otherwise until add.
 * Thread    The client's; united ones before a push: any, one at a time. */
#ifndef DP_LOOP_GRADIENTS_H
#define DP_LOOP_GRADIENTS_H

#include "common/client/downpour.h"
#include "worker/compute/backend.h"
#include "worker/compute/graph.h"
#include "worker/context/weights.h"
#include "worker/read/batch.h"

struct dp_gradients;

struct dp_gradients_options {
    const struct dp_graph *graph;
    struct dp_client_table *const *tables; /* [parameters of the graph] */
    uint32_t shards;
    const struct dp_batch_shape *worst; /* of a minibatch; read by new only */
    uint32_t batches_max;
    bool united; /* batches_max above 1 */
    /* NULL, or the backend that copies into the buffers: they are pinned for it, and it outlives them. */
    const struct dp_backend *backend;
};

enum dp_status dp_gradients_new(const struct dp_gradients_options *options, struct dp_gradients **out,
                                struct dp_error *err);
void dp_gradients_free(struct dp_gradients **gradients);

/* Returns where the backward pass of this batch writes: [parameters], readable until the next call. pulled_at:
 * [shards], from the batch's pull. */
float *const *dp_gradients_next(struct dp_gradients *gradients, const struct dp_batch *batch,
                                const struct dp_pulled_at *pulled_at);
/* Adds what the backward pass wrote to the sum. */
void dp_gradients_add(struct dp_gradients *gradients);
/* United: starts a sum over the keys of what `weights` has taken, which keeps them until the push. */
enum dp_status dp_gradients_begin(struct dp_gradients *gradients, const struct dp_weights *weights,
                                  struct dp_error *err);
/* United: adds what the backward pass wrote. place: [groups], for each key of the batch its index among those of
 * the fetch. */
void dp_gradients_add_at(struct dp_gradients *gradients, const uint32_t *const *place);
/* United: adds the sum of `from`, which began with the same weights. */
void dp_gradients_merge(struct dp_gradients *gradients, const struct dp_gradients *from);
/* Sends the sum; options->pulled_at is filled in here. The sum is empty afterwards, also on failure. */
enum dp_status dp_gradients_push(struct dp_gradients *gradients, struct dp_client *client,
                                 const struct dp_push_options *options, uint32_t timeout_ms,
                                 struct dp_ticket *ticket, struct dp_error *err);
/* What a push would send, for an exchange: the sum so far of a parameter. Then drop, instead of push. */
const float *dp_gradients_sum(const struct dp_gradients *gradients, int parameter);
void dp_gradients_drop(struct dp_gradients *gradients);

/* For tests: the keys of a group, unmixed (united or of one batch: mixed). */
const uint64_t *dp_gradients_keys(const struct dp_gradients *gradients, uint32_t group, size_t *n);

#endif
