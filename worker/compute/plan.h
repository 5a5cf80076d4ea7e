/* Plan: where every buffer of a program lies, for the worst batch, in one block of the backend's memory.
 * Inside this room only.
 *     in place   an operation on single elements writes over its input, where nobody else reads that input
 *                and the input's own backward pass does not need it; its gradient likewise
 *     recomputed values that are not kept share buffers with others that live at other times (reuse.h)
 *     host       a backend that can use host memory gets no copies of batch, weights and gradients: their
 *                pointers are set by each forward and backward
 * Thread    The program's.
 * Failure   DP_NOMEM with the bytes wanted; nothing is kept.                                            */
#ifndef DP_COMPUTE_PLAN_H
#define DP_COMPUTE_PLAN_H

#include "worker/compute/program.h"

struct dp_plan {
    struct {
        float *value;    /* [examples, width]; NULL for the loss and for an input in host memory */
        float *gradient; /* NULL where needs_gradient is not set */
        float *saved;    /* INTERACTIONS: the sums of its rows, [examples, P.width], for the backward pass */
        bool needs_gradient;
    } nodes[DP_GRAPH_NODES_MAX];
    struct {
        float *weights, *gradient; /* NULL where they are the caller's, in host memory */
    } parameters[DP_GRAPH_PARAMETERS_MAX];
    bool has_dense; /* the graph reads a batch's columns */
    float *loss;

    /* The batch; NULL in host memory. */
    float *dense, *labels;
    struct {
        float *values;
        uint32_t *offsets, *slots, *example_of, *by_slot, *slot_offsets;
        /* Host arrays behind the last three, where the backend wants them; else NULL. */
        uint32_t *host_example_of, *host_by_slot, *host_slot_offsets;
    } lists[DP_BATCH_LISTS_MAX];

    void *block;      /* the backend's */
    void *host_block; /* malloc'd */
    size_t bytes;     /* of both */
};

DP_MUST_USE
enum dp_status dp_plan_init(struct dp_plan *plan, const struct dp_graph *graph,
                            const struct dp_backend *backend, const struct dp_batch_shape *worst,
                            struct dp_error *err);
void dp_plan_clear(struct dp_plan *plan, const struct dp_backend *backend);

#endif
