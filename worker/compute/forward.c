/* Computes each operation of the tape. */
#include "worker/compute/program_inner.h"

#include "common/model/mix.h"

uint64_t dp_dropout_seed(const struct dp_program *program, int node)
{
    return dp_mix(program->dropout_seed + (uint64_t)node);
}

static void forward_rows(struct dp_program *program, int at, const struct dp_node *node, float *out)
{
    const struct dp_backend_ops *ops = program->backend.ops;
    void *self = program->backend.self;
    const struct dp_entries *e = &program->entries[node->list];
    const float *p = program->weights[node->parameter];
    uint32_t width = dp_graph_parameter(program->graph, node->parameter)->width;
    if (node->op == DP_OP_GATHER)
        ops->gather(self, e, p, width, out);
    else if (node->op == DP_OP_INTERACTIONS)
        ops->interactions(self, e, p, width, program->plan.nodes[at].saved, out);
    else
        ops->gather_sum(self, e, p, width, node->op == DP_OP_GATHER_MEAN, out);
}

static void forward_concat(struct dp_program *program, const struct dp_node *node, float *out)
{
    uint32_t to = 0;
    for (int k = 0; k < node->inputs; k++) {
        uint32_t width = dp_graph_node(program->graph, node->input[k])->width;
        const struct dp_column_copy columns = {
            .from_width = width, .to_width = node->width, .to = to, .count = width};
        program->backend.ops->columns(program->backend.self, dp_value_of(program, node->input[k]), &columns,
                                      program->examples, out, false);
        to += width;
    }
}

static void forward_loss(struct dp_program *program, const struct dp_node *node)
{
    const struct dp_backend_ops *ops = program->backend.ops;
    void *self = program->backend.self;
    const float *x = dp_value_of(program, node->input[0]);
    float *dx = program->plan.nodes[node->input[0]].gradient, *loss = program->at->loss;
    if (node->op == DP_OP_SOFTMAX_LOSS)
        ops->softmax_loss(self, x, program->labels, program->example_weights, program->examples,
                          dp_graph_node(program->graph, node->input[0])->width, loss, dx);
    else if (node->op == DP_OP_LOGISTIC_LOSS)
        ops->logistic_loss(self, x, program->labels, program->example_weights, program->examples, loss, dx);
    else if (node->op == DP_OP_SQUARED_LOSS)
        ops->squared_loss(self, x, program->labels, program->example_weights, program->examples, loss, dx);
    else if (node->op == DP_OP_MEAN_LOSS)
        ops->mean_loss(self, x, program->examples, loss, dx);
    else
        ops->bpr_loss(self, x, dp_value_of(program, node->input[1]), program->examples, loss, dx,
                      program->plan.nodes[node->input[1]].gradient);
}

static void forward_elements(struct dp_program *program, int at, const struct dp_node *node, const float *x,
                             float *out)
{
    const struct dp_backend_ops *ops = program->backend.ops;
    void *self = program->backend.self;
    size_t n = (size_t)program->examples * node->width;
    if (node->op == DP_OP_RELU)
        ops->relu(self, x, n, out);
    else if (node->op == DP_OP_SIGMOID)
        ops->sigmoid(self, x, n, out);
    else if (node->op == DP_OP_TANH)
        ops->tanh_(self, x, n, out);
    else
        ops->dropout(self, x, n, dp_dropout_seed(program, at), program->evaluates ? 0 : node->rate, out,
                     false);
}

void dp_forward_node(struct dp_program *program, int at)
{
    const struct dp_node *node = dp_graph_node(program->graph, at);
    const struct dp_backend_ops *ops = program->backend.ops;
    void *self = program->backend.self;
    uint32_t examples = program->examples, width = node->width;
    size_t n = (size_t)examples * width;
    const float *x = node->inputs > 0 ? dp_value_of(program, node->input[0]) : NULL;
    const float *y = node->inputs > 1 ? dp_value_of(program, node->input[1]) : NULL;
    uint32_t x_width = node->inputs > 0 ? dp_graph_node(program->graph, node->input[0])->width : 0;
    float *out = program->plan.nodes[at].value;
    switch (node->op) {
    case DP_OP_INPUT_DENSE:
        break;
    case DP_OP_GATHER_SUM:
    case DP_OP_GATHER_MEAN:
    case DP_OP_GATHER:
    case DP_OP_INTERACTIONS:
        forward_rows(program, at, node, out);
        break;
    case DP_OP_MATMUL:
        ops->matmul(self, x, program->weights[node->parameter], examples, x_width, width, out);
        break;
    case DP_OP_BIAS:
        ops->bias(self, x, program->weights[node->parameter], examples, width, out);
        break;
    case DP_OP_RELU:
    case DP_OP_SIGMOID:
    case DP_OP_TANH:
    case DP_OP_DROPOUT:
        forward_elements(program, at, node, x, out);
        break;
    case DP_OP_SLICE: {
        const struct dp_column_copy columns = {
            .from_width = x_width, .from = node->from, .to_width = width, .count = width};
        ops->columns(self, x, &columns, examples, out, false);
        break;
    }
    case DP_OP_ADD:
        ops->sum(self, x, y, n, out);
        break;
    case DP_OP_MULTIPLY:
        ops->multiply(self, x, y, n, out);
        break;
    case DP_OP_DOT:
        ops->dot(self, x, y, examples, x_width, out);
        break;
    case DP_OP_CONCAT:
        forward_concat(program, node, out);
        break;
    case DP_OP_PAIRS:
        ops->pairs(self, x, examples, node->from, x_width / node->from, out);
        break;
    case DP_OP_NEAR:
        ops->near(self, &program->entries[node->list], x, program->weights[node->parameter], x_width,
                  program->plan.nodes[at].saved, out);
        break;
    case DP_OP_SOFTMAX_LOSS:
    case DP_OP_LOGISTIC_LOSS:
    case DP_OP_SQUARED_LOSS:
    case DP_OP_MEAN_LOSS:
    case DP_OP_BPR_LOSS:
        forward_loss(program, node);
        break;
    case DP_OPS:
        DP_ASSERT(node->op < DP_OPS);
    }
}
