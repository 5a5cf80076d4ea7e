/* Statistics: one mode over runs with several seeds: mean and 95% interval of the mean over its good runs
 * (comparison.h).
 *     value -> scale -> mean +- t sd / sqrt(n) -> back
 * Scale     Times, examples, rates, losses: the logarithm, so the mean is the geometric one. Shares in [0,
 *           1] (accuracy, AUC, HR@10, ...): the logit. No interval leaves the range of its quantity. A share
 *           at 0 or 1 counts as half a test example from there, or 1e-6 where the size of the test set is
 *           not known.
 * Instrument  Time and examples to a target lie between the last sample below it and the first sample that
 *             reached it. So the interval goes from the former's interval to the latter's. The interval of
 *             an accuracy is at least as wide as z times the binomial standard error of the test set. Other
 *             metrics have no such floor, because it does not follow from their value alone.
 * Promise   Of one run there is a mean and no interval. */
#ifndef DP_COMPARE_STATISTICS_H
#define DP_COMPARE_STATISTICS_H

#include "deploy/compare/comparison.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct dp_interval {
    size_t n;
    double mean, sd, low, high; /* sd: on the scale; n 0: mean NaN; n below 2: sd, low and high NaN */
};

struct dp_scale {
    bool is_logit;   /* else a logarithm */
    double examples; /* an accuracy is a share of so many; NaN: not known, or it is none */
};

struct dp_scale dp_scale_of(const json_t *root, enum dp_comparison_quantity quantity);
struct dp_scale dp_scale_of_metric(const json_t *root, const char *key); /* key: as in samples */
const char *dp_scale_name(const struct dp_scale *scale);                 /* "log", "logit" */
double dp_scale_to(const struct dp_scale *scale, double value);
double dp_scale_from(const struct dp_scale *scale, double at);
/* The test set's standard error of an accuracy at `at`, on the scale; 0: not known. */
double dp_scale_error(const struct dp_scale *scale, double at);

/* Mean, sd, and the interval that holds the mean with probability 1 - p. Values that are not finite are left out. */
struct dp_interval dp_interval_of(const double *values, size_t count, double p);
#define DP_INTERVAL_PLAIN 0.05 /* a mode's own interval is one of 95% */
/* The 95% interval of the mean of values that lie in these spans, by the scale (above: Instrument). Those whose `at` is not finite are left
 * out. */
struct dp_interval dp_interval_on(const struct dp_scale *scale, const struct dp_comparison_span *span,
                                  size_t count);
/* Of a mode over its seeds. */
struct dp_interval dp_statistics_mode(const json_t *root, size_t mode, enum dp_comparison_quantity quantity);

/* ---- the distributions of intervals and tests: Student's t ("Student" 1908), the normal one, and Fisher's exact test of two counts
 * Accuracy  Seven digits; a quantile is the value whose probability is the one asked for.
 * Why       Own code: GSL has these functions, but under the GPL, which would then cover each build of `downpour`.
 * Two sides A probability p is always that of both tails: of a value at least this far from 0. */

/* freedom: 1 or more; p: in (0, 1). */
double dp_student_p(double t, size_t freedom);
double dp_student_quantile(double p, size_t freedom);
/* How far from 0 a mean lies, in standard errors, for a test at p to see it with a probability of `power`: of noncentral t (Johnson and Welch
 * 1940). power: at least 0.5. */
double dp_student_shift(double p, double power, size_t freedom);
double dp_normal_p(double z);
double dp_normal_quantile(double p);
/* `one` of `ones` against `other` of `others`: of all tables with these sums, those that are not more likely (Fisher 1922). */
double dp_fisher_p(size_t one, size_t ones, size_t other, size_t others);

/* ---- the numbers of a comparison as people read them: with the digits that count, and an interval in brackets. Each returns `out`. */

/* "0.9712 [0.9700, 0.9724]"; digits as dp_page_number. Returns out. */
#define DP_COMPARE_INTERVAL_BYTES 176u
const char *dp_compare_interval_text(const struct dp_interval *interval, int digits,
                                     char out[DP_COMPARE_INTERVAL_BYTES]);
/* A number without an interval. */
const char *dp_compare_number_text(double value, int digits, char out[DP_COMPARE_INTERVAL_BYTES]);
/* Of ratios and differences between modes: with digits enough that an interval which excludes "no difference" is seen to. */
const char *dp_compare_ratio_text(const struct dp_interval *ratio, char out[DP_COMPARE_INTERVAL_BYTES]);
const char *dp_compare_difference_text(const struct dp_interval *difference,
                                       char out[DP_COMPARE_INTERVAL_BYTES]);
/* "lower by 0.002 [0.001, 0.003]" */
const char *dp_compare_by_text(const struct dp_interval *difference, char out[DP_COMPARE_INTERVAL_BYTES]);
int dp_compare_difference_digits(const struct dp_interval *difference);
/* For people: "AUC". */
const char *dp_compare_metric_name(const char *key);
/* Digits after the point in which a quantity is shown. */
int dp_compare_digits(enum dp_comparison_quantity quantity, double value);

#endif
