#include "worker/stop.h"

#include "common/base/bytes.h"
#include "worker/ranking.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAGIC 0x50545344u /* "DSTP" */

struct dp_stop_rule dp_stop_rule_of(const struct dp_cluster_training *training)
{
    struct dp_stop_rule rule = {.has_goal = training->stop_at[0] != '\0', .patience = training->patience};
    struct dp_error err;
    if (rule.has_goal)
        DP_ASSERT(dp_goal_parse(training->stop_at, "stop_at", &rule.goal, &err) == DP_OK);
    rule.metric = rule.has_goal ? rule.goal.metric : DP_METRIC_LOSS;
    if (training->patience_metric[0])
        DP_ASSERT(dp_metric_parse(training->patience_metric, "patience", &rule.metric, &err) == DP_OK);
    return rule;
}

static enum dp_status metric_fits(enum dp_metric metric, enum dp_labels labels, const struct dp_stop_set *set,
                                  struct dp_error *err)
{
    if (metric == DP_METRIC_AUC && set->ranked)
        return dp_fail(err, DP_ARGUMENT,
                       "auc is no figure of items that are ranked: look at recall, ndcg or loss");
    const char *name = dp_metric_name(metric);
    switch (metric) {
    case DP_METRIC_LOGLOSS:
    case DP_METRIC_ACCURACY:
        return labels != DP_LABELS_ANY
                   ? DP_OK
                   : dp_fail(err, DP_ARGUMENT, "%s is a figure of models of classes, which this is not",
                             name);
    case DP_METRIC_AUC:
        return labels == DP_LABELS_BINARY
                   ? DP_OK
                   : dp_fail(err, DP_ARGUMENT, "%s is a figure of models of two classes, which this is not",
                             name);
    case DP_METRIC_RMSE:
        return labels == DP_LABELS_ANY && set->lists == 0 && !set->ranked
                   ? DP_OK
                   : dp_fail(err, DP_ARGUMENT, "%s is a figure of models of numbers, which this is not",
                             name);
    case DP_METRIC_RECALL:
    case DP_METRIC_NDCG:
        return set->all
                   ? DP_OK
                   : dp_fail(
                         err, DP_ARGUMENT,
                         "%s is a figure of users' items ranked among all: give a test or validation set of "
                         "pairs without negatives, or --holdout; not of a model with layers and over %d "
                         "million users times items",
                         name, (int)(DP_RANKING_PAIRS_MAX / 1000000));
    case DP_METRIC_HR10:
    case DP_METRIC_NDCG10:
        return set->lists > 0
                   ? DP_OK
                   : dp_fail(err, DP_ARGUMENT,
                             "%s is a figure of ranked lists: name the file of the items that each pair is "
                             "ranked among (--validation-negatives or --test-negatives, "
                             "data.validation_negatives or data.test_negatives)",
                             name);
    case DP_METRIC_LOSS:
    case DP_METRICS:
        return DP_OK;
    }
    return DP_OK;
}

enum dp_status dp_stop_fits(const struct dp_stop_rule *rule, enum dp_labels labels,
                            const struct dp_stop_set *set, struct dp_error *err)
{
    enum dp_status st = rule->has_goal ? metric_fits(rule->goal.metric, labels, set, err) : DP_OK;
    if (st == DP_OK && rule->patience > 0)
        st = metric_fits(rule->metric, labels, set, err);
    return st == DP_OK ? st : dp_wrap(err, st, "--stop-at or --patience (training.stop_at, patience)");
}

bool dp_stop_looks_at(const struct dp_stop_rule *rule, enum dp_metric metric)
{
    return (rule->has_goal && rule->goal.metric == metric) || (rule->patience > 0 && rule->metric == metric);
}

static double figure_of(const struct dp_figures *figures, enum dp_metric metric)
{
    switch (metric) {
    case DP_METRIC_RMSE:
        return figures->rmse;
    case DP_METRIC_ACCURACY:
        return figures->accuracy;
    case DP_METRIC_AUC:
        return figures->auc;
    case DP_METRIC_HR10:
        return figures->hr10;
    case DP_METRIC_NDCG10:
        return figures->ndcg10;
    case DP_METRIC_RECALL:
        return figures->ranked_users ? figures->recall[1] : (double)NAN;
    case DP_METRIC_NDCG:
        return figures->ranked_users ? figures->ndcg[1] : (double)NAN;
    case DP_METRIC_LOSS:
    case DP_METRIC_LOGLOSS:
    case DP_METRICS:
        break;
    }
    return figures->loss;
}

static bool better(enum dp_metric metric, double a, double b)
{
    return dp_metric_falls(metric) ? a < b : a > b;
}

enum dp_status dp_stop_judge(const struct dp_stop_rule *rule, struct dp_stop *state, uint32_t epoch,
                             const struct dp_figures *figures, struct dp_error *err)
{
    enum dp_metric first = rule->has_goal ? rule->goal.metric : rule->metric,
                   followed = rule->patience > 0 ? rule->metric : first;
    double value = figure_of(figures, first), other = figure_of(figures, followed);
    DP_ASSERT(epoch > state->epoch);
    if (dp_stop_looks(rule) && (!isfinite(value) || !isfinite(other)))
        return dp_fail(err, DP_DATA,
                       "the validation set gives no %s after epoch %" PRIu32
                       ": has it examples of each class?",
                       dp_metric_name(isfinite(value) ? followed : first), epoch);
    if (epoch > state->judged + 1)
        state->lost = epoch - 1;
    state->epoch = state->judged = epoch;
    state->value = value;
    if (state->best_epoch == 0 || better(followed, other, state->best) || !isfinite(state->best)) {
        state->best = other;
        state->best_epoch = epoch;
    }
    /* What was lost may have been better. */
    uint32_t since = state->lost >= state->best_epoch ? state->lost + 1 : state->best_epoch;
    state->why = rule->has_goal && !better(first, rule->goal.value, value) ? DP_STOP_REACHED
                 : rule->patience && epoch - since >= rule->patience       ? DP_STOP_PATIENCE
                                                                           : DP_STOP_NO;
    return DP_OK;
}

static const char *why_text(enum dp_stop_why why)
{
    return why == DP_STOP_REACHED    ? "the goal is reached"
           : why == DP_STOP_PATIENCE ? "patience is over"
                                     : "go on";
}

enum dp_status dp_stop_learn(struct dp_stop *state, const struct dp_stop *other, struct dp_error *err)
{
    if (other->epoch > 0 && other->epoch == state->epoch && other->why != state->why)
        return dp_fail(err, DP_DATA,
                       "two verdicts on epoch %" PRIu32 ": '%s' and '%s'; were two processes of worker 0 at "
                       "work at once? Give training.run a higher number",
                       state->epoch, why_text(state->why), why_text(other->why));
    if (other->epoch > state->epoch) {
        state->epoch = other->epoch;
        state->why = other->why;
    }
    if (other->judged > state->judged) {
        state->judged = other->judged;
        state->lost = other->lost;
        state->value = other->value;
        state->best = other->best;
        state->best_epoch = other->best_epoch;
        state->kept = other->kept;
    }
    return DP_OK;
}

void dp_stop_begun(struct dp_stop *state, uint32_t epoch)
{
    if (epoch > 0 && epoch - 1 > state->epoch) {
        state->epoch = epoch - 1;
        state->why = DP_STOP_NO;
    }
}

static void put_f64(unsigned char *to, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    dp_store_u64le(to, bits);
}

static double get_f64(const unsigned char *from)
{
    uint64_t bits = dp_load_u64le(from);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void dp_stop_pack(const struct dp_stop *state, unsigned char bytes[DP_STOP_BYTES])
{
    memset(bytes, 0, DP_STOP_BYTES);
    dp_store_u32le(bytes, MAGIC);
    dp_store_u32le(bytes + 4, state->epoch);
    dp_store_u32le(bytes + 8, (uint32_t)state->why);
    dp_store_u32le(bytes + 12, state->best_epoch);
    put_f64(bytes + 16, state->value);
    put_f64(bytes + 24, state->best);
    dp_store_u32le(bytes + 32, state->judged);
    dp_store_u32le(bytes + 36, state->lost);
    dp_store_u32le(bytes + 40, state->kept);
}

enum dp_status dp_stop_unpack(const void *bytes, size_t size, struct dp_stop *out, struct dp_error *err)
{
    const unsigned char *from = bytes;
    if (size != DP_STOP_BYTES || dp_load_u32le(from) != MAGIC || dp_load_u32le(from + 8) > DP_STOP_PATIENCE)
        return dp_fail(err, DP_DATA, "these %zu bytes are no verdict on an epoch", size);
    *out = (struct dp_stop){.epoch = dp_load_u32le(from + 4),
                            .why = (enum dp_stop_why)dp_load_u32le(from + 8),
                            .best_epoch = dp_load_u32le(from + 12),
                            .value = get_f64(from + 16),
                            .best = get_f64(from + 24),
                            .judged = dp_load_u32le(from + 32),
                            .lost = dp_load_u32le(from + 36),
                            .kept = dp_load_u32le(from + 40)};
    if (out->judged > out->epoch || out->best_epoch > out->judged || out->lost > out->judged ||
        out->kept > out->judged)
        return dp_fail(err, DP_DATA, "a verdict on epoch %" PRIu32 " that contradicts itself", out->epoch);
    return DP_OK;
}

void dp_stop_text(const struct dp_stop_rule *rule, const struct dp_stop *state, uint32_t before,
                  char text[DP_STOP_TEXT_BYTES])
{
    text[0] = '\0';
    if (state->why == DP_STOP_REACHED)
        (void)snprintf(text, DP_STOP_TEXT_BYTES, "%s %.6g has reached %.6g",
                       dp_metric_name(rule->goal.metric), state->value, rule->goal.value);
    else if (state->why == DP_STOP_PATIENCE)
        (void)snprintf(text, DP_STOP_TEXT_BYTES,
                       "%s has not been better than the %.6g of epoch %" PRIu32 " for %" PRIu32 " epochs",
                       dp_metric_name(rule->metric), state->best, before + state->best_epoch,
                       state->epoch - state->best_epoch);
}
