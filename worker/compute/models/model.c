#include "worker/compute/models/model.h"

#include <stdio.h>
#include <string.h>

static const struct dp_model_kind *const models[] = {
    &dp_model_logistic,  &dp_model_mlp,    &dp_model_fm,   &dp_model_mf,       &dp_model_neumf,
    &dp_model_wide_deep, &dp_model_deepfm, &dp_model_dlrm, &dp_model_skipgram, &dp_model_lstm};

#define MODELS         (sizeof models / sizeof models[0])
#define MODEL_TEXT_MAX 511

const struct dp_model_kind *dp_model_kind(size_t number)
{
    return number < MODELS ? models[number] : NULL;
}

static enum dp_status find_model(const char *name, const struct dp_model_kind **out, struct dp_error *err)
{
    char names[160] = "";
    for (size_t i = 0; i < MODELS; i++) {
        if (strcmp(models[i]->name, name) == 0) {
            *out = models[i];
            return DP_OK;
        }
        size_t at = strlen(names);
        (void)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", models[i]->name);
    }
    return dp_fail(
        err, DP_ARGUMENT,
        "there is no model '%.64s'; the models are %s ('downpour run --help models' explains them)", name,
        names);
}

/* Splits one "option=value" in place. */
static enum dp_status add_option(const struct dp_model_kind *known, char *part, struct dp_model_text *text,
                                 struct dp_error *err)
{
    char *value = strchr(part, '=');
    if (value)
        *value++ = '\0';
    char names[128] = "";
    bool found = false;
    for (int i = 0; i < DP_MODEL_OPTIONS_MAX && known->option[i].name; i++) {
        size_t at = strlen(names);
        (void)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", known->option[i].name);
        found |= strcmp(known->option[i].name, part) == 0;
    }
    if (!found)
        return dp_fail(err, DP_ARGUMENT, "'%.64s' is not an option of %s; it has: %s", part, known->name,
                       names[0] ? names : "none");
    if (!value || !*value)
        return dp_fail(err, DP_ARGUMENT, "option '%s' has no value: write %s=VALUE", part, part);
    for (int i = 0; i < text->options; i++)
        if (strcmp(text->option[i].name, part) == 0)
            return dp_fail(err, DP_ARGUMENT, "option '%s' is given twice", part);
    /* Each allowed name occurs once, so there is space. */
    text->option[text->options].name = part;
    text->option[text->options++].value = value;
    return DP_OK;
}

/* Splits `copy` in place. */
static enum dp_status take_apart(char *copy, const struct dp_model_kind **known, struct dp_model_text *text,
                                 struct dp_error *err)
{
    char *rest = strchr(copy, ',');
    if (rest)
        *rest++ = '\0';
    char *shape = strchr(copy, ':');
    if (shape)
        *shape++ = '\0';
    enum dp_status st = find_model(copy, known, err);
    if (st != DP_OK)
        return st;
    text->shape = shape ? shape : "";
    text->kind = *known;
    if (((*known)->shape != NULL) != (text->shape[0] != '\0') || (shape && !*shape))
        return dp_fail(err, DP_ARGUMENT, "%s %s: for example, %s", (*known)->name,
                       (*known)->shape ? "needs a shape" : "takes no shape", (*known)->example);
    while (st == DP_OK && rest) {
        char *part = rest;
        rest = strchr(part, ',');
        if (rest)
            *rest++ = '\0';
        st = add_option(*known, part, text, err);
    }
    return st;
}

enum dp_status dp_model_open(const char *text, struct dp_model *out, struct dp_error *err)
{
    char copy[MODEL_TEXT_MAX + 1];
    const struct dp_model_kind *known = NULL;
    struct dp_model_text parts = {0};
    *out = (struct dp_model){0};
    if (strlen(text) > MODEL_TEXT_MAX)
        return dp_fail(err, DP_ARGUMENT, "model '%.64s...': longer than %d characters", text, MODEL_TEXT_MAX);
    memcpy(copy, text, strlen(text) + 1);
    enum dp_status st = take_apart(copy, &known, &parts, err);
    if (st == DP_OK)
        st = dp_graph_new(&out->graph, err);
    if (st == DP_OK)
        st = known->declare(&parts, out, err);
    if (st == DP_OK)
        st = dp_graph_check(out->graph, err);
    if (st == DP_OK) {
        out->steps_wanted = out->steps_wanted ? out->steps_wanted : known->steps_wanted;
        out->epochs_min = out->epochs_min ? out->epochs_min : known->epochs_min;
        out->batch_max = out->batch_max ? out->batch_max : DP_MODEL_BATCH_MAX;
        out->examples_max = out->examples_max ? out->examples_max : DP_MODEL_EXAMPLES_MAX;
        out->rate = out->rate > 0 ? out->rate : DP_MODEL_RATE;
        out->rate_further = out->rate_further > 0 ? out->rate_further : out->rate;
        out->decays = known->decays && out->classes <= 2;
    }
    if (st != DP_OK) {
        dp_model_close(out);
        st = dp_wrap(err, st, "model '%.128s'", text);
    }
    return st;
}

bool dp_model_wants(const char *text, struct dp_dataset_options *data)
{
    char copy[MODEL_TEXT_MAX + 1];
    const struct dp_model_kind *known = NULL;
    struct dp_model_text parts = {0};
    if (strlen(text) > MODEL_TEXT_MAX)
        return false;
    memcpy(copy, text, strlen(text) + 1);
    if (take_apart(copy, &known, &parts, NULL) != DP_OK || !known->complete)
        return false;
    const char *loss = dp_model_option(&parts, "loss");
    data->form = known == &dp_model_mlp ? DP_FORM_DENSE : DP_FORM_FIELDS;
    data->labels = strcmp(loss, "softmax") == 0   ? DP_LABELS_CLASS
                   : strcmp(loss, "squared") == 0 ? DP_LABELS_ANY
                                                  : DP_LABELS_BINARY;
    return true;
}

enum dp_status dp_model_complete(const char *text, const struct dp_measure *has, char *out, size_t size,
                                 struct dp_error *err)
{
    char copy[MODEL_TEXT_MAX + 1];
    const struct dp_model_kind *known = NULL;
    struct dp_model_text parts = {0};
    struct dp_model_full full = {0};
    DP_ASSERT(strlen(text) <= MODEL_TEXT_MAX);
    memcpy(copy, text, strlen(text) + 1);
    enum dp_status st = take_apart(copy, &known, &parts, err);
    if (st == DP_OK && known->complete)
        st = known->complete(&parts, has, &full, err);
    if (st != DP_OK)
        return dp_wrap(err, st, "model '%.128s'", text);
    const char *shape = full.shape[0] ? full.shape : parts.shape;
    size_t len = (size_t)snprintf(out, size, "%s%s%s", known->name, shape[0] ? ":" : "", shape);
    for (int i = 0; i < parts.options && len < size; i++)
        len += (size_t)snprintf(out + len, size - len, ",%s=%s", parts.option[i].name, parts.option[i].value);
    if (len < size)
        len += (size_t)snprintf(out + len, size - len, "%s", full.options);
    return len < size ? DP_OK
                      : dp_fail(err, DP_ARGUMENT, "model '%.64s...' in full is longer than %zu characters",
                                text, size - 1);
}

void dp_model_close(struct dp_model *model)
{
    dp_graph_free(&model->graph);
    *model = (struct dp_model){0};
}

/* ---- help */

#define TEXT_AT    12
#define TEXT_WIDTH 100

/* "  label     words words", broken between words at TEXT_WIDTH. */
static void print(const char *label, const char *text, FILE *file)
{
    int at = fprintf(file, "  %-*s", TEXT_AT - 2, label);
    for (const char *word = text; *word;) {
        int len = (int)strcspn(word, " ");
        if (at > TEXT_AT && at + 1 + len > TEXT_WIDTH)
            at = fprintf(file, "\n%*s", TEXT_AT, "") - 1;
        else if (at > TEXT_AT)
            at += fprintf(file, " ");
        at += fprintf(file, "%.*s", len, word);
        word += len + (word[len] == ' ');
    }
    (void)fputc('\n', file);
}

static void print_one(const struct dp_model_kind *model, FILE *file)
{
    char label[64], text[512];
    (void)fprintf(file, "\n%s\n", model->grammar);
    print("", model->about, file);
    if (model->shape)
        print("shape", model->shape, file);
    print("data", model->reads, file);
    for (int i = 0; i < DP_MODEL_OPTIONS_MAX && model->option[i].name; i++) {
        (void)snprintf(label, sizeof label, i == 0 ? "options" : "");
        (void)snprintf(text, sizeof text, "%s=%s  (default %s) %s", model->option[i].name,
                       model->option[i].values, model->option[i].start, model->option[i].about);
        print(label, text, file);
    }
    print("example", model->example, file);
}

bool dp_model_help_print(const char *name, FILE *file)
{
    bool found = false;
    for (size_t i = 0; i < MODELS; i++)
        found |= !name || strcmp(models[i]->name, name) == 0;
    if (!found)
        return false;
    if (!name)
        (void)fputs("Usage: --model NAME[:SHAPE][,OPTION=VALUE ...]\n\nDashes separate the numbers of a "
                    "shape. The data format is detected from the model and the file's\nfirst bytes; "
                    "deploy/docs/guide.md shows a line of each.\n",
                    file);
    for (size_t i = 0; i < MODELS; i++)
        if (!name || strcmp(models[i]->name, name) == 0)
            print_one(models[i], file);
    return true;
}
