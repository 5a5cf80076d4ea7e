/* Top: the items that a recommender ranks best for a user, as lines "USER ITEM SCORE", the best first, users in the order asked for.
 * Items     All that the training file had (the run's file of names), but those that the user met there.
 * Score     Of a logistic loss the probability that both meet, else the value; ties by the order of the names.
 * Promise   The file is there whole or not at all. Tables are not made.
 * Thread    The client's, and a reader's inside (scan.h).
 * Failure   DP_ARGUMENT: the model is no recommender; DP_NOT_FOUND naming the user, with similar names, or the training file that is gone;
 *           DP_IO, DP_DATA naming the file. */
#ifndef DP_WORKER_TOP_H
#define DP_WORKER_TOP_H

#include "worker/job.h"

struct dp_top_options {
    uint32_t count;    /* for each user, 1 or more */
    const char *users; /* a file with a user's id or name in each line */
    bool with_seen;    /* the items that a user met are ranked too; the training file is not needed then */
    const char *out;
};

DP_MUST_USE
enum dp_status dp_top(struct dp_job *job, const struct dp_top_options *options, struct dp_error *err);

#endif
