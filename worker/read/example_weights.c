#include "worker/read/example_weights.h"

#include "common/base/parse.h"
#include "worker/read/labels.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLAG "--class-weight (data.class_weight)"

static uint32_t classes_of(const struct dp_dataset_options *o)
{
    return o->labels == DP_LABELS_BINARY ? 2 : o->labels == DP_LABELS_CLASS ? o->classes : 0;
}

/* scikit-learn's: examples / (classes * examples of the class). Of a class without examples it is 1. */
static enum dp_status balance(const struct dp_content *content, uint32_t classes, double *weight,
                              struct dp_error *err)
{
    uint64_t *count = calloc(classes, sizeof *count);
    if (!count)
        return dp_fail(err, DP_NOMEM, "no memory to count %" PRIu32 " classes", classes);
    for (uint64_t i = 0; i < content->examples; i++)
        count[(uint32_t)content->labels[i]]++;
    for (uint32_t c = 0; c < classes; c++)
        weight[c] = count[c] ? (double)content->examples / ((double)classes * (double)count[c]) : 1;
    free(count);
    return DP_OK;
}

/* A number of a cell; others are cut, and are none. */
static enum dp_status number_of(struct dp_cell cell, double min, const char *what, double *out,
                                struct dp_error *err)
{
    char text[64];
    cell = dp_cell_trim(cell);
    (void)snprintf(text, sizeof text, "%.*s", (int)(cell.end - cell.at), cell.at);
    return dp_parse_f64(text, min, FLT_MAX, what, out, err);
}

/* The label of a class. */
static int64_t number_of_class(const struct dp_content *content, const struct dp_schema *schema,
                               uint32_t class)
{
    return class == 0 && content->facts[DP_CONTENT_MINUS] ? -1 : (int64_t) class + schema->label_base;
}

/* The class that a label means: one of the texts, or a number. */
static enum dp_status find_class(const struct dp_dataset_options *o, const struct dp_content *content,
                                 const struct dp_schema *schema, struct dp_cell cell, uint32_t *out,
                                 struct dp_error *err)
{
    struct dp_label_rule rule = dp_label_rule_of(o);
    double number = 0;
    float label = 0;
    rule.base = schema->label_base;
    enum dp_status st = schema->classes > 0
                            ? dp_label_find(schema, o->labels, dp_cell_trim(cell), &label, err)
                            : number_of(cell, -1, "label", &number, err);
    if (st == DP_OK && schema->classes == 0 && o->labels == DP_LABELS_BINARY &&
        number == (content->facts[DP_CONTENT_MINUS] ? 0 : -1))
        return dp_fail(err, DP_ARGUMENT, "label %g: the file's labels are %" PRId64 " and %" PRIu32, number,
                       number_of_class(content, schema, 0), 1 + schema->label_base);
    if (st == DP_OK && schema->classes == 0)
        st = dp_label_map(&rule, (float)number, &label, err);
    *out = (uint32_t)label;
    return st;
}

/* "yes=5". The class has no weight yet: a negative one. */
static enum dp_status take_one(const struct dp_dataset_options *o, const struct dp_content *content,
                               const struct dp_schema *schema, struct dp_cell item, double *weight,
                               struct dp_error *err)
{
    const char *after = item.end;
    double value = 0;
    uint32_t class = 0;
    while (after > item.at && after[-1] != '=')
        after--;
    if (after == item.at)
        return dp_fail(err, DP_ARGUMENT,
                       "'%s': expected 'balanced', or classes with their weights: 'yes=5,no=1'",
                       dp_cell_show(item).text);
    enum dp_status st = find_class(o, content, schema, (struct dp_cell){item.at, after - 1}, &class, err);
    if (st == DP_OK)
        st = number_of((struct dp_cell){after, item.end}, 0, "weight", &value, err);
    if (st == DP_OK && weight[class] >= 0)
        return dp_fail(err, DP_ARGUMENT, "class '%s' has two weights, %g and %g: leave one",
                       dp_cell_show(dp_cell_trim((struct dp_cell){item.at, after - 1})).text, weight[class],
                       value);
    if (st == DP_OK)
        weight[class] = value;
    return st;
}

/* *out: [classes], NULL: there are none. */
static enum dp_status class_weights(const struct dp_dataset_options *o, const struct dp_content *content,
                                    const struct dp_schema *schema, double **out, struct dp_error *err)
{
    const uint32_t classes = classes_of(o);
    *out = NULL;
    if (!o->class_weight)
        return DP_OK;
    if (classes == 0 || !content->labels)
        return dp_fail(err, DP_ARGUMENT, FLAG ": these labels are no classes: leave it out");
    double *weight = calloc(classes, sizeof *weight);
    if (!weight)
        return dp_fail(err, DP_NOMEM, "no memory for the weights of %" PRIu32 " classes", classes);
    enum dp_status st = DP_OK;
    for (uint32_t c = 0; c < classes; c++)
        weight[c] = -1;
    if (strcmp(o->class_weight, "balanced") == 0)
        st = balance(content, classes, weight, err);
    else
        for (const char *at = o->class_weight; st == DP_OK && *at;) {
            size_t len = strcspn(at, ",");
            st = take_one(o, content, schema, (struct dp_cell){at, at + len}, weight, err);
            at += len + (at[len] == ',');
        }
    for (uint32_t c = 0; c < classes; c++)
        weight[c] = weight[c] < 0 ? 1 : weight[c];
    if (st == DP_OK)
        *out = weight;
    else
        free(weight);
    return st == DP_OK || st == DP_NOMEM ? st : dp_wrap(err, DP_ARGUMENT, FLAG);
}

static const char *column_of(const struct dp_schema *schema)
{
    for (uint32_t i = 0; i < schema->columns; i++)
        if (schema->column[i].kind == DP_COLUMN_WEIGHT)
            return schema->column[i].name;
    return "";
}

static double weight_of(const struct dp_content *content, const double *class, uint64_t example)
{
    double own = content->weights_len ? (double)content->weights[example] : 1;
    return class ? own * class[(uint32_t)content->labels[example]] : own;
}

enum dp_status dp_example_weights_new(const struct dp_dataset_options *options,
                                      const struct dp_content *content, const struct dp_schema *schema,
                                      float **out, struct dp_error *err)
{
    double *class = NULL, sum = 0;
    *out = NULL;
    if (!options->weighs || options->held)
        return DP_OK;
    enum dp_status st = class_weights(options, content, schema, &class, err);
    if (st != DP_OK || (!class && content->weights_len == 0))
        return st;
    for (uint64_t i = 0; i < content->examples; i++)
        sum += weight_of(content, class, i);
    float *weights = malloc(content->examples * sizeof *weights);
    if (!weights)
        st = dp_fail(err, DP_NOMEM, "no memory for %" PRIu64 " weights", content->examples);
    else if (!(sum > 0))
        st = content->weights_len
                 ? dp_fail(err, DP_DATA,
                           "column '%s': the weights of all examples are 0 (--weight, data.weight)",
                           dp_cell_show(dp_cell_of(column_of(schema))).text)
                 : dp_fail(err, DP_ARGUMENT, FLAG ": the weights of all examples are 0");
    for (uint64_t i = 0; st == DP_OK && i < content->examples; i++)
        weights[i] = (float)(weight_of(content, class, i) / sum * (double)content->examples);
    free(class);
    if (st == DP_OK)
        *out = weights;
    else
        free(weights);
    return st;
}

static size_t put_column(const struct dp_content *content, const struct dp_schema *schema, char *out,
                         size_t size)
{
    float low = INFINITY, high = 0;
    for (uint64_t i = 0; i < content->examples; i++) {
        low = content->weights[i] < low ? content->weights[i] : low;
        high = content->weights[i] > high ? content->weights[i] : high;
    }
    return (size_t)snprintf(out, size, "weight: %s (%.4g to %.4g)",
                            dp_cell_show(dp_cell_of(column_of(schema))).text, (double)low, (double)high);
}

void dp_example_weights_text(const struct dp_dataset_options *options, const struct dp_content *content,
                             const struct dp_schema *schema, char *out, size_t size)
{
    struct dp_error unheard = {0}; /* they were made before */
    double *class = NULL;
    size_t len = content->weights_len ? put_column(content, schema, out, size) : 0;
    out[len] = '\0';
    if (class_weights(options, content, schema, &class, &unheard) != DP_OK || !class)
        return;
    len += (size_t)snprintf(out + len, size - len, "%sclass weights: ", len ? "; " : "");
    for (uint32_t c = 0; c < classes_of(options); c++) {
        char name[sizeof(struct dp_shown)];
        (void)snprintf(name, sizeof name, "%" PRId64, number_of_class(content, schema, c));
        if (schema->classes > 0)
            (void)snprintf(name, sizeof name, "%s", dp_cell_show(dp_cell_of(schema->class_text[c])).text);
        if (len + sizeof name + 20 > size) {
            (void)snprintf(out + len, size - len, ", ...");
            break;
        }
        len += (size_t)snprintf(out + len, size - len, "%s%s %.3g", c ? ", " : "", name, class[c]);
    }
    free(class);
}
