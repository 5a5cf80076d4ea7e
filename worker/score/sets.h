/* Sets: the sets that a run trains on and evaluates, according to its cluster file: files, or parts of the
 * training file.
 * Promise   A set of users and items that is held out, or has no file of negatives, is ranked among all items
 *           of the training set (read/rank_set.h). The sets borrow the training set, so `train` is closed
 *           last. The log says which pairs cannot be ranked.
 * Failure   DP_ARGUMENT and DP_DATA name the file and a remedy. Opened sets stay in *out, for close. */
#ifndef DP_SCORE_SETS_H
#define DP_SCORE_SETS_H

#include "worker/context/job.h"

struct dp_sets {
    struct dp_dataset *train, *test, *valid; /* test, valid: NULL without one */
};

/* Opens the training set only. Then its size decides the settings that the cluster file leaves open.
 * settled: of the job's cluster. */
enum dp_status dp_sets_train(struct dp_job *job, struct dp_cluster_training *settled, struct dp_sets *out,
                             struct dp_error *err);
/* Opens the other sets, with the settled minibatch size. */
enum dp_status dp_sets_judged(struct dp_job *job, struct dp_sets *sets, struct dp_error *err);
/* How earlier processes of this run, or the run whose weights it trains on, standardized labels: outputs keep
 * their unit. *known: there was one; else *scale is not changed. */
enum dp_status dp_sets_label_scale(const struct dp_job *job, struct dp_label_scale *scale, bool *known,
                                   struct dp_error *err);
void dp_sets_close(struct dp_sets *sets); /* accepts {0} */

#endif
