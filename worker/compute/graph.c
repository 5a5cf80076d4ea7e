#include "worker/compute/graph.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dp_graph {
    struct dp_node nodes[DP_GRAPH_NODES_MAX];
    struct dp_parameter parameters[DP_GRAPH_PARAMETERS_MAX];
    int node_count, parameter_count, group_count, list_count;
    struct dp_graph_list lists[DP_BATCH_LISTS_MAX];
    bool closed;            /* has its loss */
    struct dp_error broken; /* the first mistake; DP_OK while there is none */
};

static const char *const op_names[DP_OPS] = {
    [DP_OP_INPUT_DENSE] = "input",
    [DP_OP_GATHER_SUM] = "gather_sum",
    [DP_OP_MATMUL] = "matmul",
    [DP_OP_BIAS] = "bias",
    [DP_OP_RELU] = "relu",
    [DP_OP_SIGMOID] = "sigmoid",
    [DP_OP_TANH] = "tanh",
    [DP_OP_ADD] = "add",
    [DP_OP_SOFTMAX_LOSS] = "softmax loss",
    [DP_OP_LOGISTIC_LOSS] = "logistic loss",
    [DP_OP_SQUARED_LOSS] = "squared loss",
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

static bool is_broken(const struct dp_graph *graph)
{
    return graph->broken.status != DP_OK;
}

/* The next parameter, named; NULL when the graph is or thereby becomes broken. */
static struct dp_parameter *next_parameter(struct dp_graph *graph, const char *name)
{
    struct dp_error *err = &graph->broken;
    if (is_broken(graph))
        return NULL;
    if (graph->parameter_count == DP_GRAPH_PARAMETERS_MAX) {
        (void)dp_fail(err, DP_ARGUMENT, "parameter '%s': a graph holds at most %d parameters", name,
                      DP_GRAPH_PARAMETERS_MAX);
        return NULL;
    }
    if (strlen(name) > DP_TABLE_NAME_MAX) {
        (void)dp_fail(err, DP_ARGUMENT, "parameter '%s': a name has at most %d characters", name,
                      DP_TABLE_NAME_MAX);
        return NULL;
    }
    for (int i = 0; i < graph->parameter_count; i++) {
        if (strcmp(graph->parameters[i].table.name, name) == 0) {
            (void)dp_fail(err, DP_ARGUMENT, "parameter '%s' is declared twice: give each its own name", name);
            return NULL;
        }
    }
    struct dp_parameter *p = &graph->parameters[graph->parameter_count];
    *p = (struct dp_parameter){0};
    memcpy(p->table.name, name, strlen(name) + 1);
    p->table.optimizer = dp_optimizer_defaults(DP_OPT_SGD);
    return p;
}

int dp_graph_group(struct dp_graph *graph)
{
    if (is_broken(graph))
        return 0;
    if (graph->group_count == DP_BATCH_GROUPS_MAX) {
        (void)dp_fail(&graph->broken, DP_ARGUMENT, "a graph reads at most %u kinds of keys",
                      DP_BATCH_GROUPS_MAX);
        return 0;
    }
    return graph->group_count++;
}

int dp_graph_list(struct dp_graph *graph, int group, uint32_t each)
{
    if (is_broken(graph))
        return 0;
    if (group < 0 || group >= graph->group_count || graph->list_count == DP_BATCH_LISTS_MAX) {
        (void)dp_fail(&graph->broken, DP_ARGUMENT,
                      "list %d of group %d: there are %d groups, and at most %u lists", graph->list_count,
                      group, graph->group_count, DP_BATCH_LISTS_MAX);
        return 0;
    }
    graph->lists[graph->list_count] = (struct dp_graph_list){.group = (uint32_t)group, .each = each};
    return graph->list_count++;
}

int dp_graph_sparse(struct dp_graph *graph, int group, const char *name, uint32_t width,
                    struct dp_init_spec init)
{
    struct dp_parameter *p = next_parameter(graph, name);
    if (!p)
        return 0;
    if (group < 0 || group >= graph->group_count) {
        (void)dp_fail(&graph->broken, DP_ARGUMENT, "parameter '%s': there is no group %d", name, group);
        return 0;
    }
    if (width == 0 || width > DP_TABLE_DIM_MAX) {
        (void)dp_fail(&graph->broken, DP_ARGUMENT, "parameter '%s': width %" PRIu32 " is not 1 .. %d", name,
                      width, DP_TABLE_DIM_MAX);
        return 0;
    }
    p->sparse = true;
    p->group = (uint32_t)group;
    p->width = p->table.dim = width;
    p->table.init = init;
    return graph->parameter_count++;
}

/* Floats in one table row of a dense parameter of n floats.
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
    if (rows == 0 || rows > DP_GRAPH_WIDTH_MAX || width == 0 || width > DP_GRAPH_WIDTH_MAX) {
        (void)dp_fail(&graph->broken, DP_ARGUMENT,
                      "parameter '%s': shape [%" PRIu32 ", %" PRIu32 "] is not within 1 .. %u each", name,
                      rows, width, DP_GRAPH_WIDTH_MAX);
        return 0;
    }
    uint64_t n = (uint64_t)rows * width;
    if (n > DP_GRAPH_DENSE_MAX) {
        (void)dp_fail(&graph->broken, DP_ARGUMENT,
                      "parameter '%s': [%" PRIu32 ", %" PRIu32 "] are %" PRIu64
                      " weights, a dense parameter has at most %llu: make a layer narrower",
                      name, rows, width, n, DP_GRAPH_DENSE_MAX);
        return 0;
    }
    p->rows = rows;
    p->width = width;
    p->table.dim = dense_block(n);
    p->table.init = init;
    return graph->parameter_count++;
}

void dp_graph_set_optimizer(struct dp_graph *graph, const struct dp_optimizer_spec *optimizer, uint64_t seed)
{
    for (int i = 0; i < graph->parameter_count; i++) {
        graph->parameters[i].table.optimizer = *optimizer;
        graph->parameters[i].table.seed = seed;
    }
}

/* Whether an operation may be added with this input (-1: it has none). */
static bool may_add(struct dp_graph *graph, enum dp_op op, int x, int input_min)
{
    if (is_broken(graph))
        return false;
    if (graph->closed)
        (void)dp_fail(&graph->broken, DP_ARGUMENT, "%s: comes after the loss, which ends a graph",
                      dp_op_name(op));
    else if (graph->node_count == DP_GRAPH_NODES_MAX)
        (void)dp_fail(&graph->broken, DP_ARGUMENT, "%s: a graph holds at most %d operations", dp_op_name(op),
                      DP_GRAPH_NODES_MAX);
    else if (x < input_min || x >= graph->node_count)
        (void)dp_fail(&graph->broken, DP_ARGUMENT, "%s: its input %d is no operation before it",
                      dp_op_name(op), x);
    return !is_broken(graph);
}

/* The parameter of an operation, or NULL and a broken graph. */
static const struct dp_parameter *parameter_for(struct dp_graph *graph, enum dp_op op, int parameter,
                                                bool sparse)
{
    if (parameter < 0 || parameter >= graph->parameter_count) {
        (void)dp_fail(&graph->broken, DP_ARGUMENT, "%s: there is no parameter %d", dp_op_name(op), parameter);
        return NULL;
    }
    const struct dp_parameter *p = &graph->parameters[parameter];
    if (p->sparse != sparse) {
        (void)dp_fail(&graph->broken, DP_ARGUMENT, "%s: takes a %s parameter, and '%s' is %s", dp_op_name(op),
                      sparse ? "sparse" : "dense", p->table.name, p->sparse ? "sparse" : "dense");
        return NULL;
    }
    return p;
}

static int append(struct dp_graph *graph, struct dp_node node)
{
    graph->nodes[graph->node_count] = node;
    return graph->node_count++;
}

int dp_graph_input(struct dp_graph *graph, uint32_t width)
{
    if (!may_add(graph, DP_OP_INPUT_DENSE, -1, -1))
        return 0;
    if (width == 0 || width > DP_GRAPH_WIDTH_MAX) {
        (void)dp_fail(&graph->broken, DP_ARGUMENT, "input: width %" PRIu32 " is not 1 .. %u", width,
                      DP_GRAPH_WIDTH_MAX);
        return 0;
    }
    for (int i = 0; i < graph->node_count; i++) {
        const struct dp_node *before = &graph->nodes[i];
        if (before->op == DP_OP_INPUT_DENSE && before->width != width) {
            (void)dp_fail(&graph->broken, DP_ARGUMENT,
                          "input: width %" PRIu32 ", and an input before it has width %" PRIu32
                          ": a batch has one",
                          width, before->width);
            return 0;
        }
    }
    return append(graph, (struct dp_node){DP_OP_INPUT_DENSE, -1, -1, -1, -1, width});
}

int dp_graph_gather_sum(struct dp_graph *graph, int sparse_parameter, int list)
{
    if (!may_add(graph, DP_OP_GATHER_SUM, -1, -1))
        return 0;
    const struct dp_parameter *p = parameter_for(graph, DP_OP_GATHER_SUM, sparse_parameter, true);
    if (!p)
        return 0;
    if (list < 0 || list >= graph->list_count || graph->lists[list].group != p->group) {
        (void)dp_fail(&graph->broken, DP_ARGUMENT,
                      "gather_sum: list %d is not one of the keys of '%s', those of group %" PRIu32, list,
                      p->table.name, p->group);
        return 0;
    }
    return append(graph, (struct dp_node){DP_OP_GATHER_SUM, -1, -1, sparse_parameter, list, p->width});
}

int dp_graph_matmul(struct dp_graph *graph, int x, int dense_parameter)
{
    if (!may_add(graph, DP_OP_MATMUL, x, 0))
        return 0;
    const struct dp_parameter *p = parameter_for(graph, DP_OP_MATMUL, dense_parameter, false);
    if (!p)
        return 0;
    uint32_t width = graph->nodes[x].width;
    if (p->rows != width) {
        (void)dp_fail(&graph->broken, DP_ARGUMENT,
                      "matmul: x [B, %" PRIu32 "] times '%s' [%" PRIu32 ", %" PRIu32
                      "] does not fit: the parameter needs %" PRIu32 " rows",
                      width, p->table.name, p->rows, p->width, width);
        return 0;
    }
    return append(graph, (struct dp_node){DP_OP_MATMUL, x, -1, dense_parameter, -1, p->width});
}

int dp_graph_bias(struct dp_graph *graph, int x, int dense_parameter)
{
    if (!may_add(graph, DP_OP_BIAS, x, 0))
        return 0;
    const struct dp_parameter *p = parameter_for(graph, DP_OP_BIAS, dense_parameter, false);
    if (!p)
        return 0;
    uint32_t width = graph->nodes[x].width;
    if (p->rows != 1 || p->width != width) {
        (void)dp_fail(&graph->broken, DP_ARGUMENT,
                      "bias: x [B, %" PRIu32 "] plus '%s' [%" PRIu32 ", %" PRIu32
                      "] does not fit: the parameter must be [1, %" PRIu32 "]",
                      width, p->table.name, p->rows, p->width, width);
        return 0;
    }
    return append(graph, (struct dp_node){DP_OP_BIAS, x, -1, dense_parameter, -1, width});
}

int dp_graph_unary(struct dp_graph *graph, enum dp_op op, int x)
{
    if (!may_add(graph, op, x, 0))
        return 0;
    if (op != DP_OP_RELU && op != DP_OP_SIGMOID && op != DP_OP_TANH) {
        (void)dp_fail(&graph->broken, DP_ARGUMENT, "%s is not an operation on single elements",
                      dp_op_name(op));
        return 0;
    }
    return append(graph, (struct dp_node){op, x, -1, -1, -1, graph->nodes[x].width});
}

int dp_graph_add(struct dp_graph *graph, int x, int y)
{
    if (!may_add(graph, DP_OP_ADD, x, 0) || !may_add(graph, DP_OP_ADD, y, 0))
        return 0;
    if (graph->nodes[x].width != graph->nodes[y].width) {
        (void)dp_fail(&graph->broken, DP_ARGUMENT,
                      "add: [B, %" PRIu32 "] plus [B, %" PRIu32 "] does not fit: the widths must be equal",
                      graph->nodes[x].width, graph->nodes[y].width);
        return 0;
    }
    return append(graph, (struct dp_node){DP_OP_ADD, x, y, -1, -1, graph->nodes[x].width});
}

void dp_graph_loss(struct dp_graph *graph, enum dp_op op, int x)
{
    if (!may_add(graph, op, x, 0))
        return;
    uint32_t width = graph->nodes[x].width;
    if (op != DP_OP_SOFTMAX_LOSS && op != DP_OP_LOGISTIC_LOSS && op != DP_OP_SQUARED_LOSS)
        (void)dp_fail(&graph->broken, DP_ARGUMENT, "%s is not a loss", dp_op_name(op));
    else if (op == DP_OP_SOFTMAX_LOSS && width < 2)
        (void)dp_fail(&graph->broken, DP_ARGUMENT,
                      "softmax loss: x [B, 1] has one class: it needs two or more; one column takes the "
                      "logistic or squared loss");
    else if (op != DP_OP_SOFTMAX_LOSS && width != 1)
        (void)dp_fail(&graph->broken, DP_ARGUMENT, "%s: x [B, %" PRIu32 "] must be [B, 1]", dp_op_name(op),
                      width);
    if (is_broken(graph))
        return;
    (void)append(graph, (struct dp_node){op, x, -1, -1, -1, 1});
    graph->closed = true;
}

/* Every node but the loss, and every parameter, has a user: since inputs come before users, each then leads
 * to the loss. */
static enum dp_status check_used(const struct dp_graph *graph, struct dp_error *err)
{
    bool node_used[DP_GRAPH_NODES_MAX] = {false}, parameter_used[DP_GRAPH_PARAMETERS_MAX] = {false};
    bool list_used[DP_BATCH_LISTS_MAX] = {false};
    for (int i = 0; i < graph->node_count; i++) {
        const struct dp_node *node = &graph->nodes[i];
        if (node->input >= 0)
            node_used[node->input] = true;
        if (node->other >= 0)
            node_used[node->other] = true;
        if (node->parameter >= 0)
            parameter_used[node->parameter] = true;
        if (node->list >= 0)
            list_used[node->list] = true;
    }
    for (int i = 0; i < graph->node_count - 1; i++)
        if (!node_used[i])
            return dp_fail(err, DP_ARGUMENT, "operation %d (%s) is used by none: remove it", i,
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
    if (is_broken(graph))
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
    return graph->nodes[graph->node_count - 1].input;
}
