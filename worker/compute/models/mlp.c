/* MLP: dense layers of the widths given, an activation between them. */
#include "worker/compute/model_kind.h"

#include <inttypes.h>
#include <string.h>

#define WIDTHS_MAX     (DP_GRAPH_PARAMETERS_MAX / 2 + 1)
#define CLASSES_LIKELY 65536 /* more are values, such as prices */

struct choice {
    const char *name;
    enum dp_op op;
    enum dp_labels labels; /* of a loss */
};

static const struct choice activations[] = {
    {"relu", DP_OP_RELU, 0}, {"sigmoid", DP_OP_SIGMOID, 0}, {"tanh", DP_OP_TANH, 0}, {0}};
static const struct choice losses[] = {{"softmax", DP_OP_SOFTMAX_LOSS, DP_LABELS_CLASS},
                                       {"logistic", DP_OP_LOGISTIC_LOSS, DP_LABELS_BINARY},
                                       {"squared", DP_OP_SQUARED_LOSS, DP_LABELS_ANY},
                                       {0}};

static enum dp_status choose(const struct dp_model_text *text, const char *option,
                             const struct choice *choices, const struct choice **out, struct dp_error *err)
{
    const char *value = dp_model_option(text, option);
    for (const struct choice *c = choices; c->name; c++) {
        if (strcmp(c->name, value) == 0) {
            *out = c;
            return DP_OK;
        }
    }
    return dp_fail(err, DP_ARGUMENT, "%s '%.64s' is not known: %s, %s or %s", option, value, choices[0].name,
                   choices[1].name, choices[2].name);
}

static enum dp_status declare(const struct dp_model_text *text, struct dp_model *model, struct dp_error *err)
{
    uint32_t widths[WIDTHS_MAX];
    int count = 0;
    const struct choice *activation = NULL, *loss = NULL;
    enum dp_status st = choose(text, "activation", activations, &activation, err);
    if (st == DP_OK)
        st = choose(text, "loss", losses, &loss, err);
    if (st == DP_OK)
        st = dp_model_widths(text->shape, widths, WIDTHS_MAX, &count, "mlp:784-256-10", err);
    if (st != DP_OK)
        return st;
    uint32_t last = widths[count - 1];
    if (last == 1 && loss->op == DP_OP_SOFTMAX_LOSS)
        return dp_fail(err, DP_ARGUMENT,
                       "one output cannot choose a class: add loss=squared (regression) or loss=logistic "
                       "(labels 0 and 1)");
    if (last != 1 && loss->op != DP_OP_SOFTMAX_LOSS)
        return dp_fail(err, DP_ARGUMENT, "loss=%s takes one output: the last width is %" PRIu32 ", not 1",
                       loss->name, last);
    int x = dp_graph_input(model->graph, widths[0]);
    for (int i = 1; i < count; i++) {
        bool hidden = i < count - 1;
        if (!hidden && loss->op == DP_OP_SQUARED_LOSS) { /* every output starts near the labels' mean */
            x = dp_model_small_layer(model->graph, "mlp", x, i, widths[i - 1]);
            continue;
        }
        x = dp_model_layer(model->graph, "mlp", x, i, widths[i - 1], widths[i],
                           hidden && activation->op == DP_OP_RELU);
        if (hidden)
            x = dp_graph_unary(model->graph, activation->op, x);
    }
    dp_graph_loss(model->graph, loss->op, x);
    model->form = DP_FORM_DENSE;
    model->width = widths[0];
    model->labels = loss->labels;
    model->classes = loss->labels == DP_LABELS_CLASS ? last : 0;
    return DP_OK;
}

/* The widths are the full shape if they begin with the file's columns and end with its classes or more. They
 * are hidden layers if neither end is the file's. */
static enum dp_status complete(const struct dp_model_text *text, const struct dp_measure *has,
                               struct dp_model_full *out, struct dp_error *err)
{
    char with[DP_MODEL_FULL_BYTES], full[2 * DP_MODEL_FULL_BYTES];
    uint32_t widths[WIDTHS_MAX];
    int count = 0;
    uint64_t outputs = has->classes ? has->classes : 1;
    (void)snprintf(with, sizeof with, "1-%s", text->shape);
    enum dp_status st = dp_model_widths(with, widths, WIDTHS_MAX, &count, "mlp:16-8", err);
    if (st != DP_OK || !has->format[0])
        return st;
    if (has->lists > 0)
        return dp_fail(
            err, DP_ARGUMENT,
            "the training file has %" PRIu64
            " columns of lists (--lists), but the model takes numbers only: choose deepfm, wide-deep, dlrm, "
            "fm or logistic, or leave them out (--ignore)",
            has->lists);
    if (has->categories > 0)
        return dp_fail(err, DP_ARGUMENT,
                       "the file has %" PRIu64
                       " column%s of categories, but the model takes numbers only: choose deepfm, wide-deep, "
                       "dlrm, fm or logistic, or leave out what is no number (--ignore)",
                       has->categories, has->categories == 1 ? "" : "s");
    bool in = count > 2 && widths[1] == has->numbers, last = count > 2 && widths[count - 1] == outputs;
    bool more = has->classes && widths[count - 1] > outputs;
    if (in && (last || more))
        return DP_OK;
    (void)snprintf(full, sizeof full, "%" PRIu64 "-%s-%" PRIu64, has->numbers, text->shape, outputs);
    if (last || (in && has->classes)) {
        const char *middle = strchr(text->shape, '-');
        const char *end = strrchr(text->shape, '-');
        return dp_fail(err, DP_ARGUMENT,
                       "the file has %" PRIu64 " columns of numbers and the model %" PRIu64
                       " outputs: write mlp:%" PRIu64 "%.*s-%" PRIu64 ", or mlp:%s if %s are hidden layers",
                       has->numbers, outputs, has->numbers, (int)(end - middle), middle, outputs, full,
                       text->shape);
    }
    if (outputs > CLASSES_LIKELY)
        return dp_fail(
            err, DP_ARGUMENT,
            "labels as in the file would need %" PRIu64
            " classes: if they are values to predict, write mlp:%s,loss=squared; else the model in "
            "full, mlp:%s",
            outputs, text->shape, full);
    (void)snprintf(out->shape, sizeof out->shape, "%.255s", full);
    return DP_OK;
}

const struct dp_model_kind dp_model_mlp = {
    "mlp",
    "mlp:W-...",
    "mlp:784-256-128-10",
    "multilayer perceptron: dense layers, an activation between them",
    "the width of each hidden layer (mlp:256-128); or in full, as a cluster file needs it, "
    "IN-...-OUT: IN: numbers in an example (pixels of an image, columns of a CSV file), OUT: classes, or 1. "
    "Widths that begin with the file's IN are in full",
    "images (idx), features (libsvm) numbered up to IN, and CSV of numbers; labels: classes, any number "
    "with loss=squared, 0 and 1 with loss=logistic",
    {{"activation", "relu|sigmoid|tanh", "relu", "between layers"},
     {"loss", "softmax|logistic|squared", "softmax", "softmax: OUT classes; the others want OUT = 1"}},
    declare,
    complete,
    5000,
    5,
    true};
