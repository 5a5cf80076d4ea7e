#include "deploy/compare/statistics.h"

#include "common/base/json.h"

#include <math.h>
#include <stdlib.h>

double dp_student_t(size_t freedom)
{
    static const double exact[] = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060,
                                   2.2622,  2.2281, 2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199,
                                   2.1098,  2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639,
                                   2.0595,  2.0555, 2.0518, 2.0484, 2.0452, 2.0423};
    const double z = 1.959964, v = (double)freedom;
    DP_ASSERT(freedom > 0);
    if (freedom <= sizeof exact / sizeof exact[0])
        return exact[freedom - 1];
    /* The first two terms of its expansion about the normal quantile (Abramowitz and Stegun 1964, 26.7.5): good to 1e-4 here. */
    return z + (z * z * z + z) / (4 * v) + (5 * pow(z, 5) + 16 * pow(z, 3) + 3 * z) / (96 * v * v);
}

struct dp_interval dp_interval_of(const double *values, size_t count)
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
    double half = dp_student_t(out.n - 1) * out.sd / sqrt((double)out.n);
    out.low = out.mean - half;
    out.high = out.mean + half;
    return out;
}

/* [seeds] of the comparison; NULL: no memory. */
static double *values_of(const json_t *root, size_t mode, enum dp_comparison_quantity quantity)
{
    size_t seeds = dp_comparison_seeds(root);
    double *values = calloc(seeds + 1, sizeof *values);
    for (size_t s = 0; values && s < seeds; s++)
        values[s] = dp_comparison_value(root, dp_comparison_run_of(root, mode, s), quantity);
    return values;
}

struct dp_interval dp_statistics_mode(const json_t *root, size_t mode, enum dp_comparison_quantity quantity)
{
    double *values = values_of(root, mode, quantity);
    struct dp_interval out = dp_interval_of(values, values ? dp_comparison_seeds(root) : 0);
    free(values);
    if (out.low < 0 && out.mean >= 0) /* no quantity can be below 0 */
        out.low = 0;
    return out;
}

static struct dp_interval ratio_of(const double *a, const double *b, size_t count)
{
    double *logs = calloc(count + 1, sizeof *logs);
    bool positive = logs != NULL;
    for (size_t i = 0; logs && i < count; i++) {
        bool both = isfinite(a[i]) && isfinite(b[i]);
        positive = positive && (!both || (a[i] > 0 && b[i] > 0));
        logs[i] = both && positive ? log(a[i] / b[i]) : (double)NAN;
    }
    struct dp_interval out = dp_interval_of(logs, positive ? count : 0);
    out.mean = exp(out.mean);
    out.low = exp(out.low);
    out.high = exp(out.high);
    free(logs);
    return out;
}

struct dp_interval dp_statistics_pair(const json_t *root, size_t mode, size_t beside,
                                      enum dp_comparison_quantity quantity, struct dp_interval *ratio)
{
    size_t seeds = dp_comparison_seeds(root);
    double *a = values_of(root, mode, quantity), *b = values_of(root, beside, quantity);
    size_t count = a && b ? seeds : 0;
    *ratio = ratio_of(a, b, count);
    for (size_t s = 0; s < count; s++)
        a[s] -= b[s];
    struct dp_interval out = dp_interval_of(a, count);
    free(a);
    free(b);
    return out;
}

bool dp_statistics_shows(const struct dp_interval *difference)
{
    return difference->n >= DP_STATISTICS_SHOWN && (difference->low > 0 || difference->high < 0);
}

/* ---- as JSON */

static json_t *interval_json(const struct dp_interval *interval)
{
    json_t *out = json_pack("{s:I}", "n", (json_int_t)interval->n);
    dp_json_set_real(out, "mean", interval->mean);
    dp_json_set_real(out, "sd", interval->sd);
    dp_json_set_real(out, "low", interval->low);
    dp_json_set_real(out, "high", interval->high);
    return out;
}

static bool is_of_target(enum dp_comparison_quantity quantity)
{
    return quantity == DP_QUANTITY_SECONDS_TO || quantity == DP_QUANTITY_EXAMPLES_TO;
}

/* Whether each run that ended well has a value: for a target, that it was reached. */
static bool has_all(const json_t *root, size_t mode, enum dp_comparison_quantity quantity)
{
    size_t good = 0;
    for (size_t s = 0; s < dp_comparison_seeds(root); s++)
        good += dp_comparison_is_good(dp_comparison_run_of(root, mode, s));
    return dp_statistics_mode(root, mode, quantity).n == good;
}

static json_t *quantity_json(const json_t *root, size_t mode, enum dp_comparison_quantity quantity)
{
    struct dp_interval own = dp_statistics_mode(root, mode, quantity), ratio;
    json_t *out = interval_json(&own), *difference = NULL;
    if (mode > 0) {
        struct dp_interval beside = dp_statistics_pair(root, mode, 0, quantity, &ratio);
        difference = interval_json(&beside);
        /* Of the seeds that reached a target alone, a mode looks better than it is. */
        bool whole = !is_of_target(quantity) || (has_all(root, mode, quantity) && has_all(root, 0, quantity));
        (void)json_object_set_new(difference, "shown", json_boolean(whole && dp_statistics_shows(&beside)));
        if (ratio.n > 0)
            (void)json_object_set_new(difference, "ratio", interval_json(&ratio));
    }
    (void)json_object_set_new(out, "difference", difference ? difference : json_null());
    return out;
}

static json_t *mode_json(const json_t *root, size_t mode)
{
    size_t good = 0, bad = 0;
    json_t *out = json_pack("{s:s}", "mode", dp_comparison_mode(root, mode));
    for (size_t s = 0; s < dp_comparison_seeds(root); s++) {
        const json_t *run = dp_comparison_run_of(root, mode, s);
        good += dp_comparison_is_good(run);
        bad += run && !dp_comparison_is_good(run);
    }
    dp_json_set_u64(out, "runs", good);
    dp_json_set_u64(out, "failed", bad);
    for (int q = 0; q < DP_QUANTITIES; q++) {
        json_t *one = quantity_json(root, mode, (enum dp_comparison_quantity)q);
        if (is_of_target((enum dp_comparison_quantity)q)) /* of how many runs */
            dp_json_set_u64(one, "of", good);
        (void)json_object_set_new(out, dp_comparison_quantity_key((enum dp_comparison_quantity)q), one);
    }
    return out;
}

enum dp_status dp_comparison_count(json_t *root, struct dp_error *err)
{
    json_t *all = json_array();
    bool good = all != NULL;
    for (size_t m = 0; good && m < dp_comparison_modes(root); m++)
        good = json_array_append_new(all, mode_json(root, m)) == 0;
    good = good && json_object_set(root, "statistics", all) == 0;
    json_decref(all);
    return good ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for the statistics");
}
