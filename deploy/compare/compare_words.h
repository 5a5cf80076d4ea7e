/* Compare words: what a comparison found, in sentences for people; each number with its 95% interval, in brackets.
 * Promise   No mode is called better or faster than another unless statistics.h shows it, and what was not reached is not given a number.
 * Memory    Texts are malloc'd; "" if there is nothing to say; NULL without memory. */
#ifndef DP_COMPARE_COMPARE_WORDS_H
#define DP_COMPARE_COMPARE_WORDS_H

#include "deploy/compare/statistics.h"

/* What was trained, how often, under which injected delays. */
char *dp_compare_words_what(const json_t *root);
/* That it is not finished; runs that failed, and why. */
char *dp_compare_words_failed(const json_t *root);
/* Which mode reaches the target first, in time and in examples. */
char *dp_compare_words_target(const json_t *root);
/* Where each ends, and which differences from the first mode are shown. */
char *dp_compare_words_end(const json_t *root);
/* Used minibatches a second beside the first mode. */
char *dp_compare_words_speed(const json_t *root);
/* How the modes came by their learning rates, and what that leaves open. */
char *dp_compare_words_rates(const json_t *root);
/* Where this mode's rule was the limit. */
char *dp_compare_words_limit(const json_t *root, size_t mode);

/* "0.9712 [0.9700, 0.9724]"; digits as dp_page_number. Returns out. */
#define DP_COMPARE_INTERVAL_BYTES 160u
const char *dp_compare_interval_text(const struct dp_interval *interval, int digits,
                                     char out[DP_COMPARE_INTERVAL_BYTES]);
/* For people: "AUC". */
const char *dp_compare_metric_name(const char *key);
/* Digits behind the point that a quantity is shown with. */
int dp_compare_digits(enum dp_comparison_quantity quantity, double value);

#endif
