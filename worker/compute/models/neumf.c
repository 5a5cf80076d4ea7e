/* NeuMF (He et al., Neural Collaborative Filtering, 2017): element-wise products of one pair of factors, and
 * layers over another pair, joined in a last layer. neumf:16-64-32-16 has 16 factors, and layers 64-32-16
 * over two rows of 32. */
#include "worker/compute/model_kind.h"

#define WIDTHS_MAX 17

static enum dp_status declare(const struct dp_model_text *text, struct dp_model *model, struct dp_error *err)
{
    struct dp_graph *g = model->graph;
    uint32_t widths[WIDTHS_MAX];
    int count = 0;
    enum dp_status st = dp_model_widths(text->shape, widths, WIDTHS_MAX, &count, "neumf:16-64-32-16", err);
    if (st != DP_OK)
        return st;
    if (widths[0] > DP_TABLE_DIM_MAX || widths[1] % 2 != 0 || widths[1] / 2 > DP_TABLE_DIM_MAX)
        return dp_fail(
            err, DP_ARGUMENT,
            "factors (first) and half of the first layer (second, even) are rows of tables, of 1 .. %d",
            DP_TABLE_DIM_MAX);
    int users = dp_graph_group(g), items = dp_graph_group(g);
    int user = dp_graph_list(g, users, 1), item = dp_graph_list(g, items, 1);
    int p = dp_graph_gather(g, dp_model_rows(g, users, "neumf.gmf_user", widths[0], 0.1f), user);
    int q = dp_graph_gather(g, dp_model_rows(g, items, "neumf.gmf_item", widths[0], 0.1f), item);
    const int rows[2] = {
        dp_graph_gather(g, dp_model_rows(g, users, "neumf.mlp_user", widths[1] / 2, 0.1f), user),
        dp_graph_gather(g, dp_model_rows(g, items, "neumf.mlp_item", widths[1] / 2, 0.1f), item)};
    int deep = dp_model_layers(g, "neumf", dp_graph_concat(g, rows, 2), widths + 1, count - 1, true, 0);
    const int sides[2] = {dp_graph_multiply(g, p, q), deep};
    int x = dp_model_layer(g, "neumf", dp_graph_concat(g, sides, 2), count, widths[0] + widths[count - 1], 1,
                           false);
    dp_graph_loss(g, DP_OP_LOGISTIC_LOSS, x);
    model->form = DP_FORM_PAIRS;
    model->labels = DP_LABELS_BINARY;
    return DP_OK;
}

const struct dp_model_kind dp_model_neumf = {
    "neumf",
    "neumf:K-W-...-LAST",
    "neumf:16-64-32-16",
    "neural collaborative filtering: products of factors, with dense layers (He et al. 2017)",
    "K: factors of the products; W: input of the layers, half of it from the user's row and half from the "
    "item's (even); then the width of each layer",
    "interactions: pairs of a user and an item",
    {{0}},
    declare,
    NULL,
    5000,
    10,
    true};
