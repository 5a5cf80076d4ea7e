/* Training plan: makes sure that all workers of a run, and those that predict with it, have the same training
 * settings. It is one value of the register:
 *     run/<run>/plan    the text (training_settings.h), a 0 byte, for each worker the process (u64, job.h)
 *     that joined,
 *                       or 0; a byte: 1 once a worker began to train
 *     join -> begin -> the first push
 * Promise   The first worker to join sets the plan, by compare-and-set. A worker with different settings is
 *           refused before it has pushed anything, also after every process was killed. A plan that was not
 *           begun, whose workers have all ended, or were killed and are forgotten by the first server, is
 *           abandoned: it is replaced. A worker that joined it and is running all the same (the first server
 *           was restarted and does not know) is refused when it begins.
 * Thread    The job's. */
#ifndef DP_COORDINATE_TRAINING_PLAN_H
#define DP_COORDINATE_TRAINING_PLAN_H

#include "worker/context/job.h"
#include "worker/context/training_settings.h"

/* Called by a worker before it trains. text: its settings. begun: the run has pushes of this worker;
 * DP_EXISTS when they were made by other settings. DP_ARGUMENT names another worker whose settings differ. */
enum dp_status dp_training_plan_join(struct dp_job *job, const char *text, bool begun, struct dp_error *err);
/* Called by a worker that joined, before its first epoch: the plan is never replaced from then on.
 * DP_ARGUMENT when it was replaced since. */
enum dp_status dp_training_plan_begin(struct dp_job *job, const char *text, struct dp_error *err);
/* The epochs of a run that was begun, where they are chosen (0 is given): a later build may choose others.
 * Else *epochs stays. */
enum dp_status dp_training_plan_epochs(struct dp_job *job, uint32_t *epochs, struct dp_error *err);
/* Called by a process that writes scores. DP_ARGUMENT when the run was trained by other settings. */
enum dp_status dp_training_plan_check_scores(struct dp_job *job, struct dp_error *err);
/* The same, of one that reads the training file again: DP_ARGUMENT when that is not the run's data. */
enum dp_status dp_training_plan_check_data(struct dp_job *job, const struct dp_dataset *train,
                                           struct dp_error *err);

#endif
