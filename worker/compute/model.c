#include "worker/compute/model.h"

#include "worker/compute/models.h"

#include <stdio.h>
#include <string.h>

static const struct known {
    const char *name;
    const char *example;
    bool shaped; /* wants ":shape" */
    const char *options[DP_MODEL_OPTIONS_MAX];
    enum dp_status (*declare)(const struct dp_model_text *text, struct dp_model *model, struct dp_error *err);
    uint32_t steps_wanted,
        epochs_min; /* rows of users, items and categories fit noise where they are seen too often */
} models[] = {
    {"logistic", "logistic", false, {NULL}, dp_model_logistic, 10000, 3},
    {"mlp", "mlp:784-256-128-10,activation=relu", true, {"activation", "loss"}, dp_model_mlp, 5000, 5},
    {"fm", "fm:8", true, {"loss", "l2"}, dp_model_fm, 2500, 3},
    {"mf", "mf:16,loss=bpr", true, {"loss"}, dp_model_mf, 5000, 10},
    {"neumf", "neumf:16-64-32-16", true, {NULL}, dp_model_neumf, 5000, 10},
    {"wide-deep", "wide-deep:16-256-128", true, {"fields", "columns", "dropout"}, dp_model_wide_deep, 800, 2},
    {"deepfm", "deepfm:16-256-128", true, {"fields", "columns", "dropout"}, dp_model_deepfm, 800, 2},
    {"dlrm",
     "dlrm:64,bottom=512-256,top=512-256",
     true,
     {"bottom", "top", "tables", "fields", "columns"},
     dp_model_dlrm,
     800,
     2},
    {"skipgram", "skipgram:64", true, {NULL}, dp_model_skipgram, 5000, 3},
    {"lstm", "lstm:16-32-64,classes=256", true, {"classes", "recompute"}, dp_model_lstm, 5000, 3},
};

#define MODELS         (sizeof models / sizeof models[0])
#define MODEL_TEXT_MAX 511

const char *dp_model_name(size_t number)
{
    return number < MODELS ? models[number].name : NULL;
}

const char *dp_model_option(const struct dp_model_text *text, const char *name, const char *otherwise)
{
    for (int i = 0; i < text->options; i++)
        if (strcmp(text->option[i].name, name) == 0)
            return text->option[i].value;
    return otherwise;
}

static enum dp_status find_model(const char *name, const struct known **out, struct dp_error *err)
{
    char names[160] = "";
    for (size_t i = 0; i < MODELS; i++) {
        if (strcmp(models[i].name, name) == 0) {
            *out = &models[i];
            return DP_OK;
        }
        size_t at = strlen(names);
        (void)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", models[i].name);
    }
    return dp_fail(err, DP_ARGUMENT,
                   "no model is named '%.64s'; known are %s ('downpour run --help models' shows how each is "
                   "written)",
                   name, names);
}

/* Takes one "option=value" apart, in place. */
static enum dp_status add_option(const struct known *known, char *part, struct dp_model_text *text,
                                 struct dp_error *err)
{
    char *value = strchr(part, '=');
    if (value)
        *value++ = '\0';
    char names[128] = "";
    bool found = false;
    for (int i = 0; i < DP_MODEL_OPTIONS_MAX && known->options[i]; i++) {
        size_t at = strlen(names);
        (void)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", known->options[i]);
        found |= strcmp(known->options[i], part) == 0;
    }
    if (!found)
        return dp_fail(err, DP_ARGUMENT, "'%.64s' is no option of %s; it has: %s", part, known->name,
                       names[0] ? names : "none");
    if (!value || !*value)
        return dp_fail(err, DP_ARGUMENT, "option '%s' has no value: write %s=VALUE", part, part);
    if (dp_model_option(text, part, NULL))
        return dp_fail(err, DP_ARGUMENT, "option '%s' is given twice", part);
    /* Each allowed name once: there is room. */
    text->option[text->options].name = part;
    text->option[text->options++].value = value;
    return DP_OK;
}

/* Takes `copy` apart, in place. */
static enum dp_status take_apart(char *copy, const struct known **known, struct dp_model_text *text,
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
    if ((*known)->shaped != (text->shape[0] != '\0') || (shape && !*shape))
        return dp_fail(err, DP_ARGUMENT, "%s %s: write, for example, %s", (*known)->name,
                       (*known)->shaped ? "needs a shape" : "takes no shape", (*known)->example);
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
    const struct known *known = NULL;
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
        out->steps_wanted = known->steps_wanted;
        out->epochs_min = known->epochs_min;
    }
    if (st != DP_OK) {
        dp_model_close(out);
        st = dp_wrap(err, st, "model '%.128s'", text);
    }
    return st;
}

void dp_model_close(struct dp_model *model)
{
    dp_graph_free(&model->graph);
    *model = (struct dp_model){0};
}
