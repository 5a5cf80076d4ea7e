/* The struct that graph.c (parameters, checks) and graph_ops.c (operations) share. Private to this room. */
#ifndef DP_COMPUTE_GRAPH_INNER_H
#define DP_COMPUTE_GRAPH_INNER_H

#include "worker/compute/graph.h"

struct dp_graph {
    struct dp_node nodes[DP_GRAPH_NODES_MAX];
    struct dp_parameter parameters[DP_GRAPH_PARAMETERS_MAX];
    int node_count, parameter_count, group_count, list_count;
    struct dp_graph_list lists[DP_BATCH_LISTS_MAX];
    uint64_t seed;
    float dot_l2;
    uint64_t examples;      /* by which priors are divided; 0: none is in force */
    bool closed;            /* has its loss */
    struct dp_error broken; /* the first mistake; DP_OK while there is none */
};

/* Keeps the first mistake; 0. */
#define DP_GRAPH_REFUSE(graph, ...) ((void)dp_fail(&(graph)->broken, DP_ARGUMENT, __VA_ARGS__), 0)

static inline bool dp_graph_is_broken(const struct dp_graph *graph)
{
    return graph->broken.status != DP_OK;
}

#endif
