/* DLRM (Naumov et al. 2019): the columns through bottom layers into a vector as wide as a category's row; the
 * products of all pairs of these vectors, and the columns' own, through top layers into a logit.
 *     dlrm:64,bottom=512-256,top=512-256     rows of 64; tables=fields: each category has a table of its
 *                                            own */
#include "worker/compute/model_kind.h"

#include <stdio.h>
#include <string.h>

#define WIDTHS_MAX 18

struct dlrm_parts {
    uint32_t row, fields, columns, lists;
    uint32_t bottom[WIDTHS_MAX], top[WIDTHS_MAX];
    int bottom_count, top_count;
    bool per_field;
};

/* Parses "512-256" into widths[1 ..]; the first and the last width are known. */
static enum dp_status hidden(const char *text, const char *what, uint32_t *widths, int *count,
                             struct dp_error *err)
{
    char with[256];
    (void)snprintf(with, sizeof with, "1-%s", text);
    enum dp_status st = dp_model_widths(with, widths, WIDTHS_MAX - 1, count, "bottom=512-256", err);
    return st == DP_OK ? DP_OK : dp_wrap(err, st, "%s", what);
}

static enum dp_status read_parts(const struct dp_model_text *text, struct dlrm_parts *out,
                                 struct dp_error *err)
{
    const char *tables = dp_model_option(text, "tables");
    out->per_field = strcmp(tables, "fields") == 0;
    if (!out->per_field && strcmp(tables, "one") != 0)
        return dp_fail(err, DP_ARGUMENT, "tables '%.64s': one (for all categories) or fields (one each)",
                       tables);
    enum dp_status st = dp_model_shape_number(text, "width of a row", DP_TABLE_DIM_MAX, &out->row, err);
    if (st == DP_OK)
        st = dp_model_number(text, "lists", 0, DP_MODEL_LISTS_MAX, &out->lists, err);
    if (st == DP_OK)
        st = dp_model_number(text, "fields", out->lists == 0,
                             out->per_field ? DP_NODE_INPUTS_MAX - 1 - out->lists : 4096, &out->fields, err);
    if (st == DP_OK)
        st = dp_model_number(text, "columns", 1, 65536, &out->columns, err);
    if (st == DP_OK)
        st = hidden(dp_model_option(text, "bottom"), "bottom", out->bottom, &out->bottom_count, err);
    if (st == DP_OK)
        st = hidden(dp_model_option(text, "top"), "top", out->top, &out->top_count, err);
    out->bottom[0] = out->columns;
    out->bottom[out->bottom_count++] = out->row;
    out->top[0] = out->row + (out->fields + out->lists + 1) * (out->fields + out->lists) / 2;
    return st;
}

/* The columns' vector, the categories' rows and the means of lists, one after the other. */
static int vectors(struct dp_graph *g, const struct dlrm_parts *parts, int bottom)
{
    int all[DP_NODE_INPUTS_MAX] = {bottom}, count = 1;
    int group = parts->per_field ? -1 : dp_graph_group(g), rows = -1;
    bool together = group >= 0 && parts->fields > 0;
    int fields = together ? dp_graph_list(g, group, parts->fields) : -1;
    if (group >= 0)
        rows = dp_model_rows(g, group, "dlrm.rows", parts->row, 0.05f);
    if (together)
        all[count++] = dp_graph_gather(g, rows, fields);
    for (uint32_t f = together ? parts->fields : 0; f < parts->fields + parts->lists; f++) {
        char name[DP_TABLE_NAME_MAX + 1];
        (void)snprintf(name, sizeof name, "dlrm.rows%u", f);
        int own = group >= 0 ? group : dp_graph_group(g), list = dp_graph_list(g, own, f < parts->fields);
        int table = group >= 0 ? rows : dp_model_rows(g, own, name, parts->row, 0.05f);
        all[count++] =
            f < parts->fields ? dp_graph_gather(g, table, list) : dp_graph_gather_sum(g, table, list);
    }
    return dp_graph_concat(g, all, count);
}

static enum dp_status declare(const struct dp_model_text *text, struct dp_model *model, struct dp_error *err)
{
    struct dlrm_parts parts = {0};
    struct dp_graph *g = model->graph;
    enum dp_status st = read_parts(text, &parts, err);
    if (st != DP_OK)
        return st;
    int bottom = dp_model_layers(g, "dlrm.bottom", dp_graph_input(g, parts.columns), parts.bottom,
                                 parts.bottom_count, true, 0);
    const int both[2] = {bottom,
                         dp_graph_pairs(g, vectors(g, &parts, bottom), parts.fields + parts.lists + 1)};
    int x = dp_model_layers(g, "dlrm.top", dp_graph_concat(g, both, 2), parts.top, parts.top_count, true, 0);
    /* Otherwise the first steps, all of one sign, push the columns' vector below 0 for good, and its ReLU
         * outputs only 0. */
    x = dp_model_small_layer(g, "dlrm.top", x, parts.top_count, parts.top[parts.top_count - 1]);
    model->form = parts.per_field ? DP_FORM_TABLES : DP_FORM_FIELDS;
    model->fields = parts.fields;
    /* The first steps towards the odds make the vectors grow; without them it learns less in as many steps. */
    model->starts_at_half = true;
    model->pooled = parts.lists;
    model->width = parts.columns;
    return dp_model_loss(text, model, x, err);
}

/* Few columns need small layers: those of Criteo's 39 are 512-256. */
static enum dp_status complete(const struct dp_model_text *text, const struct dp_measure *has,
                               struct dp_model_full *out, struct dp_error *err)
{
    uint32_t wide = 32;
    if (has->format[0] && has->numbers == 0 && !dp_model_has_option(text, "columns"))
        return dp_fail(
            err, DP_ARGUMENT,
            "the training file has no column of numbers, but dlrm takes 1 at least: add one, or take "
            "deepfm");
    enum dp_status st = dp_model_complete_fields(text, has, out, err);
    if (st != DP_OK)
        return st;
    while (wide < 512 && wide < 12 * (has->numbers + has->categories + has->lists))
        wide *= 2;
    for (int top = 0; wide < 512 && top < 2; top++) {
        const char *name = top ? "top" : "bottom";
        size_t len = strlen(out->options);
        if (!dp_model_has_option(text, name))
            (void)snprintf(out->options + len, sizeof out->options - len, ",%s=%u-%u", name, wide, wide / 2);
    }
    return DP_OK;
}

const struct dp_model_kind dp_model_dlrm = {
    "dlrm",
    "dlrm:R",
    "dlrm:64",
    "products of all pairs of categories' rows and of the numbers' vector, then layers (Naumov et al. 2019)",
    "R: width of a category's row, and of the numbers' vector",
    "clicks (Criteo: columns=13,fields=26, the defaults) and CSV of numbers "
    "(1 at least) and categories; labels 0 and 1, any number with loss=squared",
    {DP_MODEL_LOSS,
     {"bottom", "W-...", "512-256", "widths of the layers that the numbers go through"},
     {"top", "W-...", "512-256", "widths of the layers after the products"},
     {"tables", "one|fields", "one", "fields: each category has a table of its own (31 at most)"},
     {"fields", "N", "26", "categories of an example (1 .. 4096; 0 with lists); run: those of the file"},
     DP_MODEL_LISTS,
     {"columns", "N", "13", "numbers of an example (1 .. 65536); run: those of the file"}},
    declare,
    complete,
    800,
    2,
    true};
