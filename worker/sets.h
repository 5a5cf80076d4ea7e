/* Sets: what a run trains on and what it evaluates, as its cluster file says: files, or parts of the training file.
 * Promise   Of users and items a set without a file of negatives, or one that is held out, is ranked among all items of the training set (read/rank_set.h),
 *           which it then lends: `train` is closed last. The log says what cannot be ranked, and was left out.
 * Failure   What was opened stays in *out, for clear. DP_ARGUMENT and DP_DATA with the file and a remedy. */
#ifndef DP_WORKER_SETS_H
#define DP_WORKER_SETS_H

#include "worker/job.h"

struct dp_sets {
    struct dp_dataset *train, *test, *valid; /* test, valid: NULL without one */
};

/* *out: only the training set. */
DP_MUST_USE
enum dp_status dp_sets_train(struct dp_job *job, struct dp_sets *out, struct dp_error *err);
/* The others, with the batch that the job's cluster has now. */
DP_MUST_USE
enum dp_status dp_sets_judged(struct dp_job *job, struct dp_sets *sets, struct dp_error *err);
void dp_sets_close(struct dp_sets *sets); /* accepts {0} */

#endif
