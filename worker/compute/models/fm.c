/* Factorisation machine (Rendle 2010): bias + linear part + the dot products of all pairs of features'
 * factors. The factors start at random, since at 0 none would ever move. They are many, and fit noise sooner
 * than the linear part: `l2` applies to them alone. */
#include "worker/compute/model_kind.h"

#include "common/base/parse.h"

#include <string.h>

/* By generated sets with 1 to 5% of labels 1; a pair's product is one of many, each smaller than a weight. */
#define FACTORS_PRIOR 30.0f

static int fm_output(struct dp_graph *g, int features, int list, uint32_t factors, float l2, bool prior)
{
    int w = dp_model_rows(g, features, "fm.w", 1, 0), v = dp_model_rows(g, features, "fm.v", factors, 0.01f);
    dp_graph_add_l2(g, v, l2);
    if (prior) {
        dp_graph_set_prior(g, w, DP_MODEL_PRIOR);
        dp_graph_set_prior(g, v, FACTORS_PRIOR);
    }
    int x = dp_graph_add(g, dp_graph_gather_sum(g, w, list), dp_graph_interactions(g, v, list));
    return dp_model_bias(g, "fm.b", x);
}

static enum dp_status declare(const struct dp_model_text *text, struct dp_model *model, struct dp_error *err)
{
    struct dp_graph *g = model->graph;
    uint32_t factors;
    double l2 = 0;
    enum dp_status st = dp_model_shape_number(text, "factors", DP_TABLE_DIM_MAX, &factors, err);
    bool by_default = strcmp(dp_model_option(text, "l2"), "auto") == 0;
    if (st == DP_OK && !by_default)
        st = dp_parse_f64(dp_model_option(text, "l2"), 0, 1e6, "l2", &l2, err);
    if (st != DP_OK)
        return st;
    int features = dp_graph_group(g), list = dp_graph_list(g, features, 0);
    model->form = DP_FORM_SPARSE;
    model->rare_steps = DP_MODEL_RARE_STEPS;
    return dp_model_loss(text, model, fm_output(g, features, list, factors, (float)l2, by_default), err);
}

const struct dp_model_kind dp_model_fm = {
    "fm",
    "fm:K",
    "fm:8",
    "factorization machine: logistic regression, and the products of all pairs of features (Rendle 2010)",
    "K: factors of each feature (1 .. 65536); 4 to 16 are usual",
    "features (libsvm), clicks and CSV of any columns; labels 0 and 1, any number with loss=squared",
    {DP_MODEL_LOSS,
     {"l2", "X", "auto",
      "L2 regularization of the factors alone, which fit noise first; 0.001 is a start; auto: 0, or a prior "
      "where "
      "a label is rare"}},
    declare,
    NULL,
    2500,
    3,
    true};
