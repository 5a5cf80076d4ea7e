/* Declaring operations: each checks its shapes and appends its node. */
#include "worker/compute/graph_inner.h"

#include <inttypes.h>

/* Whether an operation may be added with these inputs. */
static bool may_add(struct dp_graph *graph, enum dp_op op, const int *x, int inputs)
{
    if (dp_graph_is_broken(graph))
        return false;
    if (graph->closed)
        (void)dp_fail(&graph->broken, DP_ARGUMENT, "%s: comes after the loss, which ends a graph",
                      dp_op_name(op));
    else if (graph->node_count == DP_GRAPH_NODES_MAX)
        (void)dp_fail(&graph->broken, DP_ARGUMENT, "%s: a graph holds at most %d operations", dp_op_name(op),
                      DP_GRAPH_NODES_MAX);
    for (int i = 0; !dp_graph_is_broken(graph) && i < inputs; i++)
        if (x[i] < 0 || x[i] >= graph->node_count)
            (void)dp_fail(&graph->broken, DP_ARGUMENT, "%s: its input %d is no operation before it",
                          dp_op_name(op), x[i]);
    return !dp_graph_is_broken(graph);
}

static bool may_add_one(struct dp_graph *graph, enum dp_op op, int x)
{
    return may_add(graph, op, &x, 1);
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
    return append(graph, node_of(DP_OP_INPUT_DENSE, width));
}

/* ---- rows of sparse parameters */

static int gather(struct dp_graph *graph, enum dp_op op, int sparse_parameter, int list)
{
    if (!may_add(graph, op, NULL, 0))
        return 0;
    const struct dp_parameter *p = parameter_for(graph, op, sparse_parameter, true);
    if (!p)
        return 0;
    if (list < 0 || list >= graph->list_count || graph->lists[list].group != p->group) {
        (void)dp_fail(&graph->broken, DP_ARGUMENT,
                      "%s: list %d is not one of the keys of '%s', those of group %" PRIu32, dp_op_name(op),
                      list, p->table.name, p->group);
        return 0;
    }
    uint64_t width = p->width;
    if (op == DP_OP_GATHER)
        width *= graph->lists[list].each;
    if (op == DP_OP_GATHER && (width == 0 || width > DP_GRAPH_WIDTH_MAX)) {
        (void)dp_fail(&graph->broken, DP_ARGUMENT,
                      "gather: list %d has %" PRIu32
                      " entries an example (0: their number varies), of width %" PRIu32
                      ": expected a fixed number, and 1 .. %u columns",
                      list, graph->lists[list].each, p->width, DP_GRAPH_WIDTH_MAX);
        return 0;
    }
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
    struct dp_node node = node_of(DP_OP_MATMUL, p->width);
    node.parameter = dense_parameter;
    return append_one(graph, node, x);
}

int dp_graph_bias(struct dp_graph *graph, int x, int dense_parameter)
{
    if (!may_add_one(graph, DP_OP_BIAS, x))
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
    struct dp_node node = node_of(DP_OP_BIAS, width);
    node.parameter = dense_parameter;
    return append_one(graph, node, x);
}

/* ---- on elements and columns */

int dp_graph_unary(struct dp_graph *graph, enum dp_op op, int x)
{
    if (!may_add_one(graph, op, x))
        return 0;
    if (op != DP_OP_RELU && op != DP_OP_SIGMOID && op != DP_OP_TANH) {
        (void)dp_fail(&graph->broken, DP_ARGUMENT, "%s is not an operation on single elements",
                      dp_op_name(op));
        return 0;
    }
    return append_one(graph, node_of(op, graph->nodes[x].width), x);
}

int dp_graph_dropout(struct dp_graph *graph, int x, float rate)
{
    if (!may_add_one(graph, DP_OP_DROPOUT, x))
        return 0;
    if (!(rate >= 0 && rate < 1)) {
        (void)dp_fail(&graph->broken, DP_ARGUMENT, "dropout: rate %g is not 0 or more and below 1",
                      (double)rate);
        return 0;
    }
    struct dp_node node = node_of(DP_OP_DROPOUT, graph->nodes[x].width);
    node.rate = rate;
    return append_one(graph, node, x);
}

int dp_graph_slice(struct dp_graph *graph, int x, uint32_t from, uint32_t width)
{
    if (!may_add_one(graph, DP_OP_SLICE, x))
        return 0;
    uint32_t has = graph->nodes[x].width;
    if (width == 0 || width > has || from > has - width) {
        (void)dp_fail(&graph->broken, DP_ARGUMENT,
                      "slice: columns %" PRIu32 " .. %" PRIu64 " of x [B, %" PRIu32 "]", from,
                      (uint64_t)from + width, has);
        return 0;
    }
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
        (void)dp_fail(&graph->broken, DP_ARGUMENT,
                      "%s: [B, %" PRIu32 "] and [B, %" PRIu32 "] do not fit: the widths must be equal",
                      dp_op_name(op), graph->nodes[x].width, graph->nodes[y].width);
    return !dp_graph_is_broken(graph);
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
    if (!dp_graph_is_broken(graph) && (count < 1 || count > DP_NODE_INPUTS_MAX))
        (void)dp_fail(&graph->broken, DP_ARGUMENT, "concat: of %d operations, 1 .. %d are possible", count,
                      DP_NODE_INPUTS_MAX);
    if (!may_add(graph, DP_OP_CONCAT, x, count))
        return 0;
    for (int i = 0; i < count; i++)
        width += graph->nodes[x[i]].width;
    if (width > DP_GRAPH_WIDTH_MAX) {
        (void)dp_fail(&graph->broken, DP_ARGUMENT, "concat: %" PRIu64 " columns are more than %u", width,
                      DP_GRAPH_WIDTH_MAX);
        return 0;
    }
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
    if (vectors < 2 || width % vectors != 0 || pairs > DP_GRAPH_WIDTH_MAX) {
        (void)dp_fail(&graph->broken, DP_ARGUMENT,
                      "pairs: x [B, %" PRIu32 "] is not %" PRIu32 " vectors (2 or more) of equal width",
                      width, vectors);
        return 0;
    }
    struct dp_node node = node_of(DP_OP_PAIRS, (uint32_t)pairs);
    node.from = vectors;
    return append_one(graph, node, x);
}

/* ---- losses */

void dp_graph_loss(struct dp_graph *graph, enum dp_op op, int x)
{
    if (!may_add_one(graph, op, x))
        return;
    uint32_t width = graph->nodes[x].width;
    if (op != DP_OP_SOFTMAX_LOSS && op != DP_OP_LOGISTIC_LOSS && op != DP_OP_SQUARED_LOSS)
        (void)dp_fail(&graph->broken, DP_ARGUMENT, "%s is not a loss of one input", dp_op_name(op));
    else if (op == DP_OP_SOFTMAX_LOSS && width < 2)
        (void)dp_fail(&graph->broken, DP_ARGUMENT,
                      "softmax loss: x [B, 1] has one class: it needs two or more; one column takes the "
                      "logistic or squared loss");
    else if (op != DP_OP_SOFTMAX_LOSS && width != 1)
        (void)dp_fail(&graph->broken, DP_ARGUMENT, "%s: x [B, %" PRIu32 "] must be [B, 1]", dp_op_name(op),
                      width);
    if (dp_graph_is_broken(graph))
        return;
    (void)append_one(graph, node_of(op, 1), x);
    graph->closed = true;
}

void dp_graph_loss_of_pair(struct dp_graph *graph, enum dp_op op, int x, int y)
{
    if (!equal_widths(graph, op, x, y))
        return;
    if (op != DP_OP_BPR_LOSS)
        (void)dp_fail(&graph->broken, DP_ARGUMENT, "%s is not a loss of two inputs", dp_op_name(op));
    else if (x == y)
        (void)dp_fail(&graph->broken, DP_ARGUMENT, "bpr loss: its inputs are one and the same operation");
    else if (graph->nodes[x].width != 1)
        (void)dp_fail(&graph->broken, DP_ARGUMENT, "bpr loss: x [B, %" PRIu32 "] must be [B, 1]",
                      graph->nodes[x].width);
    if (dp_graph_is_broken(graph))
        return;
    (void)append_two(graph, node_of(op, 1), x, y);
    graph->closed = true;
}

void dp_graph_recompute(struct dp_graph *graph, int node)
{
    if (dp_graph_is_broken(graph))
        return;
    if (node < 0 || node >= graph->node_count || graph->nodes[node].op == DP_OP_INPUT_DENSE ||
        graph->nodes[node].op >= DP_OP_SOFTMAX_LOSS)
        (void)dp_fail(&graph->broken, DP_ARGUMENT,
                      "recompute: %d is no operation between the input and the loss", node);
    else
        graph->nodes[node].recomputed = true;
}
