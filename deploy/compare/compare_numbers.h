/* Compare numbers: the numbers of a comparison as people read them: with the digits that count, and an interval in brackets.
 * Each returns `out`, which the caller owns. */
#ifndef DP_COMPARE_COMPARE_NUMBERS_H
#define DP_COMPARE_COMPARE_NUMBERS_H

#include "deploy/compare/statistics.h"

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
/* Digits behind the point that a quantity is shown with. */
int dp_compare_digits(enum dp_comparison_quantity quantity, double value);

#endif
