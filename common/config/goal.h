/* Goal: the figure of the validation set by which a training ends before its last epoch, as people write it: "auc:0.8".
 * Thread    Any: plain functions. */
#ifndef DP_CONFIG_GOAL_H
#define DP_CONFIG_GOAL_H

#include "common/base/status.h"

#include <stdbool.h>

enum dp_metric {                    /* higher is better from ACCURACY on */
                 DP_METRIC_LOSS,    /* the model's own, which every model has */
                 DP_METRIC_LOGLOSS, /* the same of models of classes */
                 DP_METRIC_RMSE,
                 DP_METRIC_ACCURACY,
                 DP_METRIC_AUC,
                 DP_METRIC_HR10,
                 DP_METRIC_NDCG10,
                 DP_METRICS
};

static inline bool dp_metric_falls(enum dp_metric metric) /* lower is better */
{
    return metric < DP_METRIC_ACCURACY;
}
const char *dp_metric_name(enum dp_metric metric); /* "hr@10" */
/* `what` names the setting in messages; DP_ARGUMENT: an unknown name, with the nearest known one. */
DP_MUST_USE
enum dp_status dp_metric_parse(const char *name, const char *what, enum dp_metric *out, struct dp_error *err);

struct dp_goal {
    enum dp_metric metric;
    double value;
};
/* DP_ARGUMENT too where no figure of that kind can be such. */
DP_MUST_USE
enum dp_status dp_goal_parse(const char *text, const char *what, struct dp_goal *out, struct dp_error *err);

#endif
