/* Plan: where every buffer of a program lies, for the worst batch, in one block of the backend's memory.
 * Inside this room only.
 *     in place   an operation on single elements writes over its input, where nobody else reads that input
 *                and the input's own backward pass does not need it; its gradient likewise
 *     recomputed values that are not kept share buffers with others that live at other times (reuse.h)
 *     slots      steps that overlap have batch, weights, gradients and loss of their own, and share all values between
 *     host       a backend that can use host memory gets no copies of batch, weights and gradients: their
 *                pointers are set by each forward and backward
 * Thread    The program's.
 * Failure   DP_NOMEM with the bytes wanted; nothing is kept.                                            */
#ifndef DP_COMPUTE_PLAN_H
#define DP_COMPUTE_PLAN_H

#include "worker/compute/program.h"

#define DP_PLAN_ALIGN ((size_t)256) /* what a CUDA device likes; a multiple of a cache line */

/* What each step under way has for itself. */
struct dp_plan_slot {
    float *loss;
    /* NULL where they are the caller's, in host memory. */
    struct {
        float *weights, *gradient;
    } parameters[DP_GRAPH_PARAMETERS_MAX];
    /* A batch's arrays, one after the other as program.c packs them, so that they are one copy. batch: the backend's, NULL in host
     * memory. staged: the host's, so that the caller's batch is not lent beyond start; in host memory the lists by slot alone. */
    char *batch, *staged;
    float *host_loss;
};

struct dp_plan {
    struct {
        float *value;    /* [examples, width]; NULL for the loss and for an input in host memory */
        float *gradient; /* NULL where needs_gradient is not set */
        float *saved;    /* INTERACTIONS: the sums of its rows, [examples, P.width], for the backward pass */
        bool needs_gradient;
    } nodes[DP_GRAPH_NODES_MAX];
    bool has_dense;     /* the graph reads a batch's columns */
    uint32_t slots;     /* steps that may be under way: 1 .. DP_BACKEND_SLOTS */
    size_t batch_bytes; /* of batch and staged: room for the worst batch's arrays */
    struct dp_plan_slot slot[DP_BACKEND_SLOTS];

    void *block;      /* the backend's */
    void *host_block; /* pinned (pinned.h) */
    size_t bytes;     /* of both */
};

DP_MUST_USE
enum dp_status dp_plan_init(struct dp_plan *plan, const struct dp_graph *graph,
                            const struct dp_backend *backend, const struct dp_batch_shape *worst,
                            struct dp_error *err);
void dp_plan_clear(struct dp_plan *plan, const struct dp_backend *backend);

#endif
