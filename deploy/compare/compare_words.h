/* Compare words: the findings of a comparison, in sentences (compare_answer.c has the first one); each number
 * with its interval, in brackets.
 * Promise   A mode is called better or faster than another only if claims.h shows it. A mode with runs that
 *           did not end well is not compared. A target that was not reached has no number. Nothing is
 *           written if there is nothing to say. */
#ifndef DP_COMPARE_COMPARE_WORDS_H
#define DP_COMPARE_COMPARE_WORDS_H

#include "deploy/compare/claims.h"
#include "deploy/pages/training.h"

#include <stdio.h>

/* claims: struct dp_claims, of the comparison. */
/* Which mode reached the target first, by how much, at what cost at the end, at which rates; or that no difference is shown, and which
 * would have been; and the reservations. A statement about two modes is a claim that holds, or is marked as not shown; then modes are
 * named in the order in which they were given. */
void dp_compare_put_answer(FILE *to, const void *claims);
/* What was trained, how often, under which injected delays. */
void dp_compare_put_what(FILE *to, const void *claims);
/* What the brackets hold. */
void dp_compare_put_brackets(FILE *to, const void *claims);
/* Runs that diverged or failed, and why; that it is not finished. */
void dp_compare_put_failed(FILE *to, const void *claims);
/* Where the target comes from; when each mode reached it, in seconds and in examples. */
void dp_compare_put_target(FILE *to, const void *claims);
/* Where each ends, which differences from the first mode are shown, and what a mode did not train on. */
void dp_compare_put_end(FILE *to, const void *claims);
/* Applied examples a second, and against the first mode. */
void dp_compare_put_speed(FILE *to, const void *claims);
/* How the modes came by their learning rates, and what that leaves open. */
void dp_compare_put_rates(FILE *to, const void *claims);
/* "Of the speed that the injected delays allow, runs reached: async 96%, sync 91%." */
void dp_compare_put_efficiency(FILE *to, const void *claims);
/* Runs below DP_COMPARE_EFFICIENT; modes without delays and with more workers than the machine has processors; a machine that was busy
 * with something else. */
void dp_compare_put_machine(FILE *to, const void *claims);
/* Where a mode's rule was the limit. */
struct dp_compare_limit {
    const json_t *root;
    size_t mode;
};
void dp_compare_put_limit(FILE *to, const void *limit);

/* ---- the data that a mode trained on, and how near it came to the time that its injected delays allow */

#define DP_COMPARE_EFFICIENT 0.9 /* below: the machine decides a run's time, too */

/* The share of the examples of all epochs that the reports of a mode's runs have under these keys ("applied", "examples"), over the runs
 * that ended well; NaN: unknown. */
double dp_compare_examples_share(const json_t *root, size_t mode, const char *object, const char *key);
/* The mean of a number of these runs: "efficiency"; NaN: none has it. */
double dp_compare_mode_mean(const json_t *root, size_t mode, const char *key);
/* Adds the seconds of each kind of all workers' time in the runs of a mode that were trained to their end; false: there are none. */
bool dp_compare_add_shares(const json_t *root, size_t mode, double sums[DP_SHARES]);
/* "75%"; "-": unknown. */
const char *dp_compare_share_text(double share, char out[16]);

#endif
