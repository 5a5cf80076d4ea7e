/* The gradients of each operation's inputs and parameter.
 * Why   The first user of a node or parameter in the pass sets its gradient, the others add. A value that was
 *       not kept is computed again before the first step that may read it. */
#include "worker/compute/program_inner.h"

/* Whether a gradient was already written in this pass, so that others add to it. Marks it as written. */
static bool once_more(bool *written)
{
    bool before = *written;
    *written = true;
    return before;
}

/* Where input k's gradient goes; NULL when it is not needed. */
static float *gradient_of(const struct dp_program *program, const struct dp_node *node, int k)
{
    return program->plan.nodes[node->input[k]].gradient;
}

static bool adds_to(struct dp_program *program, const struct dp_node *node, int k)
{
    return once_more(&program->node_written[node->input[k]]);
}

/* The value of a node, computed again if it was not kept. */
static void need(struct dp_program *program, int at)
{
    const struct dp_node *node = dp_graph_node(program->graph, at);
    if (!node->recomputed || program->has_value[at])
        return;
    for (int k = 0; k < node->inputs; k++)
        need(program, node->input[k]);
    dp_forward_node(program, at);
    program->has_value[at] = true;
}

static void backward_rows(struct dp_program *program, int at, const struct dp_node *node, const float *dout)
{
    const struct dp_backend_ops *ops = program->backend.ops;
    void *self = program->backend.self;
    const struct dp_entries *e = &program->entries[node->list];
    float *dp = program->gradients[node->parameter];
    bool add = once_more(&program->parameter_written[node->parameter]);
    uint32_t width = dp_graph_parameter(program->graph, node->parameter)->width;
    if (node->op == DP_OP_GATHER)
        ops->gather_back(self, e, dout, width, dp, add);
    else if (node->op == DP_OP_INTERACTIONS)
        ops->interactions_back(self, e, program->weights[node->parameter], program->plan.nodes[at].saved,
                               dout, width, dp, add);
    else
        ops->gather_sum_back(self, e, dout, width, node->op == DP_OP_GATHER_MEAN, dp, add);
}

static void backward_near(struct dp_program *program, int at, const struct dp_node *node, const float *dout)
{
    const struct dp_backend_ops *ops = program->backend.ops;
    const struct dp_entries *e = &program->entries[node->list];
    const float *saved = program->plan.nodes[at].saved;
    uint32_t width = dp_graph_parameter(program->graph, node->parameter)->width;
    float *dx = gradient_of(program, node, 0);
    ops->near_back_p(program->backend.self, e, dp_value_of(program, node->input[0]), saved, dout, width,
                     program->gradients[node->parameter],
                     once_more(&program->parameter_written[node->parameter]));
    if (dx)
        ops->near_back_x(program->backend.self, e, program->weights[node->parameter], saved, dout, width, dx,
                         adds_to(program, node, 0));
}

static void backward_matmul(struct dp_program *program, const struct dp_node *node, const float *dout)
{
    const struct dp_backend *backend = &program->backend;
    uint32_t k = dp_graph_node(program->graph, node->input[0])->width;
    float *dx = gradient_of(program, node, 0);
    backend->ops->matmul_back_p(backend->self, dp_value_of(program, node->input[0]), dout, program->examples,
                                k, node->width, program->gradients[node->parameter],
                                once_more(&program->parameter_written[node->parameter]));
    if (dx)
        backend->ops->matmul_back_x(backend->self, program->weights[node->parameter], dout, program->examples,
                                    k, node->width, dx, adds_to(program, node, 0));
}

static void backward_elements(struct dp_program *program, int at, const struct dp_node *node,
                              const float *dout)
{
    const struct dp_backend_ops *ops = program->backend.ops;
    void *self = program->backend.self;
    size_t n = (size_t)program->examples * node->width;
    const float *out = dp_value_of(program, at);
    float *dx = gradient_of(program, node, 0);
    bool add = adds_to(program, node, 0);
    if (node->op == DP_OP_RELU)
        ops->relu_back(self, out, dout, n, dx, add);
    else if (node->op == DP_OP_SIGMOID)
        ops->sigmoid_back(self, out, dout, n, dx, add);
    else if (node->op == DP_OP_TANH)
        ops->tanh_back(self, out, dout, n, dx, add);
    else
        ops->dropout(self, dout, n, dp_dropout_seed(program, at), node->rate, dx, add);
}

/* Adds part of dout's columns to input k's gradient, whose other columns start at 0. */
static void hand_columns(struct dp_program *program, const struct dp_node *node, int k, const float *dout,
                         const struct dp_column_copy *columns)
{
    const struct dp_backend *backend = &program->backend;
    float *dx = gradient_of(program, node, k);
    if (!dx)
        return;
    bool add = adds_to(program, node, k);
    if (!add && columns->count < columns->to_width) {
        struct dp_error err = {0};
        size_t n = (size_t)program->examples * columns->to_width;
        if (backend->ops->zero(backend->self, dx, n * sizeof *dx, &err) != DP_OK)
            program->failed = err;
        add = true;
    }
    backend->ops->columns(backend->self, dout, columns, program->examples, dx, add);
}

static void backward_columns(struct dp_program *program, const struct dp_node *node, const float *dout)
{
    uint32_t from = 0;
    for (int k = 0; k < node->inputs; k++) {
        uint32_t width = dp_graph_node(program->graph, node->input[k])->width;
        struct dp_column_copy columns = {
            .from_width = node->width, .from = from, .to_width = width, .count = width};
        if (node->op == DP_OP_SLICE)
            columns = (struct dp_column_copy){
                .from_width = node->width, .to_width = width, .to = node->from, .count = node->width};
        hand_columns(program, node, k, dout, &columns);
        from += width;
    }
}

/* Each of two factors gets dout times the other, and in a regularized dot product a share of itself. */
static void backward_product(struct dp_program *program, const struct dp_node *node, const float *dout)
{
    const struct dp_backend_ops *ops = program->backend.ops;
    uint32_t width = dp_graph_node(program->graph, node->input[0])->width;
    for (int k = 0; k < 2; k++) {
        float *dx = gradient_of(program, node, k);
        const float *other = dp_value_of(program, node->input[1 - k]);
        if (dx && node->op == DP_OP_DOT)
            ops->dot_back(program->backend.self, other, dout, program->examples, width, dx,
                          adds_to(program, node, k));
        else if (dx)
            ops->multiply_back(program->backend.self, other, dout, (size_t)program->examples * width, dx,
                               adds_to(program, node, k));
        if (dx && node->op == DP_OP_DOT && program->shrink)
            ops->dot_back(program->backend.self, dp_value_of(program, node->input[k]), program->shrink_bound,
                          program->examples, width, dx, true);
    }
}

/* Both operands of a sum get dout. */
static void hand_on(struct dp_program *program, const struct dp_node *node, const float *dout)
{
    size_t n = (size_t)program->examples * node->width;
    for (int k = 0; k < node->inputs; k++)
        if (gradient_of(program, node, k))
            program->backend.ops->copy_back(program->backend.self, dout, n, gradient_of(program, node, k),
                                            adds_to(program, node, k));
}

void dp_backward_node(struct dp_program *program, int at)
{
    const struct dp_node *node = dp_graph_node(program->graph, at);
    const struct dp_backend *backend = &program->backend;
    const float *dout = program->plan.nodes[at].gradient;
    need(program, at);
    for (int k = 0; k < node->inputs; k++)
        need(program, node->input[k]);
    switch (node->op) {
    case DP_OP_INPUT_DENSE:
        break;
    case DP_OP_GATHER_SUM:
    case DP_OP_GATHER_MEAN:
    case DP_OP_GATHER:
    case DP_OP_INTERACTIONS:
        backward_rows(program, at, node, dout);
        break;
    case DP_OP_MATMUL:
        backward_matmul(program, node, dout);
        break;
    case DP_OP_BIAS:
        backend->ops->bias_back_p(backend->self, dout, program->examples, node->width,
                                  program->gradients[node->parameter],
                                  once_more(&program->parameter_written[node->parameter]));
        hand_on(program, node, dout);
        break;
    case DP_OP_RELU:
    case DP_OP_SIGMOID:
    case DP_OP_TANH:
    case DP_OP_DROPOUT:
        backward_elements(program, at, node, dout);
        break;
    case DP_OP_SLICE:
    case DP_OP_CONCAT:
        backward_columns(program, node, dout);
        break;
    case DP_OP_ADD:
        hand_on(program, node, dout);
        break;
    case DP_OP_MULTIPLY:
    case DP_OP_DOT:
        backward_product(program, node, dout);
        break;
    case DP_OP_PAIRS: {
        uint32_t width = dp_graph_node(program->graph, node->input[0])->width;
        backend->ops->pairs_back(backend->self, dp_value_of(program, node->input[0]), dout, program->examples,
                                 node->from, width / node->from, gradient_of(program, node, 0),
                                 adds_to(program, node, 0));
        break;
    }
    case DP_OP_NEAR:
        backward_near(program, at, node, dout);
        break;
    case DP_OP_SOFTMAX_LOSS:
    case DP_OP_LOGISTIC_LOSS:
    case DP_OP_SQUARED_LOSS:
    case DP_OP_MEAN_LOSS:
    case DP_OP_BPR_LOSS:
    case DP_OPS:
        DP_ASSERT(node->op < DP_OP_SOFTMAX_LOSS); /* a loss only ends a graph */
    }
}
