/* Gradients: what up to batches_max minibatches push together, of every parameter of the graph.
 *     for each batch: next -> (a backward pass writes) -> add;   push sends the sum and starts anew
 * With one minibatch a push (the hot path) keys are lent by the batch and the backward pass's output is
 * what the client copies from. With several, sparse gradients are written one batch behind the other and
 * the client sums equal keys, in the order of the batches; dense ones are added here.
 * Promise   The staleness of a push is counted from the pull of its first minibatch, the oldest.
 * Memory    Everything is sized at open. A batch must live until its push when batches_max is 1, else until
 *           add.
 * Thread    The client's. */
#ifndef DP_WORKER_GRADIENTS_H
#define DP_WORKER_GRADIENTS_H

#include "common/client/downpour.h"
#include "worker/compute/backend.h"
#include "worker/compute/graph.h"
#include "worker/read/batch.h"

struct dp_gradients;

struct dp_gradients_options {
    const struct dp_graph *graph;
    struct dp_client_table *const *tables; /* [parameters of the graph] */
    uint32_t shards;
    const struct dp_batch_shape *worst; /* of a minibatch; read at open only */
    uint32_t batches_max;
    const struct dp_backend
        *backend; /* NULL, or what copies into them: they are pinned for it, and it outlives them */
};

DP_MUST_USE
enum dp_status dp_gradients_new(const struct dp_gradients_options *options, struct dp_gradients **out,
                                struct dp_error *err);
void dp_gradients_free(struct dp_gradients **gradients);

/* Where the backward pass of this batch is to write: [parameters]. applied: [shards] of the batch's pull.
 * They stay readable until the next `next`. */
float *const *dp_gradients_next(struct dp_gradients *gradients, const struct dp_batch *batch,
                                const uint64_t *applied);
/* Takes what was written into the sum. */
void dp_gradients_add(struct dp_gradients *gradients);
/* One more part that the next pushes have; NULL: none. Lent. */
void dp_gradients_also(struct dp_gradients *gradients, const struct dp_push_part *part);
/* options->applied is filled in here. The sum is empty afterwards, whatever came of it. */
DP_MUST_USE
enum dp_status dp_gradients_push(struct dp_gradients *gradients, struct dp_client *client,
                                 const struct dp_push_options *options, uint32_t timeout_ms,
                                 struct dp_ticket *ticket, struct dp_error *err);

/* What a push would send, for tests: the sum so far of a parameter and a group's keys, the user's. */
const float *dp_gradients_sum(const struct dp_gradients *gradients, int parameter);
const uint64_t *dp_gradients_keys(const struct dp_gradients *gradients, uint32_t group, size_t *n);

#endif
