#include "deploy/cli/outcome.h"

#include "deploy/cli/progress.h"

#include <jansson.h>
#include <string.h>

/* Columns of the table, in this order where the report has them. */
static const struct column {
    const char *key, *heading;
    bool test; /* inside "test" */
    const char *format;
} columns[] = {
    {"train_loss", "train loss", false, "%12.5f"},
    {"loss", "test loss", true, "%12.5f"},
    {"accuracy", "accuracy", true, "%12.4f"},
    {"auc", "AUC", true, "%12.5f"},
    {"rmse", "RMSE", true, "%12.5f"},
    {"hr10", "HR@10", true, "%12.4f"},
    {"ndcg10", "NDCG@10", true, "%12.4f"},
    {"seconds", "seconds", false, "%12.2f"},
};
#define COLUMNS (sizeof columns / sizeof columns[0])

static const json_t *figure(const json_t *epoch, const struct column *column)
{
    const json_t *in = column->test ? json_object_get(epoch, "test") : epoch;
    const json_t *value = json_object_get(in, column->key);
    return json_is_number(value) ? value : NULL;
}

static bool anywhere(const json_t *epochs, const struct column *column)
{
    for (size_t i = 0; i < json_array_size(epochs); i++)
        if (figure(json_array_get(epochs, i), column))
            return true;
    return false;
}

static void print_number(FILE *file, const char *format, double value)
{
    char text[64];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)snprintf(text, sizeof text, format, value);
#pragma GCC diagnostic pop
    fputs(text, file);
}

static void print_epochs(const json_t *epochs, FILE *file)
{
    bool shown[COLUMNS];
    fprintf(file, "%5s", "epoch");
    for (size_t c = 0; c < COLUMNS; c++) {
        shown[c] = anywhere(epochs, &columns[c]);
        if (shown[c])
            fprintf(file, "%12s", columns[c].heading);
    }
    fputc('\n', file);
    for (size_t i = 0; i < json_array_size(epochs); i++) {
        const json_t *epoch = json_array_get(epochs, i);
        fprintf(file, "%5lld", (long long)json_integer_value(json_object_get(epoch, "epoch")));
        for (size_t c = 0; c < COLUMNS; c++) {
            const json_t *value = shown[c] ? figure(epoch, &columns[c]) : NULL;
            if (value)
                print_number(file, columns[c].format, json_number_value(value));
            else if (shown[c])
                fprintf(file, "%12s", "-");
        }
        fputc('\n', file);
    }
}

static void print_final(const json_t *root, FILE *file)
{
    static const char *const names[][3] = {{"hr10", "HR@10", "%.4f"},        {"ndcg10", "NDCG@10", "%.4f"},
                                           {"accuracy", "accuracy", "%.4f"}, {"auc", "AUC", "%.5f"},
                                           {"rmse", "RMSE", "%.5f"},         {"loss", "loss", "%.5f"}};
    const json_t *test = json_object_get(json_object_get(root, "final"), "test");
    bool first = true;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const json_t *value = json_object_get(test, names[i][0]);
        if (!json_is_number(value))
            continue;
        fprintf(file, first ? "Test set: %s " : ", %s ", names[i][1]);
        print_number(file, names[i][2], json_number_value(value));
        first = false;
    }
    if (!first)
        fputc('\n', file);
}

static void print_throughput(const json_t *root, FILE *file)
{
    const json_t *throughput = json_object_get(root, "throughput"),
                 *staleness = json_object_get(root, "staleness");
    const json_t *rate = json_object_get(throughput, "examples_per_s");
    const json_t *mean = json_object_get(staleness, "mean");
    char number[32];
    if (json_is_number(rate))
        fprintf(file, "Throughput: %s examples/s over %.2f s of training\n",
                dp_cli_number(json_number_value(rate), number, sizeof number),
                json_number_value(json_object_get(throughput, "seconds")));
    if (json_is_number(mean))
        fprintf(file,
                "Staleness: %.2f pushes of others between a pull and its push, on average; %.0f at most\n",
                json_number_value(mean), json_number_value(json_object_get(staleness, "max")));
}

enum dp_status dp_outcome_print(const char *report, FILE *file, struct dp_error *err)
{
    json_error_t why;
    json_t *root = json_load_file(report, 0, &why);
    if (!root)
        return dp_fail(err, DP_DATA, "cannot read report '%s': %s", report, why.text);
    const json_t *epochs = json_object_get(root, "epochs");
    if (json_array_size(epochs) > 0)
        print_epochs(epochs, file);
    print_final(root, file);
    print_throughput(root, file);
    json_decref(root);
    return DP_OK;
}
