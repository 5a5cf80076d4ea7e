/* A language model: an LSTM (Hochreiter and Schmidhuber 1997; with a forget gate, Gers et al. 2000), unrolled
 * over a window of tokens, predicts the next one. lstm:16-32-64,classes=256: 16 tokens, rows of 32, 64 cells.
 * The order of gates is input, forget, output, candidate. recompute=1 keeps only each step's cells and
 * outputs for the backward pass. */
#include "worker/compute/model_kind.h"

#define STEP_NODES_MAX 20

struct lstm {
    struct dp_graph *g;
    uint32_t row, cells;
    int wx, wh, b;
    bool recompute;
};

static int kept(const struct lstm *m, int node, bool keep)
{
    if (m->recompute && !keep)
        dp_graph_recompute(m->g, node);
    return node;
}

/* One step: x the token's row, *h and *c the last step's (-1: there was none). */
static void step(const struct lstm *m, int x, int *h, int *c)
{
    struct dp_graph *g = m->g;
    uint32_t n = m->cells;
    int gates = kept(m, dp_graph_matmul(g, x, m->wx), false);
    if (*h >= 0)
        gates = kept(m, dp_graph_add(g, gates, kept(m, dp_graph_matmul(g, *h, m->wh), false)), false);
    gates = kept(m, dp_graph_bias(g, gates, m->b), false);
    int open =
        kept(m, dp_graph_unary(g, DP_OP_SIGMOID, kept(m, dp_graph_slice(g, gates, 0, 3 * n), false)), false);
    int candidate =
        kept(m, dp_graph_unary(g, DP_OP_TANH, kept(m, dp_graph_slice(g, gates, 3 * n, n), false)), false);
    int in = kept(m, dp_graph_slice(g, open, 0, n), false),
        out = kept(m, dp_graph_slice(g, open, 2 * n, n), false);
    int cell = kept(m, dp_graph_multiply(g, in, candidate), *c < 0);
    if (*c >= 0) {
        int forget = kept(m, dp_graph_slice(g, open, n, n), false);
        cell = dp_graph_add(g, cell, kept(m, dp_graph_multiply(g, forget, *c), false));
    }
    *c = cell;
    *h = dp_graph_multiply(g, out, kept(m, dp_graph_unary(g, DP_OP_TANH, cell), false));
}

static enum dp_status declare(const struct dp_model_text *text, struct dp_model *model, struct dp_error *err)
{
    struct dp_graph *g = model->graph;
    uint32_t widths[3], classes, recompute;
    int count = 0;
    enum dp_status st = dp_model_widths(text->shape, widths, 3, &count, "lstm:16-32-64", err);
    if (st == DP_OK)
        st = dp_model_number(text, "classes", 2, 1u << 20, &classes, err);
    if (st == DP_OK)
        st = dp_model_number(text, "recompute", 0, 1, &recompute, err);
    if (st != DP_OK)
        return st;
    if (count != 3 || widths[0] > DP_GRAPH_NODES_MAX / STEP_NODES_MAX || widths[1] > DP_TABLE_DIM_MAX ||
        widths[2] > DP_GRAPH_WIDTH_MAX / 4)
        return dp_fail(err, DP_ARGUMENT,
                       "its shape is tokens (at most %d), width of a row, cells: lstm:16-32-64",
                       DP_GRAPH_NODES_MAX / STEP_NODES_MAX);
    uint32_t tokens = widths[0], row = widths[1], cells = widths[2];
    int group = dp_graph_group(g), list = dp_graph_list(g, group, tokens);
    int rows = dp_graph_gather(g, dp_model_rows(g, group, "lstm.rows", row, 0.1f), list);
    struct dp_init_spec x_init = {.kind = DP_INIT_XAVIER, .fan_in = row, .fan_out = cells};
    struct dp_init_spec h_init = {.kind = DP_INIT_XAVIER, .fan_in = cells, .fan_out = cells};
    struct lstm m = {g,
                     row,
                     cells,
                     dp_graph_dense(g, "lstm.wx", row, 4 * cells, x_init),
                     -1,
                     dp_graph_dense(g, "lstm.b", 1, 4 * cells, (struct dp_init_spec){.kind = DP_INIT_ZERO}),
                     recompute == 1};
    if (tokens > 1)
        m.wh = dp_graph_dense(g, "lstm.wh", cells, 4 * cells, h_init);
    int h = -1, c = -1;
    for (uint32_t t = 0; t < tokens; t++)
        step(&m, kept(&m, dp_graph_slice(g, rows, t * row, row), false), &h, &c);
    dp_graph_loss(g, DP_OP_SOFTMAX_LOSS, dp_model_layer(g, "lstm.last", h, 1, cells, classes, false));
    model->form = DP_FORM_WINDOWS;
    model->fields = tokens;
    model->labels = DP_LABELS_CLASS;
    model->classes = classes;
    return DP_OK;
}

const struct dp_model_kind dp_model_lstm = {
    "lstm",
    "lstm:T-R-C",
    "lstm:16-32-64",
    "language model: an LSTM over T tokens predicts the next one (Gers et al. 2000)",
    "T: tokens in a window (at most 51); R: width of a token's row; C: cells",
    "text: its bytes",
    {{"classes", "N", "256", "how many different tokens there are"},
     {"recompute", "0|1", "0", "1: less memory, more computing"}},
    declare,
    NULL,
    5000,
    3,
    false};
