/* Plan: the place of every buffer of a program, for the worst batch, in one block of the backend's memory.
 * Private to this room.
 *     in place   an operation on single elements overwrites its input if nothing else reads it, and the
 *                input's own backward pass does not need it; the same for gradients
 *     recomputed values that are not kept share buffers with others that live at other times (reuse.h)
 *     slots      overlapping steps have their own batch, weights, gradients and loss, and share the values in
 *                between
 *     host       a backend that can use host memory gets no copies of batch, weights and gradients: each
 *                forward and backward sets their pointers
 * Thread    The program's.
 * Failure   DP_NOMEM names the bytes; nothing stays allocated. */
#ifndef DP_COMPUTE_PLAN_H
#define DP_COMPUTE_PLAN_H

#include "worker/compute/program.h"

#define DP_PLAN_ALIGN ((size_t)256) /* for CUDA devices; a multiple of a cache line */

/* The buffers of one step under way. */
struct dp_plan_slot {
    float *loss;
    /* NULL if they are the caller's, in host memory. */
    struct {
        float *weights, *gradient;
    } parameters[DP_GRAPH_PARAMETERS_MAX];
    /* A batch's arrays, packed by program.c into one copy. batch: the backend's, NULL in host memory.
         * staged: the host's, so that the caller's batch is free after start; in host memory only the lists
         * by slot. */
    char *batch, *staged;
    float *host_loss;
};

struct dp_plan {
    struct {
        float *value;    /* [examples, width]; NULL for the loss and for an input in host memory */
        float *gradient; /* NULL without needs_gradient */
        float *saved;    /* INTERACTIONS: the sums of its rows, [examples, P.width], for the backward pass.
                      * NEAR: [entries of its list] */
        bool needs_gradient;
    } nodes[DP_GRAPH_NODES_MAX];
    bool has_dense;     /* the graph reads a batch's columns */
    uint32_t slots;     /* steps that may be under way: 1 .. DP_BACKEND_SLOTS */
    size_t batch_bytes; /* of batch and of staged, for the worst batch */
    struct dp_plan_slot slot[DP_BACKEND_SLOTS];

    void *block;      /* the backend's */
    void *host_block; /* pinned (pinned.h) */
    size_t bytes;     /* of both */
};

enum dp_status dp_plan_init(struct dp_plan *plan, const struct dp_graph *graph,
                            const struct dp_backend *backend, const struct dp_batch_shape *worst,
                            struct dp_error *err);
void dp_plan_clear(struct dp_plan *plan, const struct dp_backend *backend);

#endif
