/* Compare work: the data that each mode of a comparison trained on, how near it came to the time that its
 * injected delays allow, and disturbances.
 * Memory    Texts are malloc'd; "" or NULL: there is nothing to say.
 * Thread    Any: plain functions. root: of a comparison. */
#ifndef DP_COMPARE_COMPARE_WORK_H
#define DP_COMPARE_COMPARE_WORK_H

#include <jansson.h>
#include <stddef.h>

#define DP_COMPARE_EFFICIENT 0.9 /* below: the machine decides a run's time, too */

/* The share of the examples of all epochs that the reports of a mode's runs have under these keys ("applied", "examples"), over the runs
 * that ended well; NaN: unknown. */
double dp_compare_examples_share(const json_t *root, size_t mode, const char *object, const char *key);
/* The mean of a number of these runs: "efficiency"; NaN: none has it. */
double dp_compare_mode_mean(const json_t *root, size_t mode, const char *key);
/* "75%"; "-": unknown. */
const char *dp_compare_share_text(double share, char out[16]);
/* "Of the speed that the injected delays allow, runs reached: async 96%, sync 91%." */
char *dp_compare_words_efficiency(const json_t *root);
/* Runs below DP_COMPARE_EFFICIENT; modes without delays and with more workers than the machine has processors; a machine that was busy
 * with something else. */
char *dp_compare_words_machine(const json_t *root);

#endif
