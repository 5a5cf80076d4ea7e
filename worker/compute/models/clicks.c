/* Click models over numeric columns and a fixed number of categories, all in one table:
 *     wide-deep:16-256-128   a linear part, and layers over the categories' rows and the columns (Cheng 2016)
 *     deepfm:16-256-128      the same, and the products of all pairs of shared rows (Guo et al. 2017) */
#include "worker/compute/model_kind.h"

#include "common/base/parse.h"

#include <string.h>

#define WIDTHS_MAX 17

struct clicks_parts {
    uint32_t widths[WIDTHS_MAX]; /* of a row, then of the hidden layers */
    int count;
    uint32_t fields, columns, lists;
    double dropout;
};

static enum dp_status read_parts(const struct dp_model_text *text, struct clicks_parts *out,
                                 struct dp_error *err)
{
    const char *dropout = dp_model_option(text, "dropout");
    enum dp_status st =
        dp_model_widths(text->shape, out->widths, WIDTHS_MAX, &out->count, text->kind->example, err);
    if (st == DP_OK && out->widths[0] > DP_TABLE_DIM_MAX)
        st = dp_fail(err, DP_ARGUMENT, "rows have 1 .. %d floats", DP_TABLE_DIM_MAX);
    if (st == DP_OK)
        st = dp_model_number(text, "lists", 0, DP_MODEL_LISTS_MAX, &out->lists, err);
    if (st == DP_OK)
        st = dp_model_number(text, "fields", out->lists == 0, 4096, &out->fields, err);
    if (st == DP_OK)
        st = dp_model_number(text, "columns", 0, 65536, &out->columns, err);
    if (st == DP_OK)
        st = dp_parse_f64(dropout, 0, 0.99, "dropout", &out->dropout, err);
    return st;
}

/* By generated sets with 1% of labels 1: 30 and 300 are less. */
#define ROWS_PRIOR 100.0f

/* A model's rows: `x`, the linear part, with the products of all pairs; `deep`, the rows of fields and the
 * means of lists, one after the other. A list counts as one field: its entries have no products among each
 * other. */
struct clicks_rows {
    int x, deep[DP_NODE_INPUTS_MAX], count;
};

static struct clicks_rows declare_rows(struct dp_graph *g, const struct clicks_parts *parts, bool products)
{
    struct clicks_rows rows = {.x = -1};
    int group = dp_graph_group(g), list = parts->fields > 0 ? dp_graph_list(g, group, parts->fields) : -1,
        w = dp_model_rows(g, group, "clicks.w", 1, 0),
        v = dp_model_rows(g, group, "clicks.v", parts->widths[0], 0.01f), sum = -1;
    dp_graph_set_prior(g, w, DP_MODEL_PRIOR);
    dp_graph_set_prior(g, v, ROWS_PRIOR);
    if (list >= 0) {
        rows.x = dp_graph_gather_sum(g, w, list);
        rows.deep[rows.count++] = dp_graph_gather(g, v, list);
        if (products)
            rows.x = dp_graph_add(g, rows.x, dp_graph_interactions(g, v, list));
        if (products && parts->lists > 0)
            sum = dp_graph_gather_sum(g, v, list);
    }
    for (uint32_t l = 0; l < parts->lists; l++) {
        int pooled = dp_graph_list(g, group, 0), linear = dp_graph_gather_sum(g, w, pooled),
            mean = rows.deep[rows.count++] = dp_graph_gather_sum(g, v, pooled);
        rows.x = rows.x < 0 ? linear : dp_graph_add(g, rows.x, linear);
        if (sum >= 0)
            rows.x = dp_graph_add(g, rows.x, dp_graph_dot(g, sum, mean));
        if (products && l + 1 < parts->lists)
            sum = sum < 0 ? mean : dp_graph_add(g, sum, mean);
    }
    return rows;
}

static enum dp_status declare(const struct dp_model_text *text, struct dp_model *model, struct dp_error *err)
{
    struct clicks_parts parts;
    struct dp_graph *g = model->graph;
    enum dp_status st = read_parts(text, &parts, err);
    if (st != DP_OK)
        return st;
    struct clicks_rows rows = declare_rows(g, &parts, text->kind == &dp_model_deepfm);
    int x = rows.x;
    parts.widths[0] *= parts.fields + parts.lists;
    if (parts.columns > 0) {
        int columns = dp_graph_input(g, parts.columns);
        struct dp_init_spec zero = {.kind = DP_INIT_ZERO};
        x = dp_graph_add(
            g, x, dp_graph_matmul(g, columns, dp_graph_dense(g, "clicks.columns", parts.columns, 1, zero)));
        rows.deep[rows.count++] = columns;
        parts.widths[0] += parts.columns;
    }
    int deep = rows.count > 1 ? dp_graph_concat(g, rows.deep, rows.count) : rows.deep[0];
    deep = dp_model_layers(g, "clicks", deep, parts.widths, parts.count, true, (float)parts.dropout);
    uint32_t last = parts.widths[parts.count - 1];
    deep = strcmp(dp_model_option(text, "loss"), "squared") == 0 /* outputs start near the labels' mean */
               ? dp_model_small_layer(g, "clicks", deep, parts.count, last)
               : dp_model_layer(g, "clicks", deep, parts.count, last, 1, false);
    model->form = DP_FORM_FIELDS;
    model->fields = parts.fields;
    model->pooled = parts.lists;
    model->width = parts.columns;
    return dp_model_loss(text, model, dp_graph_add(g, x, deep), err);
}

static enum dp_status complete(const struct dp_model_text *text, const struct dp_measure *has,
                               struct dp_model_full *out, struct dp_error *err)
{
    return dp_model_complete_fields(text, has, out, err);
}

#define CLICKS_READS                                                                                         \
    "clicks (Criteo: columns=13,fields=26, the defaults) and CSV of numbers "                                \
    "and categories; labels 0 and 1, any number with loss=squared"
#define CLICKS_OPTIONS                                                                                       \
    DP_MODEL_LOSS,                                                                                           \
        {"fields", "N", "26", "categories of an example (1 .. 4096; 0 with lists); run: those of the file"}, \
        {"columns", "N", "13", "numbers of an example (0 .. 65536); run: those of the file"},                \
        DP_MODEL_LISTS,                                                                                      \
    {                                                                                                        \
        "dropout", "X", "0", "share of each hidden layer's values that a minibatch leaves out (0 .. 0.99)"   \
    }

const struct dp_model_kind dp_model_wide_deep = {
    "wide-deep",
    "wide-deep:R-W-...-LAST",
    "wide-deep:16-256-128",
    "a linear part, with dense layers over the rows of categories and the numbers (Cheng et al. 2016)",
    "R: width of a category's row; then the width of each hidden layer",
    CLICKS_READS,
    {CLICKS_OPTIONS},
    declare,
    complete,
    800,
    2,
    true};

const struct dp_model_kind dp_model_deepfm = {
    "deepfm",
    "deepfm:R-W-...-LAST",
    "deepfm:16-256-128",
    "wide-deep with a factorization machine over the same rows (Guo et al. 2017)",
    "R: width of a category's row; then the width of each hidden layer",
    CLICKS_READS,
    {CLICKS_OPTIONS},
    declare,
    complete,
    800,
    2,
    true};
