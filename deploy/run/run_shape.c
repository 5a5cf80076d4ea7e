#include "deploy/run/run_shape.h"

#include "deploy/run/spool.h"
#include "worker/context/shape.h"

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
    char full[sizeof cluster->model];
    struct dp_model model;
    struct dp_dataset_options unread;
    enum dp_status st;
    if (!dp_model_wants(cluster->model, &unread) || take_earlier(cluster, earlier, continues))
        return DP_OK;
    if (dp_spool_is_stream(cluster->data.train)) {
        st = dp_model_open(cluster->model, &model, err);
        dp_model_close(&model);
        return st == DP_OK ? st
                           : dp_fail(err, DP_ARGUMENT,
                                     "--train: the model's columns cannot be counted in a pipe: write the "
                                     "model in full");
    }
    st = dp_shape_measure(cluster, full, sizeof full, err);
    if (st == DP_OK)
        memcpy(cluster->model, full, strlen(full) + 1);
    return st;
}
