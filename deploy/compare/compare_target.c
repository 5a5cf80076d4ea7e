#include "deploy/compare/compare_target.h"

#include "common/base/json.h"
#include "deploy/compare/ending.h"

#include <math.h>
#include <stdlib.h>

#define GAIN 0.95

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double worse_of(double a, double b, bool higher)
{
    return higher ? fmin(a, b) : fmax(a, b);
}

/* The worst of the last tenth of a run's samples. */
static double kept(const json_t *root, const json_t *run)
{
    const json_t *samples = json_object_get(run, "samples");
    size_t count = json_array_size(samples), last = (count + 9) / 10;
    bool higher = dp_comparison_higher_is_better(root);
    double out = NAN;
    for (size_t i = count - last; i < count; i++)
        out = worse_of(dp_json_get_real(json_array_get(samples, i), dp_comparison_metric(root)), out, higher);
    return out;
}

/* What runs began with: the best constant, else the first sample. */
static double baseline(const json_t *root, const json_t *run)
{
    bool ignored;
    double value = dp_ending_baseline(root, run, &ignored);
    return isfinite(value) ? value
                           : dp_json_get_real(json_array_get(json_object_get(run, "samples"), 0),
                                              dp_comparison_metric(root));
}

/* Of the good runs; of two in the middle the worse. */
static double median_kept(const json_t *root, size_t mode, double *from)
{
    size_t seeds = dp_comparison_seeds(root), n = 0;
    double *values = calloc(seeds + 1, sizeof *values), out = NAN;
    for (size_t s = 0; values && s < seeds; s++) {
        const json_t *run = dp_comparison_run_of(root, mode, s);
        if (dp_comparison_outcome(root, run) != DP_COMPARISON_GOOD)
            continue;
        values[n++] = kept(root, run);
        *from = baseline(root, run);
    }
    if (n > 0) {
        qsort(values, n, sizeof *values, by_value);
        out = values[dp_comparison_higher_is_better(root) ? (n - 1) / 2 : n / 2];
    }
    free(values);
    return out;
}

json_t *dp_compare_target_choose(const json_t *root)
{
    bool higher = dp_comparison_higher_is_better(root);
    double best = NAN, from = NAN, its_from = NAN;
    size_t of = 0;
    for (size_t m = 0; m < dp_comparison_modes(root); m++) {
        double own = dp_ending_is_whole(root, m) ? median_kept(root, m, &its_from) : (double)NAN;
        if (!isfinite(own) || (isfinite(best) && !(higher ? own > best : own < best)))
            continue;
        best = own;
        from = its_from;
        of = m;
    }
    if (!isfinite(best))
        return NULL;
    bool gained = isfinite(from) && (higher ? best > from : best < from);
    json_t *out = json_pack("{s:s, s:f, s:s, s:s, s:f}", "metric", dp_comparison_metric(root), "value",
                            gained ? from + GAIN * (best - from) : best, "chosen", "automatic", "of",
                            dp_comparison_mode(root, of), "keeps", best);
    if (gained)
        dp_json_set_real(out, "baseline", from);
    return out;
}
