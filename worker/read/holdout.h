/* Holdout: which pairs of a training file are its test set, which its validation set, and which are trained
 * on.
 * Promise   A function of (users and items of the file, seed) alone, in any order of the lines. A repeated
 *           pair is held out with all its copies, and then is in the test set once. Each user keeps an item
 *           to train on. The test set does not depend on the validation share. Leave-one-out holds out one
 *           item of each user with at least two. A share is taken of each user's items, rounded at random,
 *           so that the mean over all users with two or more items is the share. A validation share is drawn
 *           in the same way from the rest.
 * Failure   DP_DATA when no user has enough items to hold one out; DP_NOMEM. */
#ifndef DP_READ_HOLDOUT_H
#define DP_READ_HOLDOUT_H

#include "worker/read/pairs.h"

/* Whether these options hold anything out. */
static inline bool dp_holdout_any(const struct dp_dataset_options *options)
{
    return options->holdout != DP_HOLDOUT_NONE || options->held_out > 0;
}
/* Keeps only the pairs of the part that the options name, in their order. */
enum dp_status dp_holdout_keep(struct dp_pairs *pairs, const struct dp_dataset_options *options,
                               struct dp_error *err);

#endif
