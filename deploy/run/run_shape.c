#include "deploy/run/run_shape.h"

#include "deploy/run/spool.h"
#include "worker/compute/models/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether `text` is `full` without what a file gave: columns, fields and classes. */
static bool is_short(const char *text, const char *full)
{
    const size_t kind = strcspn(text, ":"), shape = strcspn(text, ","), whole = strcspn(full, ",");
    if (strncmp(text, full, kind + 1) != 0)
        return false;
    if (strncmp(text, "mlp:", 4) != 0)
        return strncmp(text, full, strlen(text)) == 0 && strncmp(full + strlen(text), ",columns=", 9) == 0;
    const char *hidden = full + 4 + strspn(full + 4, "0123456789"), *last = hidden + 1 + (shape - 4);
    return *hidden == '-' && strncmp(hidden + 1, text + 4, shape - 4) == 0 && *last == '-' &&
           last + 1 + strspn(last + 1, "0123456789") == full + whole &&
           strcmp(text + shape, full + whole) == 0;
}

/* The model of the earlier run, in full: this one is the same, or `continues` its weights. */
static bool take_earlier(struct dp_cluster *cluster, const char *conf, bool continues)
{
    struct dp_cluster *earlier = NULL;
    struct dp_error unheard = {0};
    bool same = dp_cluster_read(conf, &earlier, &unheard) == DP_OK &&
                (strcmp(earlier->model, cluster->model) == 0 ||
                 (continues && is_short(cluster->model, earlier->model)));
    if (same)
        memcpy(cluster->model, earlier->model, sizeof cluster->model);
    dp_cluster_free(&earlier);
    return same;
}

enum dp_status dp_run_shape(struct dp_cluster *cluster, const char *earlier, bool continues,
                            struct dp_error *err)
{
    const struct dp_cluster_data *data = &cluster->data;
    char full[sizeof cluster->model];
    bool counted = strcmp(data->label_base, "auto") != 0;
    struct dp_dataset_options options = {.path = data->train,
                                         .format = data->format,
                                         .labels_path = data->train_labels[0] ? data->train_labels : NULL,
                                         .label = data->label[0] ? data->label : NULL,
                                         .categories = data->categories[0] ? data->categories : NULL,
                                         .lists = data->lists[0] ? data->lists : NULL,
                                         .ignore = data->ignore[0] ? data->ignore : NULL,
                                         .id = data->id[0] ? data->id : NULL,
                                         .missing = data->missing[0] ? data->missing : NULL,
                                         .weight = data->weight[0] ? data->weight : NULL,
                                         .encoding = data->encoding[0] ? data->encoding : NULL,
                                         .index_base = data->index_base,
                                         .label_base = counted ? (uint32_t)strtoul(data->label_base, NULL, 10)
                                                               : DP_LABEL_BASE_AUTO,
                                         .batch = 1};
    struct dp_measure has = {0};
    struct dp_error why = {0};
    enum dp_status st;
    if (!dp_model_wants(cluster->model, &options) || take_earlier(cluster, earlier, continues))
        return DP_OK;
    if (dp_spool_is_stream(data->train))
        st = dp_fail(&why, DP_ARGUMENT,
                     "--train: the model's columns cannot be counted in a pipe: write the model in full");
    else
        st = dp_measure(&options, &has, &why);
    if (st != DP_OK || has.numbers + has.categories + has.lists == 0) {
        struct dp_model model;
        enum dp_status opens = dp_model_open(cluster->model, &model, err);
        dp_model_close(&model);
        return opens == DP_OK || st == DP_OK ? opens : dp_fail(err, st, "%s", why.text);
    }
    st = dp_model_complete(cluster->model, &has, full, sizeof full, err);
    if (st == DP_OK)
        memcpy(cluster->model, full, strlen(full) + 1);
    return st;
}
