/* Fold-in: vectors of users that a model of factors was not trained with, from their items. No weight
 * changes.
 *     history -> items of each user -> rows of all items, once -> the user's vector and bias, by Newton's
 *     method
 * Objective  That of the training, for this user alone, with all items that the user lacks in place of
 *            sampled
 *            ones (above ITEMS_MAX, every n-th of them); it is convex. l2 of the model, at least L2_MIN.
 * History    Pairs or lists of users and items, read as the training file (read/pairs.h). Items that the
 *            training did not have are left out, counted and named in `unknown`.
 * Thread     The client's.
 * Memory     A row of each item.
 * Failure    DP_ARGUMENT: the model has no factors. DP_DATA: the history is damaged, or no user has a known
 *            item. */
#ifndef DP_SCORE_FOLD_IN_H
#define DP_SCORE_FOLD_IN_H

#include "common/vocab/vocab.h"
#include "worker/context/job.h"
#include "worker/context/row_source.h"

#include <stdio.h>

struct dp_fold_in;

/* item: keys of the items, and item_of[names]: 1 + the place of a name among them, or 0. Lent. */
struct dp_fold_in_options {
    struct dp_job *job;
    const struct dp_vocab *vocab;
    const char *history;
    const uint64_t *item;
    const uint32_t *item_of;
    uint64_t items;
};

enum dp_status dp_fold_in_new(const struct dp_fold_in_options *options, struct dp_fold_in **out,
                              struct dp_error *err);
void dp_fold_in_free(struct dp_fold_in **fold); /* accepts NULL inside, leaves NULL */
/* Users with a known item, in the order of the history. Their keys are 0 .. users - 1. */
uint64_t dp_fold_in_users(const struct dp_fold_in *fold);
/* Lent until the next call. */
const char *dp_fold_in_user(struct dp_fold_in *fold, uint64_t user);
/* The places of a user's known items, ascending. Lent. */
const uint32_t *dp_fold_in_items(const struct dp_fold_in *fold, uint64_t user, uint64_t *count);
/* Their rows, and those of the items; other parameters come from the client. */
const struct dp_row_source *dp_fold_in_rows(const struct dp_fold_in *fold);
/* One line about items and users that were left out; nothing if there are none. */
void dp_fold_in_tell(const struct dp_fold_in *fold, FILE *to);

#endif
