#include "worker/score/baseline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCHES_MAX 512u

/* Statistics of the labels of one set: sums of weights, which are 1 except in a weighted training file. */
struct counts {
    double examples, *of; /* [classes], NULL in a regression */
    double mean, squares; /* of a regression: sum of squared distances from the mean (West 1979) */
};

static void add(struct counts *counts, uint32_t classes, float label, double weight)
{
    double delta = (double)label - counts->mean;
    counts->examples += weight;
    if (!counts->of && weight > 0) {
        counts->mean += weight * delta / counts->examples;
        counts->squares += weight * delta * ((double)label - counts->mean);
    }
    DP_ASSERT(!counts->of || (label >= 0 && label < (float)classes));
    if (counts->of)
        counts->of[(uint32_t)label] += weight;
}

/* Counts the labels of some minibatches, spread evenly over the epoch. */
static enum dp_status count_batches(const struct dp_dataset *data, uint32_t classes, struct counts *out,
                                    struct dp_error *err)
{
    uint64_t batches = dp_dataset_batches(data), step = batches / BATCHES_MAX + 1;
    struct dp_batch *batch = NULL;
    enum dp_status st = dp_batch_new(data, &batch, err);
    for (uint64_t n = 0; st == DP_OK && n < batches; n += step) {
        dp_dataset_fill(data, 0, n, batch);
        for (uint32_t i = 0; i < batch->examples; i++)
            add(out, classes, batch->labels[i], 1);
    }
    dp_batch_free(&batch);
    return st;
}

static enum dp_status count(const struct dp_dataset *data, uint32_t classes, struct counts *out,
                            struct dp_error *err)
{
    float label;
    *out = (struct counts){0};
    if (classes > 0) {
        out->of = calloc(classes, sizeof *out->of);
        if (!out->of)
            return dp_fail(err, DP_NOMEM, "no memory to count %u classes", classes);
    }
    if (dp_dataset_examples(data) == 0 || !dp_dataset_label(data, 0, &label))
        return count_batches(data, classes, out, err);
    for (uint64_t i = 0; i < dp_dataset_examples(data); i++) {
        (void)dp_dataset_label(data, i, &label);
        add(out, classes, label, dp_dataset_weight(data, i));
    }
    return DP_OK;
}

static void of_classes(const struct counts *train, const struct counts *evaluated, uint32_t classes,
                       struct dp_figures *out)
{
    double loss = 0, all = train->examples + 0.5 * classes;
    uint32_t top = 0;
    for (uint32_t c = 0; c < classes; c++) {
        loss -= evaluated->of[c] * log((train->of[c] + 0.5) / all);
        if (train->of[c] > train->of[top])
            top = c;
    }
    out->loss = loss / evaluated->examples;
    out->accuracy = evaluated->of[top] / evaluated->examples;
}

static void of_numbers(const struct counts *train, const struct counts *evaluated, struct dp_figures *out)
{
    double apart = evaluated->mean - train->mean;
    out->loss = evaluated->squares / evaluated->examples + apart * apart;
    out->rmse = sqrt(out->loss);
}

enum dp_status dp_baseline_figures(const struct dp_model *model, const struct dp_dataset *train,
                                   const struct dp_dataset *evaluated, struct dp_figures *out,
                                   struct dp_error *err)
{
    uint32_t classes = model->labels == DP_LABELS_BINARY  ? 2
                       : model->labels == DP_LABELS_CLASS ? model->classes
                                                          : 0;
    struct counts before = {0}, now = {0};
    *out = dp_figures_none(dp_dataset_examples(evaluated));
    if (model->labels == DP_LABELS_NONE)
        return DP_OK;
    if (model->form == DP_FORM_TRIPLES) {
        out->loss = log(2);
        return DP_OK;
    }
    enum dp_status st = count(train, classes, &before, err);
    if (st == DP_OK)
        st = count(evaluated, classes, &now, err);
    if (st == DP_OK && before.examples > 0 && now.examples > 0) {
        if (classes > 0)
            of_classes(&before, &now, classes, out);
        else
            of_numbers(&before, &now, out);
        if (model->labels == DP_LABELS_BINARY && now.of[0] > 0 && now.of[1] > 0)
            out->auc = 0.5;
    }
    free(before.of);
    free(now.of);
    return st;
}

bool dp_baseline_one_label(const struct dp_dataset *train, enum dp_labels kind, char *text, size_t size)
{
    const struct dp_schema *schema = dp_dataset_schema(train);
    float label, other;
    text[0] = '\0';
    if (dp_dataset_examples(train) == 0 || !dp_dataset_label(train, 0, &label))
        return false;
    for (uint64_t i = 1; i < dp_dataset_examples(train); i++)
        if (!dp_dataset_label(train, i, &other) || other != label)
            return false;
    if (kind == DP_LABELS_ANY)
        (void)snprintf(text, size, "%g", (double)label);
    else if (schema->classes > 0)
        (void)snprintf(text, size, "'%s'",
                       dp_cell_show(dp_cell_of(schema->class_text[(uint32_t)label])).text);
    else
        (void)snprintf(text, size, "%g%s", (double)label + schema->label_base,
                       kind == DP_LABELS_BINARY && label == 0 ? " (or -1)" : "");
    return true;
}
