/* Logistic regression: one weight for each key, and a bias. Starts at 0, as the loss is convex. */
#include "worker/compute/model_kind.h"

static enum dp_status declare(const struct dp_model_text *text, struct dp_model *model, struct dp_error *err)
{
    (void)text, (void)err;
    struct dp_init_spec zero = {.kind = DP_INIT_ZERO};
    struct dp_graph *g = model->graph;
    int features = dp_graph_group(g), list = dp_graph_list(g, features, 0);
    int w = dp_graph_sparse(g, features, "logistic.w", 1, zero);
    dp_graph_set_prior(g, w, DP_MODEL_PRIOR);
    int b = dp_graph_dense(g, "logistic.b", 1, 1, zero);
    dp_graph_loss(g, DP_OP_LOGISTIC_LOSS, dp_graph_bias(g, dp_graph_gather_sum(g, w, list), b));
    model->form = DP_FORM_SPARSE;
    model->rare_steps = DP_MODEL_RARE_STEPS;
    model->labels = DP_LABELS_BINARY;
    return DP_OK;
}

const struct dp_model_kind dp_model_logistic = {
    "logistic", "logistic",
    "logistic", "logistic regression: a weight for each feature, and a bias",
    NULL,       "features (libsvm), clicks and CSV of any columns; labels 0 and 1",
    {{0}},      declare,
    NULL,       10000,
    3,          true};
