#include "tests/lib/oracle.h"

#include <math.h>
#include <stdlib.h>

struct dual {
    double v, d;
};

struct run {
    const struct dp_graph *graph;
    const struct dp_batch *batch;
    double *const *weights;
    int parameter;
    size_t index;
    struct dual *values[DP_GRAPH_NODES_MAX];
};

static struct dual plus(struct dual a, struct dual b)
{
    return (struct dual){a.v + b.v, a.d + b.d};
}

static struct dual times(struct dual a, struct dual b)
{
    return (struct dual){a.v * b.v, a.d * b.v + a.v * b.d};
}

static struct dual constant(double v)
{
    return (struct dual){v, 0};
}

static struct dual weight(const struct run *run, int parameter, size_t index)
{
    bool seeded = parameter == run->parameter && index == run->index;
    return (struct dual){run->weights[parameter][index], seeded ? 1 : 0};
}

static struct dual sigmoid(struct dual x)
{
    double s = 1 / (1 + exp(-x.v));
    return (struct dual){s, s * (1 - s) * x.d};
}

/* Column c of the row of entry j: value * P[slot]. */
static struct dual entry(const struct run *run, const struct dp_node *node, uint32_t j, uint32_t c)
{
    const struct dp_batch_list *list = &run->batch->list[node->list];
    uint32_t width = dp_graph_parameter(run->graph, node->parameter)->width;
    return times(constant((double)list->values[j]),
                 weight(run, node->parameter, (size_t)list->slots[j] * width + c));
}

static struct dual entry_sum(const struct run *run, const struct dp_node *node, uint32_t i, uint32_t c)
{
    struct dual sum = {0, 0};
    const struct dp_batch_list *list = &run->batch->list[node->list];
    uint32_t count = list->offsets[i + 1] - list->offsets[i];
    for (uint32_t j = list->offsets[i]; j < list->offsets[i + 1]; j++)
        sum = plus(sum, entry(run, node, j, c));
    return node->op == DP_OP_GATHER_MEAN && count > 0 ? times(constant(1.0 / count), sum) : sum;
}

/* The sum over pairs, pair by pair. */
static struct dual interactions(const struct run *run, const struct dp_node *node, uint32_t i)
{
    struct dual sum = {0, 0};
    const struct dp_batch_list *list = &run->batch->list[node->list];
    uint32_t width = dp_graph_parameter(run->graph, node->parameter)->width;
    for (uint32_t j = list->offsets[i]; j < list->offsets[i + 1]; j++)
        for (uint32_t k = j + 1; k < list->offsets[i + 1]; k++)
            for (uint32_t c = 0; c < width; c++)
                sum = plus(sum, times(entry(run, node, j, c), entry(run, node, k, c)));
    return sum;
}

/* Column c of input k in example i. */
static struct dual of_input(const struct run *run, const struct dp_node *node, int k, uint32_t i, uint32_t c)
{
    return run->values[node->input[k]][(size_t)i * dp_graph_node(run->graph, node->input[k])->width + c];
}

static struct dual product(const struct run *run, const struct dp_node *node, uint32_t i, uint32_t c)
{
    uint32_t k = dp_graph_node(run->graph, node->input[0])->width;
    struct dual sum = {0, 0};
    for (uint32_t at = 0; at < k; at++)
        sum = plus(sum, times(of_input(run, node, 0, i, at),
                              weight(run, node->parameter, (size_t)at * node->width + c)));
    return sum;
}

static struct dual dot(const struct run *run, const struct dp_node *node, uint32_t i)
{
    struct dual sum = {0, 0};
    for (uint32_t c = 0; c < dp_graph_node(run->graph, node->input[0])->width; c++)
        sum = plus(sum, times(of_input(run, node, 0, i, c), of_input(run, node, 1, i, c)));
    return sum;
}

static struct dual concat(const struct run *run, const struct dp_node *node, uint32_t i, uint32_t c)
{
    int k = 0;
    for (; c >= dp_graph_node(run->graph, node->input[k])->width; k++)
        c -= dp_graph_node(run->graph, node->input[k])->width;
    return of_input(run, node, k, i, c);
}

static struct dual pair(const struct run *run, const struct dp_node *node, uint32_t i, uint32_t at)
{
    uint32_t vectors = node->from, width = dp_graph_node(run->graph, node->input[0])->width / vectors, a = 0;
    for (; at >= vectors - 1 - a; a++)
        at -= vectors - 1 - a;
    struct dual sum = {0, 0};
    for (uint32_t c = 0; c < width; c++)
        sum = plus(sum, times(of_input(run, node, 0, i, a * width + c),
                              of_input(run, node, 0, i, (a + 1 + at) * width + c)));
    return sum;
}

static struct dual near_sum(const struct run *run, const struct dp_node *node, uint32_t i)
{
    const struct dp_batch_list *list = &run->batch->list[node->list];
    uint32_t width = dp_graph_parameter(run->graph, node->parameter)->width;
    struct dual sum = {0, 0};
    for (uint32_t j = list->offsets[i]; j < list->offsets[i + 1]; j++) {
        double value = (double)list->values[j];
        struct dual dot = {0, 0};
        for (uint32_t c = 0; c < width; c++)
            dot = plus(dot, times(of_input(run, node, 0, i, c),
                                  weight(run, node->parameter, (size_t)list->slots[j] * width + c)));
        struct dual wrong = times(constant(value > 0 ? -1 : 1), dot);
        double softplus = wrong.v > 0 ? wrong.v + log1p(exp(-wrong.v)) : log1p(exp(wrong.v));
        sum = plus(sum, times(constant(fabs(value)), (struct dual){softplus, sigmoid(wrong).v * wrong.d}));
    }
    return sum;
}

static struct dual element(const struct run *run, const struct dp_node *node, uint32_t i, uint32_t c)
{
    switch (node->op) {
    case DP_OP_INPUT_DENSE:
        return constant((double)run->batch->dense[(size_t)i * node->width + c]);
    case DP_OP_GATHER_SUM:
    case DP_OP_GATHER_MEAN:
        return entry_sum(run, node, i, c);
    case DP_OP_GATHER: {
        uint32_t width = dp_graph_parameter(run->graph, node->parameter)->width;
        return entry(run, node, run->batch->list[node->list].offsets[i] + c / width, c % width);
    }
    case DP_OP_INTERACTIONS:
        return interactions(run, node, i);
    case DP_OP_MATMUL:
        return product(run, node, i, c);
    case DP_OP_BIAS:
        return plus(of_input(run, node, 0, i, c), weight(run, node->parameter, c));
    case DP_OP_RELU:
        return of_input(run, node, 0, i, c).v > 0 ? of_input(run, node, 0, i, c) : constant(0);
    case DP_OP_SIGMOID:
        return sigmoid(of_input(run, node, 0, i, c));
    case DP_OP_TANH: {
        struct dual x = of_input(run, node, 0, i, c);
        return (struct dual){tanh(x.v), (1 - tanh(x.v) * tanh(x.v)) * x.d};
    }
    case DP_OP_SLICE:
        return of_input(run, node, 0, i, node->from + c);
    case DP_OP_ADD:
        return plus(of_input(run, node, 0, i, c), of_input(run, node, 1, i, c));
    case DP_OP_MULTIPLY:
        return times(of_input(run, node, 0, i, c), of_input(run, node, 1, i, c));
    case DP_OP_DOT:
        return dot(run, node, i);
    case DP_OP_CONCAT:
        return concat(run, node, i, c);
    case DP_OP_PAIRS:
        return pair(run, node, i, c);
    case DP_OP_NEAR:
        return near_sum(run, node, i);
    default:
        abort();
    }
}

static struct dual loss_of(const struct run *run, const struct dp_node *node, uint32_t i)
{
    uint32_t width = dp_graph_node(run->graph, node->input[0])->width;
    const struct dual *x = run->values[node->input[0]] + (size_t)i * width;
    double y = (double)run->batch->labels[i];
    if (node->op == DP_OP_SQUARED_LOSS)
        return times(plus(x[0], constant(-y)), plus(x[0], constant(-y)));
    if (node->op == DP_OP_MEAN_LOSS)
        return x[0];
    if (node->op == DP_OP_BPR_LOSS) {
        struct dual below = plus(run->values[node->input[1]][i], times(constant(-1), x[0]));
        double softplus = below.v > 0 ? below.v + log1p(exp(-below.v)) : log1p(exp(below.v));
        return (struct dual){softplus, sigmoid(below).v * below.d};
    }
    if (node->op == DP_OP_LOGISTIC_LOSS) {
        double softplus = x[0].v > 0 ? x[0].v + log1p(exp(-x[0].v)) : log1p(exp(x[0].v));
        return (struct dual){softplus - y * x[0].v, (sigmoid(x[0]).v - y) * x[0].d};
    }
    double max = x[0].v;
    for (uint32_t c = 1; c < width; c++)
        max = fmax(max, x[c].v);
    struct dual sum = {0, 0};
    for (uint32_t c = 0; c < width; c++) {
        double e = exp(x[c].v - max);
        sum = plus(sum, (struct dual){e, e * x[c].d});
    }
    struct dual of_label = x[(size_t)y];
    return (struct dual){log(sum.v) + max - of_label.v, sum.d / sum.v - of_label.d};
}

struct dp_oracle_result dp_oracle_run(const struct dp_graph *graph, const struct dp_batch *batch,
                                      double *const *weights, int parameter, size_t index, double *output)
{
    struct run run = {graph, batch, weights, parameter, index, {NULL}};
    int nodes = dp_graph_nodes(graph);
    for (int n = 0; n < nodes - 1; n++) {
        const struct dp_node *node = dp_graph_node(graph, n);
        run.values[n] = calloc((size_t)batch->examples * node->width, sizeof *run.values[n]);
        if (!run.values[n])
            abort();
        for (uint32_t i = 0; i < batch->examples; i++)
            for (uint32_t c = 0; c < node->width; c++)
                run.values[n][(size_t)i * node->width + c] = element(&run, node, i, c);
    }
    struct dual loss = {0, 0};
    for (uint32_t i = 0; i < batch->examples; i++)
        loss = plus(loss, loss_of(&run, dp_graph_node(graph, nodes - 1), i));
    int last = dp_graph_output(graph);
    size_t n = (size_t)batch->examples * dp_graph_node(graph, last)->width;
    for (size_t i = 0; output && i < n; i++)
        output[i] = run.values[last][i].v;
    for (int i = 0; i < nodes - 1; i++)
        free(run.values[i]);
    return (struct dp_oracle_result){loss.v / batch->examples, loss.d / batch->examples};
}

double dp_oracle_difference(const struct dp_graph *graph, const struct dp_batch *batch,
                            double *const *weights, int parameter, size_t index)
{
    double kept = weights[parameter][index], h = 1e-6 * fmax(1, fabs(kept));
    weights[parameter][index] = kept + h;
    double above = dp_oracle_run(graph, batch, weights, -1, 0, NULL).loss;
    weights[parameter][index] = kept - h;
    double below = dp_oracle_run(graph, batch, weights, -1, 0, NULL).loss;
    weights[parameter][index] = kept;
    return (above - below) / (2 * h);
}
