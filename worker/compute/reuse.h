/* Reuse: assigns buffers to recomputed values. Private to this room.
 *     Step i of the forward pass computes node i, step 2 N - i of the backward pass its inputs' gradients. A
 *     recomputed value lives from its step to its last user's, and again from the first backward step that
 *     may read it to its own. Values that do not live at the same time share a buffer. */
#ifndef DP_COMPUTE_REUSE_H
#define DP_COMPUTE_REUSE_H

#include "worker/compute/graph.h"

struct dp_reuse {
    int buffer_of[DP_GRAPH_NODES_MAX]; /* -1: the node has a buffer of its own */
    int buffers;
    uint32_t width[DP_GRAPH_NODES_MAX]; /* floats an example, of each buffer */
};

void dp_reuse_plan(const struct dp_graph *graph, struct dp_reuse *out);

#endif
