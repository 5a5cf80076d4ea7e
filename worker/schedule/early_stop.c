#include "worker/schedule/early_stop.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

struct dp_early_stop_rule dp_early_stop_rule_of(const struct dp_cluster_training *training)
{
    struct dp_early_stop_rule rule = {.has_goal = training->stop_at[0] != '\0',
                                      .patience = training->patience};
    struct dp_error err;
    if (rule.has_goal)
        DP_ASSERT(dp_goal_parse(training->stop_at, "stop_at", &rule.goal, &err) == DP_OK);
    rule.metric = rule.has_goal ? rule.goal.metric : DP_METRIC_LOSS;
    if (training->patience_metric[0])
        DP_ASSERT(dp_metric_parse(training->patience_metric, "patience", &rule.metric, &err) == DP_OK);
    return rule;
}

static enum dp_status metric_fits(enum dp_metric metric, enum dp_labels labels,
                                  const struct dp_early_stop_set *set, struct dp_error *err)
{
    const char *lacks = NULL, *needs = NULL;
    if (metric == DP_METRIC_AUC && set->ranked)
        return dp_fail(err, DP_ARGUMENT, "ranked items have no auc: use recall, ndcg or loss");
    switch (metric) {
    case DP_METRIC_LOGLOSS:
    case DP_METRIC_ACCURACY:
        lacks = labels == DP_LABELS_ANY || labels == DP_LABELS_NONE ? "has no classes" : NULL;
        break;
    case DP_METRIC_AUC:
        lacks = labels != DP_LABELS_BINARY ? "does not have two classes" : NULL;
        break;
    case DP_METRIC_RMSE:
        lacks = labels != DP_LABELS_ANY || set->lists > 0 || set->ranked ? "does not predict numbers" : NULL;
        break;
    case DP_METRIC_RECALL:
    case DP_METRIC_NDCG:
        needs = set->all ? NULL
                         : "users' items that are ranked among all: give a test or validation set of pairs "
                           "without negatives, or --holdout (not with a model with layers and over 100 "
                           "million users times items)";
        break;
    case DP_METRIC_HR10:
    case DP_METRIC_NDCG10:
        needs = set->lists > 0 ? NULL
                               : "ranked lists: name the file of the items that each pair is ranked among "
                                 "(negatives=FILE of --validation or --test, data.validation_negatives or "
                                 "data.test_negatives)";
        break;
    case DP_METRIC_LOSS:
    case DP_METRICS:
        break;
    }
    if (lacks)
        return dp_fail(err, DP_ARGUMENT, "this model %s, so no %s", lacks, dp_metric_name(metric));
    return needs ? dp_fail(err, DP_ARGUMENT, "%s needs %s", dp_metric_name(metric), needs) : DP_OK;
}

enum dp_status dp_early_stop_fits(const struct dp_early_stop_rule *rule, enum dp_labels labels,
                                  const struct dp_early_stop_set *set, struct dp_error *err)
{
    enum dp_status st = rule->has_goal ? metric_fits(rule->goal.metric, labels, set, err) : DP_OK;
    if (st == DP_OK && rule->patience > 0)
        st = metric_fits(rule->metric, labels, set, err);
    return st == DP_OK ? st : dp_wrap(err, st, "--stop-at or --patience (training.stop_at, patience)");
}

bool dp_early_stop_looks_at(const struct dp_early_stop_rule *rule, enum dp_metric metric)
{
    return (rule->has_goal && rule->goal.metric == metric) || (rule->patience > 0 && rule->metric == metric);
}

double dp_early_stop_figure(const struct dp_figures *figures, enum dp_metric metric)
{
    const double none = (double)NAN;
    const double of[DP_METRICS] = {[DP_METRIC_LOSS] = figures->loss,
                                   [DP_METRIC_LOGLOSS] = figures->loss,
                                   [DP_METRIC_RMSE] = figures->rmse,
                                   [DP_METRIC_ACCURACY] = figures->accuracy,
                                   [DP_METRIC_AUC] = figures->auc,
                                   [DP_METRIC_HR10] = figures->hr10,
                                   [DP_METRIC_NDCG10] = figures->ndcg10,
                                   [DP_METRIC_RECALL] = figures->ranked_users ? figures->recall[1] : none,
                                   [DP_METRIC_NDCG] = figures->ranked_users ? figures->ndcg[1] : none};
    return of[metric];
}

static bool better(enum dp_metric metric, double a, double b)
{
    return dp_metric_falls(metric) ? a < b : a > b;
}

enum dp_status dp_early_stop_judge(const struct dp_early_stop_rule *rule, struct dp_early_stop *state,
                                   const struct dp_figures *figures, struct dp_error *err)
{
    enum dp_metric first = rule->has_goal ? rule->goal.metric : rule->metric,
                   followed = rule->patience > 0 ? rule->metric : first;
    double value = dp_early_stop_figure(figures, first), other = dp_early_stop_figure(figures, followed);
    uint32_t epoch = state->epoch + 1;
    DP_ASSERT(state->why == DP_EARLY_STOP_NO && state->best_epoch <= state->epoch);
    if (dp_early_stop_looks(rule) && (!isfinite(value) || !isfinite(other)))
        return dp_fail(err, DP_DATA,
                       "the validation set gives no %s after epoch %" PRIu32
                       ": has it examples of each class?",
                       dp_metric_name(isfinite(value) ? followed : first), epoch);
    state->epoch = epoch;
    state->value = value;
    if (state->best_epoch == 0 || better(followed, other, state->best) || !isfinite(state->best)) {
        state->best = other;
        state->best_epoch = epoch;
    }
    state->why = rule->has_goal && !better(first, rule->goal.value, value)       ? DP_EARLY_STOP_REACHED
                 : rule->patience && epoch - state->best_epoch >= rule->patience ? DP_EARLY_STOP_PATIENCE
                                                                                 : DP_EARLY_STOP_NO;
    DP_ASSERT(state->best_epoch > 0 && state->best_epoch <= state->epoch);
    return DP_OK;
}

void dp_early_stop_text(const struct dp_early_stop_rule *rule, const struct dp_early_stop *state,
                        uint32_t before, char text[DP_EARLY_STOP_TEXT_BYTES])
{
    text[0] = '\0';
    if (state->why == DP_EARLY_STOP_REACHED)
        (void)snprintf(text, DP_EARLY_STOP_TEXT_BYTES, "%s %.6g has reached %.6g",
                       dp_metric_name(rule->goal.metric), state->value, rule->goal.value);
    else if (state->why == DP_EARLY_STOP_PATIENCE)
        (void)snprintf(text, DP_EARLY_STOP_TEXT_BYTES,
                       "%s has not been better than the %.6g of epoch %" PRIu32 " for %" PRIu32 " epochs",
                       dp_metric_name(rule->metric), state->best, before + state->best_epoch,
                       state->epoch - state->best_epoch);
}
