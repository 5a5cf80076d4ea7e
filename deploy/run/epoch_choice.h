/* Epoch choice: the epochs of a long training that a short table shows: the first, the last, evenly chosen
 * ones between, and the best, which the caller adds.
 * Promise   Of at most `most` epochs all are; of more, most - 1 and the best. */
#ifndef DP_RUN_EPOCH_CHOICE_H
#define DP_RUN_EPOCH_CHOICE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define DP_EPOCH_LINES_MAX 20u /* of a table in a terminal */

/* i: counted from 0, of count. most: 3 at least. */
bool dp_epoch_chosen(size_t i, size_t count, size_t most);
/* What an epoch is judged by: the loss of the validation set, else of the test set, else in training. HUGE_VAL: it has none. */
double dp_epoch_loss(const json_t *epoch);
/* The first of those whose loss is least; 0 where there is none. */
size_t dp_epoch_best(const json_t *epochs);

#endif
