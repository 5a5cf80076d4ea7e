/* MLP: dense layers of the widths given, an activation between them. Layers before a ReLU start by He's
 * rule, the others (the last too) by Glorot's: each keeps the signal's variance through its layer. */
#include "worker/compute/models.h"

#include "common/base/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WIDTHS_MAX (DP_GRAPH_PARAMETERS_MAX / 2 + 1)

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
    const char *value = dp_model_option(text, option, choices[0].name);
    for (const struct choice *c = choices; c->name; c++) {
        if (strcmp(c->name, value) == 0) {
            *out = c;
            return DP_OK;
        }
    }
    return dp_fail(err, DP_ARGUMENT, "%s '%.64s' is not known: %s, %s or %s", option, value, choices[0].name,
                   choices[1].name, choices[2].name);
}

/* "784-256-10" */
static enum dp_status parse_widths(const char *shape, uint32_t *widths, int *count, struct dp_error *err)
{
    for (const char *at = shape; at;) {
        const char *dash = strchr(at, '-');
        size_t length = dash ? (size_t)(dash - at) : strlen(at);
        char part[24];
        if (*count == WIDTHS_MAX)
            return dp_fail(err, DP_ARGUMENT, "more than %d widths", WIDTHS_MAX);
        (void)snprintf(part, sizeof part, "%.*s", (int)(length < sizeof part ? length : sizeof part - 1), at);
        uint64_t width;
        enum dp_status st = dp_parse_u64(part, 1, DP_GRAPH_WIDTH_MAX, "width", &width, err);
        if (st != DP_OK)
            return st;
        widths[(*count)++] = (uint32_t)width;
        at = dash ? dash + 1 : NULL;
    }
    if (*count < 2)
        return dp_fail(err, DP_ARGUMENT,
                       "one width is no layer: give the columns of the data first and the outputs last, as "
                       "mlp:784-256-10");
    return DP_OK;
}

static int layer(struct dp_graph *g, int x, int number, uint32_t in, uint32_t out, bool before_relu)
{
    char name[DP_TABLE_NAME_MAX + 1];
    struct dp_init_spec init = {
        .kind = before_relu ? DP_INIT_HE : DP_INIT_XAVIER, .fan_in = in, .fan_out = out};
    (void)snprintf(name, sizeof name, "mlp.w%d", number);
    int w = dp_graph_dense(g, name, in, out, init);
    (void)snprintf(name, sizeof name, "mlp.b%d", number);
    int b = dp_graph_dense(g, name, 1, out, (struct dp_init_spec){.kind = DP_INIT_ZERO});
    return dp_graph_bias(g, dp_graph_matmul(g, x, w), b);
}

enum dp_status dp_model_mlp(const struct dp_model_text *text, struct dp_model *model, struct dp_error *err)
{
    uint32_t widths[WIDTHS_MAX];
    int count = 0;
    const struct choice *activation = NULL, *loss = NULL;
    enum dp_status st = choose(text, "activation", activations, &activation, err);
    if (st == DP_OK)
        st = choose(text, "loss", losses, &loss, err);
    if (st == DP_OK)
        st = parse_widths(text->shape, widths, &count, err);
    if (st != DP_OK)
        return st;
    uint32_t last = widths[count - 1];
    if (last == 1 && loss->op == DP_OP_SOFTMAX_LOSS)
        return dp_fail(err, DP_ARGUMENT,
                       "one output is no choice of classes: add loss=squared (regression) or loss=logistic "
                       "(labels 0 and 1)");
    if (last != 1 && loss->op != DP_OP_SOFTMAX_LOSS)
        return dp_fail(err, DP_ARGUMENT, "loss=%s takes one output: the last width is %" PRIu32 ", not 1",
                       loss->name, last);
    int x = dp_graph_input(model->graph, widths[0]);
    for (int i = 1; i < count; i++) {
        bool hidden = i < count - 1;
        x = layer(model->graph, x, i, widths[i - 1], widths[i], hidden && activation->op == DP_OP_RELU);
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
