#include "worker/compute/graph_inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const op_names[DP_OPS] = {
    [DP_OP_INPUT_DENSE] = "input",
    [DP_OP_GATHER_SUM] = "gather_sum",
    [DP_OP_GATHER_MEAN] = "gather_mean",
    [DP_OP_GATHER] = "gather",
    [DP_OP_INTERACTIONS] = "interactions",
    [DP_OP_MATMUL] = "matmul",
    [DP_OP_BIAS] = "bias",
    [DP_OP_RELU] = "relu",
    [DP_OP_SIGMOID] = "sigmoid",
    [DP_OP_TANH] = "tanh",
    [DP_OP_DROPOUT] = "dropout",
    [DP_OP_SLICE] = "slice",
    [DP_OP_ADD] = "add",
    [DP_OP_MULTIPLY] = "multiply",
    [DP_OP_DOT] = "dot",
    [DP_OP_CONCAT] = "concat",
    [DP_OP_PAIRS] = "pairs",
    [DP_OP_NEAR] = "near",
    [DP_OP_SOFTMAX_LOSS] = "softmax loss",
    [DP_OP_LOGISTIC_LOSS] = "logistic loss",
    [DP_OP_SQUARED_LOSS] = "squared loss",
    [DP_OP_MEAN_LOSS] = "mean loss",
    [DP_OP_BPR_LOSS] = "bpr loss",
};

const char *dp_op_name(enum dp_op op)
{
    return (unsigned)op < DP_OPS ? op_names[op] : "unknown operation";
}

enum dp_status dp_graph_new(struct dp_graph **out, struct dp_error *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return dp_fail(err, DP_NOMEM, "graph: no memory for %zu bytes", sizeof **out);
    return DP_OK;
}

void dp_graph_free(struct dp_graph **graph)
{
    free(*graph);
    *graph = NULL;
}

/* The next parameter, with this name. NULL when the graph is broken, or becomes broken by it. */
static struct dp_parameter *next_parameter(struct dp_graph *graph, const char *name)
{
    struct dp_parameter *p = &graph->parameters[graph->parameter_count];
    if (dp_graph_is_broken(graph))
        return NULL;
    if (graph->parameter_count == DP_GRAPH_PARAMETERS_MAX) {
        (void)DP_GRAPH_REFUSE(graph, "parameter '%s': a graph holds at most %d parameters", name,
                              DP_GRAPH_PARAMETERS_MAX);
        return NULL;
    }
    DP_ASSERT(strlen(name) <= DP_TABLE_NAME_MAX);
    for (int i = 0; i < graph->parameter_count; i++)
        DP_ASSERT(strcmp(graph->parameters[i].table.name, name) != 0);
    *p = (struct dp_parameter){0};
    memcpy(p->table.name, name, strlen(name) + 1);
    p->table.optimizer = dp_optimizer_defaults(DP_OPT_SGD);
    return p;
}

int dp_graph_group(struct dp_graph *graph)
{
    if (dp_graph_is_broken(graph))
        return 0;
    DP_ASSERT(graph->group_count < (int)DP_BATCH_GROUPS_MAX);
    return graph->group_count++;
}

int dp_graph_list(struct dp_graph *graph, int group, uint32_t each)
{
    if (dp_graph_is_broken(graph))
        return 0;
    DP_ASSERT(group >= 0 && group < graph->group_count && graph->list_count < (int)DP_BATCH_LISTS_MAX);
    graph->lists[graph->list_count] = (struct dp_graph_list){.group = (uint32_t)group, .each = each};
    return graph->list_count++;
}

int dp_graph_sparse(struct dp_graph *graph, int group, const char *name, uint32_t width,
                    struct dp_init_spec init)
{
    struct dp_parameter *p = next_parameter(graph, name);
    if (!p)
        return 0;
    DP_ASSERT(group >= 0 && group < graph->group_count);
    if (width == 0 || width > DP_TABLE_DIM_MAX)
        return DP_GRAPH_REFUSE(graph, "parameter '%s': width %" PRIu32 " is not 1 .. %d", name, width,
                               DP_TABLE_DIM_MAX);
    p->sparse = true;
    p->group = (uint32_t)group;
    p->width = p->table.dim = width;
    p->table.init = init;
    return graph->parameter_count++;
}

/* The floats in one table row of a dense parameter of n floats.
 * Up to 256 floats are one row: nothing is padded, and a bias is one key. Beyond that rows have about 256
 * floats: few enough that a matrix of some thousand floats is spread over the shards, enough that a row's key
 * and header (some 20 bytes) are under 2% of its 1 KiB. From 2^18 floats on there are more than a thousand
 * rows either way, and finding a row costs as much as updating 256 floats: they get 1,024. The rows are made
 * equal, so that the padding of the last is less than 8 floats a row instead of up to a whole row, and a
 * multiple of 8, AVX2's width. */
static uint32_t dense_block(uint64_t n)
{
    uint64_t target = n < (1u << 18) ? 256 : 1024;
    if (n <= target)
        return (uint32_t)n;
    uint64_t rows = (n + target - 1) / target;
    uint64_t block = (n + rows - 1) / rows;
    return (uint32_t)((block + 7) / 8 * 8);
}

int dp_graph_dense(struct dp_graph *graph, const char *name, uint32_t rows, uint32_t width,
                   struct dp_init_spec init)
{
    struct dp_parameter *p = next_parameter(graph, name);
    if (!p)
        return 0;
    if (rows == 0 || rows > DP_GRAPH_WIDTH_MAX || width == 0 || width > DP_GRAPH_WIDTH_MAX)
        return DP_GRAPH_REFUSE(graph,
                               "parameter '%s': shape [%" PRIu32 ", %" PRIu32 "] is not within 1 .. %u each",
                               name, rows, width, DP_GRAPH_WIDTH_MAX);
    uint64_t n = (uint64_t)rows * width;
    if (n > DP_GRAPH_DENSE_MAX)
        return DP_GRAPH_REFUSE(graph,
                               "parameter '%s': [%" PRIu32 ", %" PRIu32 "] has %" PRIu64
                               " weights, a dense parameter has at most %llu: make a layer narrower",
                               name, rows, width, n, DP_GRAPH_DENSE_MAX);
    p->rows = rows;
    p->width = width;
    p->table.dim = dense_block(n);
    p->table.init = init;
    return graph->parameter_count++;
}

void dp_graph_add_l2(struct dp_graph *graph, int parameter, float l2)
{
    if (graph->broken.status == DP_OK)
        graph->parameters[parameter].l2 = l2;
}

void dp_graph_set_dot_l2(struct dp_graph *graph, float l2)
{
    DP_ASSERT(l2 >= 0);
    graph->dot_l2 = l2;
}

float dp_graph_dot_l2(const struct dp_graph *graph)
{
    return graph->dot_l2;
}

void dp_graph_set_prior(struct dp_graph *graph, int parameter, float prior)
{
    if (graph->broken.status == DP_OK)
        graph->parameters[parameter].prior = prior;
}

void dp_graph_set_examples(struct dp_graph *graph, uint64_t examples)
{
    graph->examples = examples;
}

float dp_graph_prior(const struct dp_graph *graph, int parameter)
{
    const struct dp_parameter *p = &graph->parameters[parameter];
    return graph->examples > 0 && p->l2 == 0 ? p->prior / (float)graph->examples : 0;
}

bool dp_graph_has_prior(const struct dp_graph *graph)
{
    for (int p = 0; p < graph->parameter_count; p++)
        if (dp_graph_prior(graph, p) > 0)
            return true;
    return false;
}

size_t dp_graph_shrunk(const struct dp_graph *graph, const struct dp_batch_shape *worst)
{
    size_t floats = graph->dot_l2 > 0 ? worst->examples : 0;
    for (int p = 0; p < graph->parameter_count; p++)
        if (dp_graph_prior(graph, p) > 0)
            floats += dp_batch_distinct_max(worst, graph->parameters[p].group);
    return floats;
}

void dp_graph_set_start(struct dp_graph *graph, float value)
{
    DP_ASSERT(graph->node_count > 0);
    int at = graph->nodes[graph->node_count - 1].input[0];
    while (graph->nodes[at].op == DP_OP_ADD)
        at = graph->nodes[at].input[1];
    if (graph->nodes[at].op == DP_OP_BIAS && graph->nodes[at].width == 1)
        graph->parameters[graph->nodes[at].parameter].table.init =
            (struct dp_init_spec){.kind = DP_INIT_CONSTANT, .scale = value};
}

void dp_graph_set_optimizer(struct dp_graph *graph, const struct dp_optimizer_spec *optimizer, uint64_t seed)
{
    for (int i = 0; i < graph->parameter_count; i++) {
        graph->parameters[i].table.optimizer = *optimizer;
        graph->parameters[i].table.optimizer.l2 += graph->parameters[i].l2;
        graph->parameters[i].table.seed = seed;
    }
    graph->seed = seed;
}

/* Every node but the loss, and every parameter, has a user: since inputs come before users, each then leads
 * to the loss. */
static enum dp_status check_used(const struct dp_graph *graph, struct dp_error *err)
{
    bool node_used[DP_GRAPH_NODES_MAX] = {false}, parameter_used[DP_GRAPH_PARAMETERS_MAX] = {false};
    bool list_used[DP_BATCH_LISTS_MAX] = {false};
    for (int i = 0; i < graph->node_count; i++) {
        const struct dp_node *node = &graph->nodes[i];
        for (int k = 0; k < node->inputs; k++)
            node_used[node->input[k]] = true;
        if (node->parameter >= 0)
            parameter_used[node->parameter] = true;
        if (node->list >= 0)
            list_used[node->list] = true;
    }
    for (int i = 0; i < graph->node_count - 1; i++)
        if (!node_used[i])
            return dp_fail(err, DP_ARGUMENT, "operation %d (%s) has no user: remove it", i,
                           dp_op_name(graph->nodes[i].op));
    for (int i = 0; i < graph->parameter_count; i++)
        if (!parameter_used[i])
            return dp_fail(err, DP_ARGUMENT, "parameter '%s' is used by no operation: remove it",
                           graph->parameters[i].table.name);
    for (int i = 0; i < graph->list_count; i++)
        if (!list_used[i])
            return dp_fail(err, DP_ARGUMENT, "list %d is read by no operation: remove it", i);
    return DP_OK;
}

enum dp_status dp_graph_check(const struct dp_graph *graph, struct dp_error *err)
{
    if (dp_graph_is_broken(graph))
        return dp_fail(err, graph->broken.status, "%s", graph->broken.text);
    if (!graph->closed)
        return dp_fail(err, DP_ARGUMENT, "the graph has no loss: end it with dp_graph_loss");
    enum dp_status st = check_used(graph, err);
    for (int i = 0; st == DP_OK && i < graph->parameter_count; i++) {
        st = dp_table_check(&graph->parameters[i].table, err);
        if (st != DP_OK)
            st = dp_wrap(err, st, "parameter '%s'", graph->parameters[i].table.name);
    }
    return st;
}

int dp_graph_nodes(const struct dp_graph *graph)
{
    return graph->node_count;
}

const struct dp_node *dp_graph_node(const struct dp_graph *graph, int node)
{
    DP_ASSERT(node >= 0 && node < graph->node_count);
    return &graph->nodes[node];
}

int dp_graph_groups(const struct dp_graph *graph)
{
    return graph->group_count;
}

int dp_graph_lists(const struct dp_graph *graph)
{
    return graph->list_count;
}

struct dp_graph_list dp_graph_list_at(const struct dp_graph *graph, int list)
{
    DP_ASSERT(list >= 0 && list < graph->list_count);
    return graph->lists[list];
}

int dp_graph_parameters(const struct dp_graph *graph)
{
    return graph->parameter_count;
}

const struct dp_parameter *dp_graph_parameter(const struct dp_graph *graph, int parameter)
{
    DP_ASSERT(parameter >= 0 && parameter < graph->parameter_count);
    return &graph->parameters[parameter];
}

int dp_graph_output(const struct dp_graph *graph)
{
    DP_ASSERT(graph->closed);
    return graph->nodes[graph->node_count - 1].input[0];
}

uint32_t dp_graph_columns(const struct dp_graph *graph)
{
    for (int i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].op == DP_OP_INPUT_DENSE)
            return graph->nodes[i].width;
    return 0;
}

uint64_t dp_graph_seed(const struct dp_graph *graph)
{
    return graph->seed;
}
