#include "common/config/goal.h"

#include "common/base/parse.h"
#include "common/config/nearest.h"

#include <stdio.h>
#include <string.h>

static const char *const names[DP_METRICS] = {
    [DP_METRIC_LOSS] = "loss",         [DP_METRIC_LOGLOSS] = "logloss", [DP_METRIC_RMSE] = "rmse",
    [DP_METRIC_ACCURACY] = "accuracy", [DP_METRIC_AUC] = "auc",         [DP_METRIC_HR10] = "hr@10",
    [DP_METRIC_NDCG10] = "ndcg@10",    [DP_METRIC_RECALL] = "recall",   [DP_METRIC_NDCG] = "ndcg",
};

const char *dp_metric_name(enum dp_metric metric)
{
    return names[metric];
}

uint32_t dp_metric_top(const char *name)
{
    uint64_t top = 0;
    const char *at = strchr(name, '@');
    if (!at || strcmp(name, names[DP_METRIC_HR10]) == 0 || strcmp(name, names[DP_METRIC_NDCG10]) == 0 ||
        (strncmp(name, "recall@", 7) != 0 && strncmp(name, "ndcg@", 5) != 0) ||
        dp_parse_u64(at + 1, 1, UINT32_MAX, name, &top, NULL) != DP_OK)
        return 0;
    return (uint32_t)top;
}

enum dp_status dp_metric_parse(const char *name, const char *what, enum dp_metric *out, struct dp_error *err)
{
    for (int m = 0; m < DP_METRICS; m++)
        if (strcmp(names[m], name) == 0) {
            *out = (enum dp_metric)m;
            return DP_OK;
        }
    if (dp_metric_top(name) > 0) {
        *out = name[0] == 'r' ? DP_METRIC_RECALL : DP_METRIC_NDCG;
        return DP_OK;
    }
    const char *near = dp_nearest(name, names, DP_METRICS);
    return dp_fail(err, DP_ARGUMENT,
                   "%s: there is no metric '%s'%s%s%s; the metrics are: loss, logloss, rmse, accuracy, auc, "
                   "hr@10, ndcg@10, recall@K, ndcg@K",
                   what, name, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

enum dp_status dp_goal_parse(const char *text, const char *what, struct dp_goal *out, struct dp_error *err)
{
    char name[32];
    const char *colon = strchr(text, ':');
    if (!colon || colon == text || (size_t)(colon - text) >= sizeof name)
        return dp_fail(err, DP_ARGUMENT,
                       "%s is '%s', but must be METRIC:VALUE, such as auc:0.8 or logloss:0.45", what, text);
    (void)snprintf(name, sizeof name, "%.*s", (int)(colon - text), text);
    enum dp_status st = dp_metric_parse(name, what, &out->metric, err);
    out->top = st == DP_OK ? dp_metric_top(name) : 0;
    if (st == DP_OK)
        st = dp_parse_f64(colon + 1, -1e300, 1e300, what, &out->value, err);
    if (st != DP_OK)
        return st;
    if (out->value <= 0)
        return dp_fail(err, DP_ARGUMENT, "%s is '%s', but %s is never %s", what, text, name,
                       dp_metric_falls(out->metric) ? "0 or below" : "below 0, and 0 says nothing");
    if (!dp_metric_falls(out->metric) && out->value > 1)
        return dp_fail(err, DP_ARGUMENT, "%s is '%s', but %s is never above 1", what, text, name);
    return DP_OK;
}
