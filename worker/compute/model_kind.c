#include "worker/compute/model_kind.h"

#include "common/base/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *dp_model_option(const struct dp_model_text *text, const char *name)
{
    const struct dp_model_option *option = text->kind->option;
    for (int i = 0; i < text->options; i++)
        if (strcmp(text->option[i].name, name) == 0)
            return text->option[i].value;
    while (strcmp(option->name, name) != 0)
        option++;
    return option->start;
}

bool dp_model_has_option(const struct dp_model_text *text, const char *name)
{
    for (int i = 0; i < text->options; i++)
        if (strcmp(text->option[i].name, name) == 0)
            return true;
    return false;
}

enum dp_status dp_model_complete_fields(const struct dp_model_text *text, const struct dp_measure *has,
                                        struct dp_model_full *out, struct dp_error *err)
{
    const struct {
        const char *name;
        uint64_t count;
    } what[] = {{"columns", has->numbers}, {"fields", has->categories}, {"lists", has->lists}};
    if (has->format[0] && has->categories + has->lists == 0 && !dp_model_has_option(text, "fields"))
        return dp_fail(
            err, DP_ARGUMENT,
            "the training file has %" PRIu64
            " columns of numbers and no categories: name those that are codes (--categories), or take "
            "mlp, fm or logistic",
            has->numbers);
    for (size_t i = 0; i < sizeof what / sizeof what[0]; i++) {
        char number[24];
        size_t len = strlen(out->options);
        (void)snprintf(number, sizeof number, "%" PRIu64, what[i].count);
        if (!dp_model_has_option(text, what[i].name) &&
            strcmp(dp_model_option(text, what[i].name), number) != 0)
            (void)snprintf(out->options + len, sizeof out->options - len, ",%s=%s", what[i].name, number);
    }
    return DP_OK;
}

enum dp_status dp_model_widths(const char *text, uint32_t *widths, int room, int *count, const char *what,
                               struct dp_error *err)
{
    *count = 0;
    for (const char *at = text; at;) {
        const char *dash = strchr(at, '-');
        size_t length = dash ? (size_t)(dash - at) : strlen(at);
        char part[24];
        if (*count == room)
            return dp_fail(err, DP_ARGUMENT, "more than %d widths", room);
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
                       "one width is not a layer: give the input first and the output last, as in %s", what);
    return DP_OK;
}

enum dp_status dp_model_shape_number(const struct dp_model_text *text, const char *what, uint32_t high,
                                     uint32_t *out, struct dp_error *err)
{
    uint64_t number = 0;
    enum dp_status st = dp_parse_u64(text->shape, 1, high, what, &number, err);
    *out = (uint32_t)number;
    return st;
}

enum dp_status dp_model_number(const struct dp_model_text *text, const char *name, uint64_t low,
                               uint64_t high, uint32_t *out, struct dp_error *err)
{
    uint64_t number = 0;
    enum dp_status st = dp_parse_u64(dp_model_option(text, name), low, high, name, &number, err);
    *out = (uint32_t)number;
    return st;
}

enum dp_status dp_model_loss(const struct dp_model_text *text, struct dp_model *model, int x,
                             struct dp_error *err)
{
    const char *loss = dp_model_option(text, "loss");
    bool logistic = strcmp(loss, "logistic") == 0;
    if (!logistic && strcmp(loss, "squared") != 0)
        return dp_fail(err, DP_ARGUMENT, "loss '%.64s' is not known: logistic or squared", loss);
    dp_graph_loss(model->graph, logistic ? DP_OP_LOGISTIC_LOSS : DP_OP_SQUARED_LOSS, x);
    model->labels = logistic ? DP_LABELS_BINARY : DP_LABELS_ANY;
    model->rate = logistic ? 0 : 2 * DP_MODEL_RATE; /* numbers have further to go than log odds */
    return DP_OK;
}

static int layer(struct dp_graph *graph, const char *prefix, int x, int number, uint32_t in, uint32_t out,
                 struct dp_init_spec init)
{
    char name[DP_TABLE_NAME_MAX + 1];
    (void)snprintf(name, sizeof name, "%s.w%d", prefix, number);
    int w = dp_graph_dense(graph, name, in, out, init);
    (void)snprintf(name, sizeof name, "%s.b%d", prefix, number);
    int b = dp_graph_dense(graph, name, 1, out, (struct dp_init_spec){.kind = DP_INIT_ZERO});
    return dp_graph_bias(graph, dp_graph_matmul(graph, x, w), b);
}

int dp_model_layer(struct dp_graph *graph, const char *prefix, int x, int number, uint32_t in, uint32_t out,
                   bool before_relu)
{
    return layer(graph, prefix, x, number, in, out,
                 (struct dp_init_spec){
                     .kind = before_relu ? DP_INIT_HE : DP_INIT_XAVIER, .fan_in = in, .fan_out = out});
}

int dp_model_small_layer(struct dp_graph *graph, const char *prefix, int x, int number, uint32_t in)
{
    return layer(graph, prefix, x, number, in, 1,
                 (struct dp_init_spec){.kind = DP_INIT_NORMAL, .scale = 0.01f});
}

int dp_model_layers(struct dp_graph *graph, const char *prefix, int x, const uint32_t *widths, int count,
                    bool relu_last, float dropout)
{
    for (int i = 1; i < count; i++) {
        bool relu = relu_last || i < count - 1;
        x = dp_model_layer(graph, prefix, x, i, widths[i - 1], widths[i], relu);
        if (relu)
            x = dp_graph_unary(graph, DP_OP_RELU, x);
        if (relu && dropout > 0)
            x = dp_graph_dropout(graph, x, dropout);
    }
    return x;
}

int dp_model_bias(struct dp_graph *graph, const char *name, int x)
{
    return dp_graph_bias(graph, x,
                         dp_graph_dense(graph, name, 1, 1, (struct dp_init_spec){.kind = DP_INIT_ZERO}));
}

int dp_model_rows(struct dp_graph *graph, int group, const char *name, uint32_t width, float deviation)
{
    return dp_graph_sparse(
        graph, group, name, width,
        (struct dp_init_spec){.kind = deviation > 0 ? DP_INIT_NORMAL : DP_INIT_ZERO, .scale = deviation});
}
