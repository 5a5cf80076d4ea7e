#include "deploy/compare/ending.h"

#include "common/base/json.h"

#include <math.h>
#include <string.h>

#define MARGIN 0.05

double dp_ending_baseline(const json_t *root, const json_t *run, bool *is_scored)
{
    /* A report's own names of metrics that samples call otherwise. */
    static const char *const names[][2] = {{"hr@10", "hr10"}, {"ndcg@10", "ndcg10"}, {"logloss", "loss"}};
    const json_t *constant = json_object_get(json_object_get(run, "report"), "constant");
    const char *metric = dp_comparison_metric(root), *key = metric;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(metric, names[i][0]) == 0)
            key = names[i][1];
    const char *set = json_string_value(json_object_get(constant, "set"));
    *is_scored = set && strcmp(set, "test") == 0;
    double value = metric[0] ? dp_json_get_real(constant, key) : (double)NAN;
    return isfinite(value) ? value : dp_json_get_real(json_object_get(constant, "all_items"), metric);
}

/* By more than the margin, a share of the reference. */
static bool is_worse(double value, double reference, bool higher, double margin)
{
    double by = margin * fabs(reference);
    return higher ? value < reference - by : value > reference + by;
}

/* Of a run with samples that was trained to its end. */
static struct dp_ending judge(const json_t *root, const json_t *run)
{
    struct dp_ending out = {.outcome = DP_COMPARISON_DIVERGED, .reference = NAN};
    const json_t *samples = json_object_get(run, "samples"), *first = json_array_get(samples, 0);
    const json_t *last = json_array_get(samples, json_array_size(samples) - 1);
    const char *metric = dp_comparison_metric(root);
    bool higher = dp_comparison_higher_is_better(root), is_scored;
    size_t count = json_array_size(samples);
    double baseline = dp_ending_baseline(root, run, &is_scored);
    double begin = count > 1 && metric[0] ? dp_json_get_real(first, metric) : (double)NAN;
    bool untrained = dp_json_get_real(first, "examples") == 0;
    out.end = dp_comparison_value(root, run, DP_QUANTITY_METRIC);
    if (!isfinite(out.end) || json_is_null(json_object_get(last, "loss")))
        out.sign = DP_ENDING_NOT_FINITE;
    else if (isfinite(baseline) && is_worse(out.end, baseline, higher, is_scored ? 0 : MARGIN))
        out.sign = DP_ENDING_BASELINE;
    else if (isfinite(begin) && is_worse(out.end, begin, higher, untrained ? 0 : MARGIN))
        out.sign = DP_ENDING_BEGIN;
    else if (isfinite(begin) && untrained && out.end == begin && !is_worse(baseline, begin, higher, 0))
        out.sign = DP_ENDING_BEGIN; /* nothing was learned */
    else
        out.outcome = DP_COMPARISON_GOOD;
    if (out.sign == DP_ENDING_BASELINE || out.sign == DP_ENDING_BEGIN)
        out.reference = out.sign == DP_ENDING_BASELINE ? baseline : begin;
    return out;
}

struct dp_ending dp_ending_of(const json_t *root, const json_t *run)
{
    struct dp_ending out = {.outcome = DP_COMPARISON_FAILED, .end = NAN, .reference = NAN};
    if (dp_comparison_is_good(run) && json_array_size(json_object_get(run, "samples")) > 0)
        out = judge(root, run);
    if (out.outcome == DP_COMPARISON_DIVERGED || !json_is_true(json_object_get(run, "diverged")))
        return out;
    out.outcome = DP_COMPARISON_DIVERGED;
    out.sign = DP_ENDING_STOPPED;
    return out;
}

enum dp_comparison_outcome dp_comparison_outcome(const json_t *root, const json_t *run)
{
    return dp_ending_of(root, run).outcome;
}

const char *dp_ending_status(const json_t *root, const json_t *run)
{
    static const char *const names[] = {"ok", "diverged", "failed"};
    return names[dp_comparison_outcome(root, run)];
}

size_t dp_ending_count(const json_t *root, size_t mode, enum dp_comparison_outcome outcome)
{
    size_t count = 0;
    for (size_t s = 0; s < dp_comparison_seeds(root); s++) {
        const json_t *run = dp_comparison_run_of(root, mode, s);
        count += run && dp_comparison_outcome(root, run) == outcome;
    }
    return count;
}

bool dp_ending_is_whole(const json_t *root, size_t mode)
{
    return dp_ending_count(root, mode, DP_COMPARISON_GOOD) > 0 &&
           dp_ending_count(root, mode, DP_COMPARISON_DIVERGED) == 0 &&
           dp_ending_count(root, mode, DP_COMPARISON_FAILED) == 0;
}
