/* Matrix factorisation of interactions of users and items: score = user . item + their biases.
 *     loss=logistic  pairs, each with sampled negatives
 *     loss=bpr       ranks an item with an interaction above one without (Rendle et al. 2009); a user's bias
 *                    would cancel out
 *     loss=squared   predicts ratings (Koren et al. 2009) */
#include "worker/compute/model_kind.h"

#include "common/base/parse.h"

#include <string.h>

/* By generated sets. Ratings, standardized, are noisier than what says only that there is an interaction. */
#define MET_L2   0.015
#define RATED_L2 0.25

static int score(struct dp_graph *g, int user, int item_factors, int item_bias, int list)
{
    int x = dp_graph_dot(g, user, dp_graph_gather(g, item_factors, list));
    return dp_graph_add(g, x, dp_graph_gather(g, item_bias, list));
}

static enum dp_status declare(const struct dp_model_text *text, struct dp_model *model, struct dp_error *err)
{
    struct dp_graph *g = model->graph;
    const char *loss = dp_model_option(text, "loss");
    uint32_t factors;
    const char *l2_text = dp_model_option(text, "l2");
    bool rated = strcmp(loss, "squared") == 0;
    double l2 = rated ? RATED_L2 : MET_L2;
    enum dp_status st = dp_model_shape_number(text, "factors", DP_TABLE_DIM_MAX, &factors, err);
    if (st == DP_OK && strcmp(l2_text, "auto") != 0)
        st = dp_parse_f64(l2_text, 0, 1e6, "l2", &l2, err);
    if (st != DP_OK)
        return st;
    if (strcmp(loss, "logistic") != 0 && strcmp(loss, "bpr") != 0 && !rated)
        return dp_fail(err, DP_ARGUMENT, "loss '%.64s' is not known: logistic, bpr or squared", loss);
    bool bpr = loss[0] == 'b';
    model->rated = rated;
    dp_graph_set_dot_l2(g, (float)l2);
    int users = dp_graph_group(g), items = dp_graph_group(g);
    int user = dp_graph_list(g, users, 1), item = dp_graph_list(g, items, 1);
    int rows = dp_model_rows(g, users, "mf.user", factors, 0.1f), p = dp_graph_gather(g, rows, user);
    int q = dp_model_rows(g, items, "mf.item", factors, 0.1f),
        b = dp_model_rows(g, items, "mf.item_bias", 1, 0);
    int x = score(g, p, q, b, item);
    model->has_factors = true;
    model->factors =
        (struct dp_model_factors){.user = rows, .item = q, .item_bias = b, .user_bias = -1, .bias = -1};
    if (bpr) {
        int other = dp_graph_list(g, items, 1);
        dp_graph_loss_of_pair(g, DP_OP_BPR_LOSS, x, score(g, p, q, b, other));
    } else {
        int user_bias = dp_model_rows(g, users, "mf.user_bias", 1, 0);
        x = dp_graph_add(g, x, dp_graph_gather(g, user_bias, user));
        dp_graph_loss(g, model->rated ? DP_OP_SQUARED_LOSS : DP_OP_LOGISTIC_LOSS,
                      dp_model_bias(g, "mf.bias", x));
        model->factors.user_bias = user_bias;
        model->factors.bias = dp_graph_parameters(g) - 1; /* the last one declared */
    }
    /* A minibatch touches each row about once, so a large one costs no steps of a row, and fewer requests. */
    model->batch_max = 512;
    model->examples_max = UINT64_C(60000000);
    model->rate = 0.01;
    /* A falling rate needs few epochs, the fewest where each pair has its sampled ones, too. By generated
     * sets of 2,000 to 33,000 pairs, movielens and a part of Gowalla: more fit the noise. So does, with
     * samples, the full rate on a further day, whose rehearsed pairs were trained on before. */
    if (bpr || rated)
        model->epochs_min = 32;
    else
        model->rate_further = 0.005;
    model->form = bpr ? DP_FORM_TRIPLES : DP_FORM_PAIRS;
    model->labels = bpr || model->rated ? DP_LABELS_ANY : DP_LABELS_BINARY;
    return DP_OK;
}

const struct dp_model_kind dp_model_mf = {
    "mf",
    "mf:K",
    "mf:16",
    "matrix factorization: a user's factors times an item's, and their biases",
    "K: factors of each user and item (1 .. 65536); 16 to 64 are usual",
    "interactions: pairs of a user and an item; with loss=squared their ratings, too",
    {{"loss", "logistic|bpr|squared", "logistic",
      "logistic: an interaction or a random draw; bpr: an item with an interaction ranks above another one "
      "(Rendle et al. 2009); squared: ratings (Koren et al. 2009)"},
     {"l2", "X", "auto",
      "L2 regularization of the factors, in each example; auto: 0.015, of ratings 0.25; lower it for larger "
      "data"}},
    declare,
    NULL,
    500,
    16,
    true};
