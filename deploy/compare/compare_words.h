/* Compare words: what a comparison found, in sentences for people (the first one: compare_answer.h); each number with its interval,
 * in brackets.
 * Promise   No mode is called better or faster than another unless claims.h shows it; a mode with runs that did not end well is compared
 *           with none, and what was not reached is not given a number.
 * Memory    Texts are malloc'd; "" if there is nothing to say; NULL without memory. */
#ifndef DP_COMPARE_COMPARE_WORDS_H
#define DP_COMPARE_COMPARE_WORDS_H

#include "deploy/compare/statistics.h"

/* What was trained, how often, under which injected delays. */
char *dp_compare_words_what(const json_t *root);
/* What the brackets hold. */
char *dp_compare_words_brackets(const json_t *root);
/* Runs that diverged or failed, and why; that it is not finished. */
char *dp_compare_words_failed(const json_t *root);
/* Where the target comes from; when each mode reached it, in seconds and in examples. */
char *dp_compare_words_target(const json_t *root);
/* Where each ends, which differences from the first mode are shown, and what a mode did not train on. */
char *dp_compare_words_end(const json_t *root);
/* Applied examples a second, and beside the first mode. */
char *dp_compare_words_speed(const json_t *root);
/* How the modes came by their learning rates, and what that leaves open. */
char *dp_compare_words_rates(const json_t *root);
/* Where this mode's rule was the limit. */
char *dp_compare_words_limit(const json_t *root, size_t mode);

/* "0.9712 [0.9700, 0.9724]"; digits as dp_page_number. Returns out. */
#define DP_COMPARE_INTERVAL_BYTES 160u
const char *dp_compare_interval_text(const struct dp_interval *interval, int digits,
                                     char out[DP_COMPARE_INTERVAL_BYTES]);
/* Of ratios and differences between modes: with digits enough that an interval which excludes "no difference" is seen to. */
const char *dp_compare_ratio_text(const struct dp_interval *ratio, char out[DP_COMPARE_INTERVAL_BYTES]);
const char *dp_compare_difference_text(const struct dp_interval *difference,
                                       char out[DP_COMPARE_INTERVAL_BYTES]);
int dp_compare_difference_digits(const struct dp_interval *difference);
/* For people: "AUC". */
const char *dp_compare_metric_name(const char *key);
/* Digits behind the point that a quantity is shown with. */
int dp_compare_digits(enum dp_comparison_quantity quantity, double value);

#endif
