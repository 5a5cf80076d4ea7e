/* Declaring operations: each checks its shapes and appends its node. */
#include "worker/compute/graph_inner.h"

#include <inttypes.h>

/* Whether an operation may be added. Its inputs are operations before it, and the loss comes last. */
static bool may_add(struct dp_graph *graph, enum dp_op op, const int *x, int inputs)
{
    if (dp_graph_is_broken(graph))
        return false;
    DP_ASSERT(!graph->closed);
    for (int i = 0; i < inputs; i++)
        DP_ASSERT(x[i] >= 0 && x[i] < graph->node_count);
    if (graph->node_count == DP_GRAPH_NODES_MAX)
        return DP_GRAPH_REFUSE(graph, "%s: a graph holds at most %d operations", dp_op_name(op),
                               DP_GRAPH_NODES_MAX);
    return true;
}

static bool may_add_one(struct dp_graph *graph, enum dp_op op, int x)
{
    return may_add(graph, op, &x, 1);
}

static const struct dp_parameter *parameter_for(struct dp_graph *graph, int parameter, bool sparse)
{
    DP_ASSERT(parameter >= 0 && parameter < graph->parameter_count);
    DP_ASSERT(graph->parameters[parameter].sparse == sparse);
    return &graph->parameters[parameter];
}

static struct dp_node node_of(enum dp_op op, uint32_t width)
{
    return (struct dp_node){.op = op, .parameter = -1, .list = -1, .width = width};
}

static int append(struct dp_graph *graph, struct dp_node node)
{
    graph->nodes[graph->node_count] = node;
    return graph->node_count++;
}

static int append_one(struct dp_graph *graph, struct dp_node node, int x)
{
    node.inputs = 1;
    node.input[0] = x;
    return append(graph, node);
}

static int append_two(struct dp_graph *graph, struct dp_node node, int x, int y)
{
    node.inputs = 2;
    node.input[0] = x;
    node.input[1] = y;
    return append(graph, node);
}

int dp_graph_input(struct dp_graph *graph, uint32_t width)
{
    if (!may_add(graph, DP_OP_INPUT_DENSE, NULL, 0))
        return 0;
    if (width == 0 || width > DP_GRAPH_WIDTH_MAX)
        return DP_GRAPH_REFUSE(graph, "input: width %" PRIu32 " is not 1 .. %u", width, DP_GRAPH_WIDTH_MAX);
    for (int i = 0; i < graph->node_count; i++)
        DP_ASSERT(graph->nodes[i].op != DP_OP_INPUT_DENSE || graph->nodes[i].width == width);
    return append(graph, node_of(DP_OP_INPUT_DENSE, width));
}

/* ---- rows of sparse parameters */

static int gather(struct dp_graph *graph, enum dp_op op, int sparse_parameter, int list)
{
    if (!may_add(graph, op, NULL, 0))
        return 0;
    const struct dp_parameter *p = parameter_for(graph, sparse_parameter, true);
    DP_ASSERT(list >= 0 && list < graph->list_count && graph->lists[list].group == p->group);
    uint64_t width = p->width;
    if (op == DP_OP_GATHER) {
        DP_ASSERT(graph->lists[list].each > 0); /* a fixed number of entries an example */
        width *= graph->lists[list].each;
    }
    if (width > DP_GRAPH_WIDTH_MAX)
        return DP_GRAPH_REFUSE(graph,
                               "gather: list %d has %" PRIu32 " entries an example of width %" PRIu32
                               ": expected 1 .. %u columns",
                               list, graph->lists[list].each, p->width, DP_GRAPH_WIDTH_MAX);
    struct dp_node node = node_of(op, op == DP_OP_INTERACTIONS ? 1 : (uint32_t)width);
    node.parameter = sparse_parameter;
    node.list = list;
    return append(graph, node);
}

int dp_graph_gather_sum(struct dp_graph *graph, int sparse_parameter, int list)
{
    return gather(graph, DP_OP_GATHER_SUM, sparse_parameter, list);
}

int dp_graph_gather_mean(struct dp_graph *graph, int sparse_parameter, int list)
{
    return gather(graph, DP_OP_GATHER_MEAN, sparse_parameter, list);
}

int dp_graph_gather(struct dp_graph *graph, int sparse_parameter, int list)
{
    return gather(graph, DP_OP_GATHER, sparse_parameter, list);
}

int dp_graph_interactions(struct dp_graph *graph, int sparse_parameter, int list)
{
    return gather(graph, DP_OP_INTERACTIONS, sparse_parameter, list);
}

/* ---- with dense parameters */

int dp_graph_matmul(struct dp_graph *graph, int x, int dense_parameter)
{
    if (!may_add_one(graph, DP_OP_MATMUL, x))
        return 0;
    const struct dp_parameter *p = parameter_for(graph, dense_parameter, false);
    uint32_t width = graph->nodes[x].width;
    if (p->rows != width)
        return DP_GRAPH_REFUSE(graph,
                               "matmul: x [B, %" PRIu32 "] times '%s' [%" PRIu32 ", %" PRIu32
                               "] does not fit: the parameter needs %" PRIu32 " rows",
                               width, p->table.name, p->rows, p->width, width);
    struct dp_node node = node_of(DP_OP_MATMUL, p->width);
    node.parameter = dense_parameter;
    return append_one(graph, node, x);
}

int dp_graph_bias(struct dp_graph *graph, int x, int dense_parameter)
{
    if (!may_add_one(graph, DP_OP_BIAS, x))
        return 0;
    const struct dp_parameter *p = parameter_for(graph, dense_parameter, false);
    uint32_t width = graph->nodes[x].width;
    if (p->rows != 1 || p->width != width)
        return DP_GRAPH_REFUSE(graph,
                               "bias: x [B, %" PRIu32 "] plus '%s' [%" PRIu32 ", %" PRIu32
                               "] does not fit: the parameter must be [1, %" PRIu32 "]",
                               width, p->table.name, p->rows, p->width, width);
    struct dp_node node = node_of(DP_OP_BIAS, width);
    node.parameter = dense_parameter;
    return append_one(graph, node, x);
}

/* ---- on elements and columns */

int dp_graph_unary(struct dp_graph *graph, enum dp_op op, int x)
{
    DP_ASSERT(op == DP_OP_RELU || op == DP_OP_SIGMOID || op == DP_OP_TANH);
    return may_add_one(graph, op, x) ? append_one(graph, node_of(op, graph->nodes[x].width), x) : 0;
}

int dp_graph_dropout(struct dp_graph *graph, int x, float rate)
{
    DP_ASSERT(rate >= 0 && rate < 1);
    if (!may_add_one(graph, DP_OP_DROPOUT, x))
        return 0;
    struct dp_node node = node_of(DP_OP_DROPOUT, graph->nodes[x].width);
    node.rate = rate;
    return append_one(graph, node, x);
}

int dp_graph_slice(struct dp_graph *graph, int x, uint32_t from, uint32_t width)
{
    if (!may_add_one(graph, DP_OP_SLICE, x))
        return 0;
    uint32_t has = graph->nodes[x].width;
    if (width == 0 || width > has || from > has - width)
        return DP_GRAPH_REFUSE(graph, "slice: columns %" PRIu32 " .. %" PRIu64 " of x [B, %" PRIu32 "]", from,
                               (uint64_t)from + width, has);
    struct dp_node node = node_of(DP_OP_SLICE, width);
    node.from = from;
    return append_one(graph, node, x);
}

static bool equal_widths(struct dp_graph *graph, enum dp_op op, int x, int y)
{
    const int inputs[2] = {x, y};
    if (!may_add(graph, op, inputs, 2))
        return false;
    if (graph->nodes[x].width != graph->nodes[y].width)
        return DP_GRAPH_REFUSE(
            graph, "%s: [B, %" PRIu32 "] and [B, %" PRIu32 "] do not fit: the widths must be equal",
            dp_op_name(op), graph->nodes[x].width, graph->nodes[y].width);
    return true;
}

int dp_graph_add(struct dp_graph *graph, int x, int y)
{
    if (!equal_widths(graph, DP_OP_ADD, x, y))
        return 0;
    return append_two(graph, node_of(DP_OP_ADD, graph->nodes[x].width), x, y);
}

int dp_graph_multiply(struct dp_graph *graph, int x, int y)
{
    if (!equal_widths(graph, DP_OP_MULTIPLY, x, y))
        return 0;
    return append_two(graph, node_of(DP_OP_MULTIPLY, graph->nodes[x].width), x, y);
}

int dp_graph_dot(struct dp_graph *graph, int x, int y)
{
    if (!equal_widths(graph, DP_OP_DOT, x, y))
        return 0;
    return append_two(graph, node_of(DP_OP_DOT, 1), x, y);
}

int dp_graph_concat(struct dp_graph *graph, const int *x, int count)
{
    uint64_t width = 0;
    DP_ASSERT(count >= 1 && count <= DP_NODE_INPUTS_MAX);
    if (!may_add(graph, DP_OP_CONCAT, x, count))
        return 0;
    for (int i = 0; i < count; i++)
        width += graph->nodes[x[i]].width;
    if (width > DP_GRAPH_WIDTH_MAX)
        return DP_GRAPH_REFUSE(graph, "concat: %" PRIu64 " columns are more than %u", width,
                               DP_GRAPH_WIDTH_MAX);
    struct dp_node node = node_of(DP_OP_CONCAT, (uint32_t)width);
    for (node.inputs = 0; node.inputs < count; node.inputs++)
        node.input[node.inputs] = x[node.inputs];
    return append(graph, node);
}

int dp_graph_pairs(struct dp_graph *graph, int x, uint32_t vectors)
{
    if (!may_add_one(graph, DP_OP_PAIRS, x))
        return 0;
    uint32_t width = graph->nodes[x].width;
    uint64_t pairs = (uint64_t)vectors * (vectors - 1) / 2;
    if (vectors < 2 || width % vectors != 0 || pairs > DP_GRAPH_WIDTH_MAX)
        return DP_GRAPH_REFUSE(
            graph, "pairs: x [B, %" PRIu32 "] is not %" PRIu32 " vectors (2 or more) of equal width", width,
            vectors);
    struct dp_node node = node_of(DP_OP_PAIRS, (uint32_t)pairs);
    node.from = vectors;
    return append_one(graph, node, x);
}

int dp_graph_near(struct dp_graph *graph, int x, int sparse_parameter, int list)
{
    if (!may_add_one(graph, DP_OP_NEAR, x))
        return 0;
    const struct dp_parameter *p = parameter_for(graph, sparse_parameter, true);
    DP_ASSERT(list >= 0 && list < graph->list_count && graph->lists[list].group == p->group);
    if (graph->nodes[x].width != p->width)
        return DP_GRAPH_REFUSE(graph, "near: x [B, %" PRIu32 "] and rows of %" PRIu32 " do not fit",
                               graph->nodes[x].width, p->width);
    struct dp_node node = node_of(DP_OP_NEAR, 1);
    node.parameter = sparse_parameter;
    node.list = list;
    return append_one(graph, node, x);
}

/* ---- losses */

void dp_graph_loss(struct dp_graph *graph, enum dp_op op, int x)
{
    DP_ASSERT(op == DP_OP_SOFTMAX_LOSS || op == DP_OP_LOGISTIC_LOSS || op == DP_OP_SQUARED_LOSS ||
              op == DP_OP_MEAN_LOSS);
    if (!may_add_one(graph, op, x))
        return;
    uint32_t width = graph->nodes[x].width;
    if (op == DP_OP_SOFTMAX_LOSS && width < 2)
        (void)DP_GRAPH_REFUSE(
            graph, "softmax loss: x [B, 1] has one class: it needs two or more; one column takes the "
                   "logistic or squared loss");
    else if (op != DP_OP_SOFTMAX_LOSS && width != 1)
        (void)DP_GRAPH_REFUSE(graph, "%s: x [B, %" PRIu32 "] must be [B, 1]", dp_op_name(op), width);
    if (dp_graph_is_broken(graph))
        return;
    (void)append_one(graph, node_of(op, 1), x);
    graph->closed = true;
}

void dp_graph_loss_of_pair(struct dp_graph *graph, enum dp_op op, int x, int y)
{
    DP_ASSERT(op == DP_OP_BPR_LOSS && (x != y || dp_graph_is_broken(graph)));
    if (!equal_widths(graph, op, x, y))
        return;
    DP_ASSERT(graph->nodes[x].width == 1);
    (void)append_two(graph, node_of(op, 1), x, y);
    graph->closed = true;
}

void dp_graph_recompute(struct dp_graph *graph, int node)
{
    if (dp_graph_is_broken(graph))
        return;
    DP_ASSERT(node >= 0 && node < graph->node_count && graph->nodes[node].op != DP_OP_INPUT_DENSE &&
              graph->nodes[node].op < DP_OP_SOFTMAX_LOSS);
    graph->nodes[node].recomputed = true;
}
