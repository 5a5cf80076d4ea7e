#include "deploy/compare/statistics.h"

#include "common/base/json.h"
#include "deploy/pages/page.h"

#include <math.h>
#include <string.h>

#define LEAST        1e-9 /* of what has a logarithm: a nanosecond */
#define DIGITS_MAX   8
#define SMALL        0.01 /* below, three digits of a metric that count */
#define SMALL_DIGITS 12
#define WIDE         1000.0 /* times the mean: the interval of a few values that are all noise */
#define EDGE         1e-6   /* of a share without a known test set */

/* ---- distributions */

/* The continued fraction of the incomplete beta function (Abramowitz and Stegun 1964, 26.5.8), by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double out = d;
    for (int m = 1; m < 1000; m++) {
        double was = out;
        for (int odd = 0; odd <= 1; odd++) {
            double term = odd ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
                              : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
            d = 1 + term * d;
            c = 1 + term / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = fabs(c) < tiny ? tiny : c;
            out *= c * d;
        }
        if (fabs(out - was) <= 1e-15 * fabs(out))
            break;
    }
    return out;
}

/* Regularized, at x; y is 1 - x, which is more exact than the subtraction. */
static double incomplete_beta(double a, double b, double x, double y)
{
    if (x <= 0 || y <= 0)
        return x <= 0 ? 0 : 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(y));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                     : 1 - front * beta_fraction(b, a, y) / b;
}

double dp_student_p(double t, size_t freedom)
{
    double v = (double)freedom;
    DP_ASSERT(freedom > 0);
    if (isinf(t))
        return 0;
    return incomplete_beta(v / 2, 0.5, v / (v + t * t), t * t / (v + t * t));
}

double dp_normal_p(double z)
{
    return erfc(fabs(z) / sqrt(2));
}

/* freedom 0: of the normal distribution. */
static double quantile(double p, size_t freedom)
{
    double low = 0, high = 1;
    DP_ASSERT(p > 0 && p < 1);
    while ((freedom ? dp_student_p(high, freedom) : dp_normal_p(high)) > p)
        high *= 2;
    while (high - low > 1e-14 * high) {
        double middle = low + (high - low) / 2;
        if ((freedom ? dp_student_p(middle, freedom) : dp_normal_p(middle)) > p)
            low = middle;
        else
            high = middle;
    }
    return high;
}

double dp_student_quantile(double p, size_t freedom)
{
    DP_ASSERT(freedom > 0);
    return quantile(p, freedom);
}

double dp_normal_quantile(double p)
{
    return quantile(p, 0);
}

/* That t of a mean at `shift` is above `limit`: over the spread that is found, u times the true one, the normal probability of the rest. */
static double chance_above(double limit, double shift, size_t freedom)
{
    const int steps = 128; /* even: Simpson's rule */
    double v = (double)freedom, end = 1 + 7 / sqrt(v), h = end / steps, sum = 0;
    double scale = exp(log(2) + v / 2 * log(v / 2) - lgamma(v / 2));
    for (int i = 0; i <= steps; i++) {
        double u = i * h, weight = i == 0 || i == steps ? 1 : i % 2 ? 4 : 2;
        double density = scale * pow(u, v - 1) * exp(-v * u * u / 2);
        sum += weight * density * erfc((limit * u - shift) / sqrt(2)) / 2;
    }
    return sum * h / 3;
}

double dp_student_shift(double p, double power, size_t freedom)
{
    double limit = dp_student_quantile(p, freedom), low = 0, high = 2 * limit + 2;
    DP_ASSERT(power >= 0.5 && power < 1);
    while (chance_above(limit, high, freedom) < power)
        high *= 2;
    while (high - low > 1e-6 * high) {
        double middle = low + (high - low) / 2;
        if (chance_above(limit, middle, freedom) < power)
            low = middle;
        else
            high = middle;
    }
    return high;
}

static double log_choose(size_t n, size_t k)
{
    return lgamma((double)n + 1) - lgamma((double)k + 1) - lgamma((double)(n - k) + 1);
}

double dp_fisher_p(size_t one, size_t ones, size_t other, size_t others)
{
    size_t sum = one + other, least = sum > others ? sum - others : 0, most = sum < ones ? sum : ones;
    DP_ASSERT(one <= ones && other <= others);
    double all = log_choose(ones + others, sum), p = 0;
    double own = log_choose(ones, one) + log_choose(others, other) - all;
    for (size_t k = least; k <= most; k++) {
        double chance = log_choose(ones, k) + log_choose(others, sum - k) - all;
        p += chance <= own + 1e-7 ? exp(chance) : 0;
    }
    return fmin(p, 1);
}

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
    double low[DP_COMPARISON_SEEDS_MAX], at[DP_COMPARISON_SEEDS_MAX], high[DP_COMPARISON_SEEDS_MAX];
    DP_ASSERT(count <= DP_COMPARISON_SEEDS_MAX);
    for (size_t i = 0; i < count; i++) {
        low[i] = dp_scale_to(scale, span[i].low);
        at[i] = dp_scale_to(scale, span[i].at);
        high[i] = dp_scale_to(scale, span[i].high);
    }
    struct dp_interval out = dp_interval_of(at, count, DP_INTERVAL_PLAIN);
    double floor = dp_normal_quantile(DP_INTERVAL_PLAIN) * dp_scale_error(scale, out.mean);
    if (out.n > 1) {
        out.low = fmin(dp_interval_of(low, count, DP_INTERVAL_PLAIN).low, out.mean - floor);
        out.high = fmax(dp_interval_of(high, count, DP_INTERVAL_PLAIN).high, out.mean + floor);
    }
    out.mean = dp_scale_from(scale, out.mean);
    out.low = dp_scale_from(scale, out.low);
    out.high = dp_scale_from(scale, out.high);
    return out;
}

struct dp_interval dp_statistics_mode(const json_t *root, size_t mode, enum dp_comparison_quantity quantity)
{
    const struct dp_scale scale = dp_scale_of(root, quantity);
    struct dp_comparison_span span[DP_COMPARISON_SEEDS_MAX];
    size_t n = 0;
    const json_t *run;
    for (size_t s = 0; (run = dp_comparison_next_good(root, mode, &s));)
        span[n++] = dp_comparison_span(root, run, quantity);
    return dp_interval_on(&scale, span, n);
}

/* ---- numbers for people */

const char *dp_compare_interval_text(const struct dp_interval *interval, int digits,
                                     char out[DP_COMPARE_INTERVAL_BYTES])
{
    char mean[DP_PAGE_NUMBER_BYTES], low[DP_PAGE_NUMBER_BYTES], high[DP_PAGE_NUMBER_BYTES];
    if (interval->n == 0)
        (void)snprintf(out, DP_COMPARE_INTERVAL_BYTES, "-");
    else if (!isfinite(interval->low) || !isfinite(interval->high))
        (void)snprintf(out, DP_COMPARE_INTERVAL_BYTES, "%s", dp_page_number(interval->mean, digits, mean));
    else if (interval->high >
             WIDE * fabs(interval->mean)) /* it says little: digits behind the point say nothing */
        (void)snprintf(out, DP_COMPARE_INTERVAL_BYTES, "%s [%.2g, %.2g]",
                       dp_page_number(interval->mean, digits, mean), interval->low, interval->high);
    else
        (void)snprintf(
            out, DP_COMPARE_INTERVAL_BYTES, "%s [%s, %s]", dp_page_number(interval->mean, digits, mean),
            dp_page_number(interval->low, digits, low), dp_page_number(interval->high, digits, high));
    return out;
}

const char *dp_compare_number_text(double value, int digits, char out[DP_COMPARE_INTERVAL_BYTES])
{
    const struct dp_interval plain = {.n = 1, .mean = value, .low = NAN, .high = NAN};
    return dp_compare_interval_text(&plain, digits, out);
}

const char *dp_compare_metric_name(const char *key)
{
    static const char *const names[][2] = {{"auc", "AUC"},
                                           {"rmse", "RMSE"},
                                           {"hr@10", "HR@10"},
                                           {"ndcg@10", "NDCG@10"},
                                           {"logloss", "log loss"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(key, names[i][0]) == 0)
            return names[i][1];
    return key;
}

int dp_compare_digits(enum dp_comparison_quantity quantity, double value)
{
    double size = fabs(value);
    if (quantity == DP_QUANTITY_EXAMPLES_TO || quantity == DP_QUANTITY_EXAMPLES_S)
        return -1;
    if (quantity != DP_QUANTITY_METRIC && quantity != DP_QUANTITY_LOSS &&
        (size >= 0.1 || size == 0 || isnan(size)))
        return size >= 100 ? 1 : 2;
    if (size >= 10)
        return size >= 1000 ? -1 : 2;
    return size >= SMALL || size == 0 || isnan(size) ? 4 : (int)fmin(2 - floor(log10(size)), SMALL_DIGITS);
}

/* Digits with which the bound nearest to `none` does not look like it, if the interval excludes it. */
static int digits_apart(const struct dp_interval *interval, double none, int digits)
{
    double low = fabs(interval->low - none), high = fabs(interval->high - none), nearest = fmin(low, high);
    bool excluded = (interval->low > none) == (interval->high > none);
    while (excluded && nearest > 0 && digits < DIGITS_MAX && nearest * pow(10, digits) < 0.6)
        digits++;
    return digits;
}

const char *dp_compare_ratio_text(const struct dp_interval *ratio, char out[DP_COMPARE_INTERVAL_BYTES])
{
    int digits = ratio->mean < 10 ? 2 : 1;
    return dp_compare_interval_text(ratio, digits_apart(ratio, 1, digits), out);
}

/* Two that count, and up to two more for an interval that is narrow. */
int dp_compare_difference_digits(const struct dp_interval *difference)
{
    double largest = fmax(fabs(difference->mean), fmax(fabs(difference->low), fabs(difference->high)));
    double width = difference->high - difference->low;
    int digits = 2;
    if (largest >= 1000)
        return -1;
    while (digits < DIGITS_MAX && largest > 0 && largest * pow(10, digits) < 10)
        digits++;
    for (int more = 0; more < 2 && digits < DIGITS_MAX && width > 0 && width * pow(10, digits) < 2; more++)
        digits++;
    return digits_apart(difference, 0, digits);
}

const char *dp_compare_difference_text(const struct dp_interval *difference,
                                       char out[DP_COMPARE_INTERVAL_BYTES])
{
    return dp_compare_interval_text(difference, dp_compare_difference_digits(difference), out);
}

const char *dp_compare_by_text(const struct dp_interval *difference, char out[DP_COMPARE_INTERVAL_BYTES])
{
    struct dp_interval by = *difference;
    const char *way = by.mean < 0 ? "lower by " : by.mean > 0 ? "higher by " : "different by ";
    if (by.mean < 0) {
        by.mean = -difference->mean;
        by.low = -difference->high;
        by.high = -difference->low;
    }
    char text[DP_COMPARE_INTERVAL_BYTES];
    (void)snprintf(out, DP_COMPARE_INTERVAL_BYTES, "%s%.160s", way, dp_compare_difference_text(&by, text));
    return out;
}
