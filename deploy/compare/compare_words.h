/* Compare words: the findings of a comparison, in sentences (the first one: compare_answer.h); each number
 * with its interval, in brackets.
 * Promise   No mode is called better or faster than another unless claims.h shows it; a mode with runs that
 *           did not end well is not compared, and a target that was not reached has no number.
 * Memory    Texts are malloc'd; "" if there is nothing to say; NULL without memory. */
#ifndef DP_COMPARE_COMPARE_WORDS_H
#define DP_COMPARE_COMPARE_WORDS_H

#include "deploy/compare/compare_numbers.h"

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

#endif
