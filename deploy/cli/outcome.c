#include "deploy/cli/outcome.h"

#include "deploy/cli/progress.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Columns of the table, in this order where the report has them. */
static const struct column {
    const char *key, *heading;
    const char *in; /* "test": inside that; NULL: beside it */
    const char *format;
} columns[] = {
    {"train_loss", "train loss", NULL, "%12.5f"},
    {"loss", "v. loss", "validation", "%12.5f"}, /* v.: of the validation set */
    {"accuracy", "v. accuracy", "validation", "%12.4f"},
    {"auc", "v. AUC", "validation", "%12.5f"},
    {"rmse", "v. RMSE", "validation", "%12.5f"},
    {"hr10", "v. HR@10", "validation", "%12.4f"},
    {"ndcg10", "v. NDCG@10", "validation", "%12.4f"},
    {"recall@", "v. ", "validation", "%12.4f"},
    {"ndcg@", "v. ", "validation", "%12.4f"},
    {"loss", "test loss", "test", "%12.5f"},
    {"accuracy", "accuracy", "test", "%12.4f"},
    {"auc", "AUC", "test", "%12.5f"},
    {"rmse", "RMSE", "test", "%12.5f"},
    {"hr10", "HR@10", "test", "%12.4f"},
    {"ndcg10", "NDCG@10", "test", "%12.4f"},
    {"recall@", "", "test", "%12.4f"},
    {"ndcg@", "", "test", "%12.4f"},
    {"seconds", "seconds", NULL, "%12.2f"},
};
#define COLUMNS (sizeof columns / sizeof columns[0])

/* "recall@" of items ranked among all: the key that begins so, of the highest K; NULL. */
static const char *key_of_all(const json_t *all, const char *begins)
{
    const char *found = NULL, *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)all, key,
                        value) if (strncmp(key, begins, strlen(begins)) == 0 &&
                                   (!found || strtoul(strchr(key, '@') + 1, NULL, 10) >
                                                  strtoul(strchr(found, '@') + 1, NULL, 10))) found = key;
    return found;
}

static bool is_of_all(const struct column *column)
{
    return column->key[strlen(column->key) - 1] == '@';
}

static const json_t *figure(const json_t *epoch, const struct column *column)
{
    const json_t *in = column->in ? json_object_get(epoch, column->in) : epoch;
    if (is_of_all(column)) {
        const json_t *all = json_object_get(in, "all_items");
        const char *key = key_of_all(all, column->key);
        return key ? json_object_get(all, key) : NULL;
    }
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

static void print_heading(const json_t *epochs, const struct column *column, FILE *file)
{
    char text[32];
    const char *key = NULL;
    for (size_t i = 0; is_of_all(column) && !key && i < json_array_size(epochs); i++)
        key = key_of_all(json_object_get(json_object_get(json_array_get(epochs, i), column->in), "all_items"),
                         column->key);
    (void)snprintf(text, sizeof text, "%s%s", column->heading, key ? key : "");
    fprintf(file, "%12s", text);
}

static void print_epochs(const json_t *root, FILE *file)
{
    const json_t *epochs = json_object_get(root, "epochs");
    /* Beside a validation set the test set has one line below, of the end. */
    bool shown[COLUMNS], valid = json_object_get(json_object_get(root, "final"), "validation") != NULL;
    fprintf(file, "%5s", "epoch");
    for (size_t c = 0; c < COLUMNS; c++) {
        shown[c] =
            anywhere(epochs, &columns[c]) && !(valid && columns[c].in && strcmp(columns[c].in, "test") == 0);
        if (shown[c])
            print_heading(epochs, &columns[c], file);
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

static void print_of_all(const json_t *all, const char *heading, FILE *file)
{
    const char *key, *before = "";
    json_t *value;
    if (!all)
        return;
    fprintf(file, "%s", heading);
    json_object_foreach((json_t *)(uintptr_t)all, key, value)
    {
        if (!strchr(key, '@'))
            continue;
        fprintf(file, "%s%s %.4f", before, key, json_number_value(value));
        before = ", ";
    }
    fprintf(file, " (of all %.0f items, %.0f users)\n", json_number_value(json_object_get(all, "items")),
            json_number_value(json_object_get(all, "users")));
}

static void print_final(const json_t *root, const char *set, const char *heading, FILE *file)
{
    static const char *const names[][3] = {{"hr10", "HR@10", "%.4f"},        {"ndcg10", "NDCG@10", "%.4f"},
                                           {"accuracy", "accuracy", "%.4f"}, {"auc", "AUC", "%.5f"},
                                           {"rmse", "RMSE", "%.5f"},         {"loss", "loss", "%.5f"}};
    const json_t *test = json_object_get(json_object_get(root, "final"), set);
    bool first = true;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const json_t *value = json_object_get(test, names[i][0]);
        if (!json_is_number(value))
            continue;
        fprintf(file, "%s%s ", first ? heading : ", ", names[i][1]);
        print_number(file, names[i][2], json_number_value(value));
        first = false;
    }
    if (!first)
        fputc('\n', file);
    print_of_all(json_object_get(test, "all_items"), heading, file);
}

static double number_in(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* Why the training ended where it did, where something was looked at for that. */
static void print_stop(const json_t *root, FILE *file)
{
    const json_t *stop = json_object_get(root, "stop");
    const char *why = json_string_value(json_object_get(stop, "why")),
               *text = json_string_value(json_object_get(stop, "text")),
               *set = json_string_value(json_object_get(stop, "set")),
               *metric = json_string_value(json_object_get(stop, "metric"));
    if (!why || !set || !metric)
        return;
    if (strcmp(why, "epochs") != 0)
        fprintf(file, "Stopped:   after epoch %.0f, minibatch %.0f: %s %s\n", number_in(stop, "epoch"),
                number_in(stop, "minibatch"), set, text ? text : metric);
    else if (json_object_get(stop, "goal"))
        fprintf(file, "Not reached: %s %s of %g; it was %g at the end\n", set, metric,
                number_in(stop, "goal"), number_in(stop, "value"));
}

/* What nobody named. */
static void print_chosen(const json_t *root, FILE *file)
{
    const json_t *settings = json_object_get(root, "settings");
    char number[32];
    if (!json_is_true(json_object_get(settings, "epochs_by_size")))
        return;
    fprintf(file, "Epochs:    %.0f in minibatches of %.0f, by the size of the training set (%s examples)\n",
            number_in(settings, "epochs"), number_in(settings, "batch"),
            dp_cli_number(number_in(json_object_get(root, "data"), "examples"), number, sizeof number));
}

/* What a model that says the same of every example would have reached. */
static void print_constant(const json_t *root, FILE *file)
{
    const json_t *constant = json_object_get(root, "constant");
    const char *set = json_string_value(json_object_get(constant, "set"));
    static const char *const names[][3] = {
        {"accuracy", "accuracy", "%.4f"}, {"rmse", "RMSE", "%.5f"}, {"loss", "loss", "%.5f"}};
    if (!set)
        return;
    fprintf(file, "A constant would reach, on the %s set: ", set);
    bool first = true;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const json_t *value = json_object_get(constant, names[i][0]);
        if (!json_is_number(value))
            continue;
        fprintf(file, "%s%s ", first ? "" : ", ", names[i][1]);
        print_number(file, names[i][2], json_number_value(value));
        first = false;
    }
    fputc('\n', file);
}

static void print_advice(const json_t *root, FILE *file)
{
    const json_t *advice = json_object_get(root, "advice");
    for (size_t i = 0; i < json_array_size(advice); i++) {
        const char *text = json_string_value(json_array_get(advice, i));
        if (text)
            fprintf(file, "Note:      %s\n", text);
    }
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
        print_epochs(root, file);
    print_chosen(root, file);
    print_stop(root, file);
    const char *labels = json_string_value(json_object_get(json_object_get(root, "data"), "labels"));
    if (labels)
        fprintf(file, "Labels:    %s\n", labels);
    print_final(root, "validation", "Validation set: ", file);
    print_final(root, "test", "Test set: ", file);
    print_constant(root, file);
    print_throughput(root, file);
    print_advice(root, file);
    json_decref(root);
    return DP_OK;
}
