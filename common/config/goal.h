/* Goal: the metric of the validation set that ends a training before its last epoch, as users write it:
 * "auc:0.8".
 * Thread    Any: plain functions. */
#ifndef DP_CONFIG_GOAL_H
#define DP_CONFIG_GOAL_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum dp_metric {                    /* higher is better from ACCURACY on */
                 DP_METRIC_LOSS,    /* the model's own, which every model has */
                 DP_METRIC_LOGLOSS, /* the same of models of classes */
                 DP_METRIC_RMSE,
                 DP_METRIC_ACCURACY,
                 DP_METRIC_AUC,
                 DP_METRIC_HR10,
                 DP_METRIC_NDCG10,
                 DP_METRIC_RECALL, /* of items ranked among all, at training.top_k; "recall@20" is the same where that is 20 */
                 DP_METRIC_NDCG,
                 DP_METRICS
};

static inline bool dp_metric_falls(enum dp_metric metric) /* lower is better */
{
    return metric < DP_METRIC_ACCURACY;
}
const char *dp_metric_name(enum dp_metric metric); /* "hr@10" */
/* `what` names the setting in messages; DP_ARGUMENT: an unknown name, with the nearest known one. */
enum dp_status dp_metric_parse(const char *name, const char *what, enum dp_metric *out, struct dp_error *err);

/* The K of "recall@20" and "ndcg@20"; 0: the name has none, or is one of fixed K. */
uint32_t dp_metric_top(const char *name);

struct dp_goal {
    enum dp_metric metric;
    double value;
    uint32_t top; /* dp_metric_top of its name */
};
/* DP_ARGUMENT too where no figure of that kind can be such. */
enum dp_status dp_goal_parse(const char *text, const char *what, struct dp_goal *out, struct dp_error *err);

#endif
