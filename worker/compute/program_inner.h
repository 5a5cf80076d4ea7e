/* The struct that program.c, forward.c and backward.c share. Private to this room. */
#ifndef DP_COMPUTE_PROGRAM_INNER_H
#define DP_COMPUTE_PROGRAM_INNER_H

#include "worker/compute/plan.h"
#include "worker/compute/program.h"

struct dp_program {
    const struct dp_graph *graph;
    struct dp_backend backend;
    struct dp_batch_shape worst;
    struct dp_plan plan;

    bool (*asked)(void *of); /* whether the step is given up; or NULL */
    void *asked_of;

    const struct dp_plan_slot *at; /* of the step that was issued last */
    uint32_t under_way, oldest;    /* steps that were started and not finished; the slot of the oldest */
    float loss;                    /* of a step started, where a backend can use host memory */

    /* The batch of the last forward. */
    bool evaluates;
    uint32_t examples;
    size_t packed;                                 /* bytes of its arrays, in the slot's batch and staged */
    uint64_t dropout_seed;                         /* of the minibatch */
    const float *dense, *labels, *example_weights; /* weights: NULL: all are 1 */
    float *shrink; /* the L2 regularisation of examples (dot_l2) and of rows (priors); NULL: there is none */
    const float *shrink_bound; /* the same on the device */
    struct dp_entries entries[DP_BATCH_LISTS_MAX];
    uint32_t distinct[DP_BATCH_GROUPS_MAX];
    const float *weights[DP_GRAPH_PARAMETERS_MAX]; /* on the device */

    /* The backward pass under way. */
    float *gradients[DP_GRAPH_PARAMETERS_MAX]; /* on the device */
    bool node_written[DP_GRAPH_NODES_MAX], parameter_written[DP_GRAPH_PARAMETERS_MAX];
    bool has_value[DP_GRAPH_NODES_MAX]; /* recomputed nodes */
    struct dp_error failed;             /* of an operation that can fail */
};

static inline const float *dp_value_of(const struct dp_program *program, int node)
{
    if (dp_graph_node(program->graph, node)->op == DP_OP_INPUT_DENSE)
        return program->dense;
    return program->plan.nodes[node].value;
}

/* The seed of the node's dropout in this minibatch. */
uint64_t dp_dropout_seed(const struct dp_program *program, int node);
void dp_forward_node(struct dp_program *program, int node);
void dp_backward_node(struct dp_program *program, int node);

#endif
