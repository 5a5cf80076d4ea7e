/* Top: the best items of a recommender for each user, as lines of USER, ITEM and SCORE. Tabs separate them
 * (a tab in a name is \x09). The best item comes first; users are in the given order.
 * Items     All items of the training file (the names file of the run), without those of the user's
 *           interactions there, or in the history.
 * Score     With a logistic loss it is the probability of an interaction, otherwise the value. Ties are in
 *           the order of the names.
 * Promise   The file is complete or absent. Tables are not created.
 * Thread    The client's, and a reader's inside (scan.h).
 * Failure   DP_ARGUMENT: the model is no recommender. DP_NOT_FOUND names the unknown user, with similar
 *           names, or the missing training file. DP_IO and DP_DATA name the file. */
#ifndef DP_SCORE_TOP_H
#define DP_SCORE_TOP_H

#include "worker/context/job.h"

struct dp_top_options {
    uint32_t count;    /* for each user, 1 or more */
    const char *users; /* a file with the id or name of a user in each line; or NULL */
    /* A file of interactions of users that the training did not have (fold_in.h), and a file for a line about
     * those that were left out, which stays empty if none were; or NULL. */
    const char *history, *notes;
    bool with_seen; /* items of interactions are ranked too, and the training file is not needed */
    const char *out;
};

enum dp_status dp_top(struct dp_job *job, const struct dp_top_options *options, struct dp_error *err);

#endif
