#include "worker/context/defaults.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BATCH_MIN   4u
#define BATCHES_MIN 32u
#define EPOCHS_MAX  100u

/* A regression over columns fits the noise of few examples: of 331 and of 1,050 it was best after 1 to 2
 * steps for each. One over categories takes longer than a classification to reach the noise. */
#define FIT_STEPS_MIN UINT64_C(500)
#define FIT_STEPS     1.6

/* The rarer of two labels says most about the weights, and as many steps see less of it. */
static double steps_for(const struct dp_model *model, double rare)
{
    return rare > 0 && model->rare_steps > 0 ? fmin(fmax(DP_RARE_SHARE / rare, 1), model->rare_steps) : 1;
}

static uint32_t batch_of(const struct dp_model *model, uint64_t examples)
{
    uint32_t batch = model->batch_max;
    while (batch > BATCH_MIN && examples / batch < BATCHES_MIN)
        batch /= 2;
    return batch;
}

static uint64_t steps_of(const struct dp_model *model, uint64_t examples)
{
    bool fields = model->form == DP_FORM_FIELDS || model->form == DP_FORM_TABLES;
    if (model->labels == DP_LABELS_ANY && fields)
        return UINT64_C(2) * model->steps_wanted;
    if (model->labels != DP_LABELS_ANY || model->form != DP_FORM_DENSE ||
        examples > (uint64_t)(model->steps_wanted / FIT_STEPS))
        return model->steps_wanted;
    uint64_t steps = (uint64_t)((double)examples * FIT_STEPS);
    return steps > FIT_STEPS_MIN ? steps : FIT_STEPS_MIN;
}

static uint32_t epochs_of(const struct dp_model *model, uint64_t examples, uint32_t batch, double rare)
{
    uint64_t batches = examples / batch + (examples % batch != 0);
    uint64_t steps = (uint64_t)((double)steps_of(model, examples) * steps_for(model, rare));
    uint64_t epochs = steps / batches + (steps % batches != 0);
    uint64_t most = model->examples_max / examples;
    if (epochs < model->epochs_min)
        epochs = model->epochs_min;
    if (epochs > EPOCHS_MAX)
        epochs = EPOCHS_MAX;
    if (epochs > most)
        epochs = most;
    return epochs > 0 ? (uint32_t)epochs : 1;
}

/* The epochs of a further day are those that its examples would have in one run with the earlier ones: more
 * would fit the day too closely. Where it rehearses, they are two thirds of these: earlier examples had
 * theirs, but new users and items have no other day. Words have rows of their own days. More steps for a rare
 * label would fit the day, too. */
static uint32_t further_epochs(const struct dp_model *model, const struct dp_defaults_data *data,
                               const struct dp_cluster_training *training)
{
    bool labelled =
        model->form != DP_FORM_PAIRS && model->form != DP_FORM_TRIPLES && model->form != DP_FORM_WORDS;
    uint32_t epochs = epochs_of(model, data->all + (labelled ? training->earlier_examples : 0),
                                training->batch, training->earlier_examples > 0 ? 0 : data->rare);
    return data->own < data->examples ? (2 * epochs + 2) / 3 : epochs;
}

void dp_defaults_settle(const struct dp_model *model, const struct dp_defaults_data *data,
                        struct dp_cluster_training *training)
{
    DP_ASSERT(data->own > 0 && data->own <= data->examples && data->examples <= data->all);
    DP_ASSERT(model->steps_wanted > 0);
    if (training->batch == 0)
        training->batch = batch_of(model, data->examples);
    if (training->epochs == 0)
        training->epochs = further_epochs(model, data, training);
}

static bool is_given(const struct dp_setting_names *given, const char *key)
{
    return given->flag(given->context, key) != NULL;
}

enum dp_status dp_defaults_settings(const struct dp_model *model, const struct dp_setting_names *given,
                                    struct dp_cluster *cluster, struct dp_error *err)
{
    char key[64], value[64];
    int len;
    enum dp_status st = DP_OK;
    const char *at = model->settings ? model->settings : "";
    static const char optimizer[] = "training.optimizer.";
    bool named = is_given(given, "training.optimizer.kind"); /* then it has its own */
    for (; st == DP_OK && sscanf(at, "%63[^=]=%63[^,]%n", key, value, &len) == 2; at += *at == ',') {
        if (!is_given(given, key) && !(named && strncmp(key, optimizer, sizeof optimizer - 1) == 0))
            st = dp_cluster_set(cluster, key, value, key, err);
        at += len;
    }
    return st;
}

enum dp_status dp_defaults_of_model(const struct dp_model *model, const struct dp_setting_names *given,
                                    struct dp_cluster *cluster, struct dp_error *err)
{
    struct dp_cluster_training *t = &cluster->training;
    if (!is_given(given, "training.rate")) {
        t->rate = model->rate;
        if (model->decays && t->optimizer.kind != DP_OPT_FTRL && !is_given(given, "training.decay"))
            t->decay = DP_DECAY_LINEAR;
    }
    return dp_defaults_settings(model, given, cluster, err);
}

static const char *key_of_file(const void *path, const char *key)
{
    return dp_cluster_file_gives(path, key) ? key : NULL;
}

enum dp_status dp_defaults_of_file(const char *path, struct dp_cluster *cluster, struct dp_error *err)
{
    const struct dp_setting_names given = {key_of_file, path};
    struct dp_model model;
    struct dp_error unheard = {0}; /* one that is none is refused later, with all that is wrong with it */
    enum dp_status st = DP_OK;
    if (!cluster->dir[0])
        return DP_OK;
    if (dp_model_open(cluster->model, &model, &unheard) == DP_OK)
        st = dp_defaults_of_model(&model, &given, cluster, err);
    dp_model_close(&model);
    return st;
}
