#include "worker/context/shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum dp_status dp_shape_measure(const struct dp_cluster *cluster, char *out, size_t size,
                                struct dp_error *err)
{
    const struct dp_cluster_data *data = &cluster->data;
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
    (void)snprintf(out, size, "%s", cluster->model);
    enum dp_status st = dp_model_wants(cluster->model, &options) ? dp_measure(&options, &has, &why) : DP_OK;
    if (st == DP_OK && has.numbers + has.categories + has.lists > 0)
        return dp_model_complete(cluster->model, &has, out, size, err);
    struct dp_model model;
    enum dp_status opens = dp_model_open(cluster->model, &model, err);
    dp_model_close(&model);
    return opens == DP_OK || st == DP_OK ? opens : dp_fail(err, st, "%s", why.text);
}
