#include "deploy/compare/statistics.h"

#include "common/base/json.h"
#include "deploy/compare/student.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST 1e-9 /* of what has a logarithm: a nanosecond */
#define EDGE  1e-6 /* of a share whose test set is not known */

/* ---- scales */

static bool is_share(const char *metric)
{
    static const char *const shares[] = {"accuracy", "auc", "hr@", "ndcg@", "recall@"};
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++)
        if (strncmp(metric, shares[i], strlen(shares[i])) == 0)
            return true;
    return false;
}

/* How many examples the accuracy of a sample is a share of. */
static double scored_examples(const json_t *root)
{
    for (size_t i = 0; i < dp_comparison_runs(root); i++) {
        double count = dp_json_get_real(dp_comparison_run(root, i), "scored_examples");
        if (count >= 1)
            return count;
    }
    return (double)NAN;
}

struct dp_scale dp_scale_of(const json_t *root, enum dp_comparison_quantity quantity)
{
    if (quantity == DP_QUANTITY_METRIC)
        return dp_scale_of_metric(root, dp_comparison_metric(root));
    return (struct dp_scale){.is_logit = false, .examples = NAN};
}

struct dp_scale dp_scale_of_metric(const json_t *root, const char *key)
{
    return (struct dp_scale){.is_logit = is_share(key),
                             .examples = strcmp(key, "accuracy") == 0 ? scored_examples(root) : (double)NAN};
}

const char *dp_scale_name(const struct dp_scale *scale)
{
    return scale->is_logit ? "logit" : "log";
}

/* Within half an example of the ends. */
static double inside(const struct dp_scale *scale, double share)
{
    double edge = isfinite(scale->examples) ? 0.5 / scale->examples : EDGE;
    return fmin(fmax(share, edge), 1 - edge);
}

double dp_scale_to(const struct dp_scale *scale, double value)
{
    if (isnan(value))
        return (double)NAN;
    if (!scale->is_logit)
        return log(fmax(value, LEAST));
    double share = inside(scale, value);
    return log(share / (1 - share));
}

double dp_scale_from(const struct dp_scale *scale, double at)
{
    return scale->is_logit ? 1 / (1 + exp(-at)) : exp(at);
}

double dp_scale_error(const struct dp_scale *scale, double at)
{
    double share = inside(scale, dp_scale_from(scale, at));
    return isfinite(scale->examples) ? 1 / sqrt(scale->examples * share * (1 - share)) : 0;
}

/* ---- intervals */

struct dp_interval dp_interval_of(const double *values, size_t count, double p)
{
    struct dp_interval out = {.mean = 0, .sd = NAN, .low = NAN, .high = NAN};
    double squares = 0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i])) {
            out.mean += values[i];
            out.n++;
        }
    out.mean = out.n > 0 ? out.mean / (double)out.n : (double)NAN;
    if (out.n < 2)
        return out;
    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i]))
            squares += (values[i] - out.mean) * (values[i] - out.mean);
    out.sd = sqrt(squares / (double)(out.n - 1));
    double half = dp_student_quantile(p, out.n - 1) * out.sd / sqrt((double)out.n);
    out.low = out.mean - half;
    out.high = out.mean + half;
    return out;
}

struct dp_interval dp_interval_on(const struct dp_scale *scale, const struct dp_comparison_span *span,
                                  size_t count)
{
    double *low = calloc(3 * count + 1, sizeof *low), *at = low + count, *high = at + count;
    size_t n = low ? count : 0;
    for (size_t i = 0; i < n; i++) {
        low[i] = dp_scale_to(scale, span[i].low);
        at[i] = dp_scale_to(scale, span[i].at);
        high[i] = dp_scale_to(scale, span[i].high);
    }
    struct dp_interval out = dp_interval_of(at, n, DP_INTERVAL_PLAIN);
    double floor = dp_normal_quantile(DP_INTERVAL_PLAIN) * dp_scale_error(scale, out.mean);
    if (out.n > 1) {
        out.low = fmin(dp_interval_of(low, n, DP_INTERVAL_PLAIN).low, out.mean - floor);
        out.high = fmax(dp_interval_of(high, n, DP_INTERVAL_PLAIN).high, out.mean + floor);
    }
    out.mean = dp_scale_from(scale, out.mean);
    out.low = dp_scale_from(scale, out.low);
    out.high = dp_scale_from(scale, out.high);
    free(low);
    return out;
}

struct dp_interval dp_statistics_mode(const json_t *root, size_t mode, enum dp_comparison_quantity quantity)
{
    const struct dp_scale scale = dp_scale_of(root, quantity);
    size_t seeds = dp_comparison_seeds(root), n = 0;
    struct dp_comparison_span *span = calloc(seeds + 1, sizeof *span);
    for (size_t s = 0; span && s < seeds; s++) {
        const json_t *run = dp_comparison_run_of(root, mode, s);
        if (dp_comparison_outcome(root, run) == DP_COMPARISON_GOOD)
            span[n++] = dp_comparison_span(root, run, quantity);
    }
    struct dp_interval out = dp_interval_on(&scale, span, n);
    free(span);
    return out;
}
