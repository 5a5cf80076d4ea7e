/* Fixture: a graph with two sparse parameters (widths 1 and 3) and a dense one (2 x 3 in blocks), and
 * minibatches with chosen keys, for the tests of weights and gradients.                                  */
#ifndef DP_TESTS_UNIT_WORKER_CONTEXT_GRAPH_FIXTURE_H
#define DP_TESTS_UNIT_WORKER_CONTEXT_GRAPH_FIXTURE_H

#include "tests/lib/test.h"
#include "worker/compute/graph.h"
#include "worker/read/batch.h"

enum { FIX_THIN, FIX_WIDE, FIX_DENSE, FIX_PARAMETERS };

static inline struct dp_graph *fixture_graph(void)
{
    struct dp_graph *graph;
    struct dp_error err = {0};
    assert_int_equal(dp_graph_new(&graph, &err), DP_OK);
    const struct dp_init_spec zero = {.kind = DP_INIT_ZERO};
    int words = dp_graph_group(graph), list = dp_graph_list(graph, words, 0);
    int thin = dp_graph_sparse(graph, words, "thin", 1, zero);
    int wide = dp_graph_sparse(graph, words, "wide", 3, zero);
    int dense = dp_graph_dense(graph, "dense", 3, 1, zero);
    int x = dp_graph_matmul(graph, dp_graph_gather_sum(graph, wide, list), dense);
    dp_graph_loss(graph, DP_OP_LOGISTIC_LOSS, dp_graph_add(graph, x, dp_graph_gather_sum(graph, thin, list)));
    const struct dp_optimizer_spec optimizer = dp_optimizer_defaults(DP_OPT_SGD);
    dp_graph_set_optimizer(graph, &optimizer, 1);
    if (dp_graph_check(graph, &err) != DP_OK)
        fail_msg("%s", err.text);
    return graph;
}

/* Minibatches of so many distinct keys at most. */
static inline struct dp_batch_shape fixture_worst(uint32_t distinct)
{
    return (struct dp_batch_shape){.examples = 8, .groups = 1, .lists = 1, .list[0] = {.entries = distinct}};
}

/* A minibatch as far as keys go: mixed, ascending. */
static inline struct dp_batch fixture_batch(uint64_t *keys, uint32_t n)
{
    return (struct dp_batch){.group[0] = {.keys = keys, .distinct = n}};
}

#endif
