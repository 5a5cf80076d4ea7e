/* Run number: which training the workers of a cluster make, where the cluster file does not say it
 * (training.run = 0). It is one value of the register:
 *     runs    JSON: {"run":2,"first_epoch":20,"epochs":0,"done":false}, of the last run
 * epochs: how many it trained; known once it is done.
 *     find -> (the last run is not done: that one | it is done: the next) -> train -> worker 0: done
 * Promise   Compare-and-set: all workers that start for a run find the same number, and no two runs have the
 *           same. A worker that was killed finds the run that it was killed in, also after the others have
 *           finished it. The first epoch of the next run is the one after the last run's, unless the cluster
 *           file gives one. A number in the cluster file is used as it is, and becomes the last run where it
 *           is higher.
 * Thread    The job's. */
#ifndef DP_COORDINATE_RUN_NUMBER_H
#define DP_COORDINATE_RUN_NUMBER_H

#include "worker/context/job.h"

/* Sets training->run and training->first_epoch. resumes: the last run, done or not. */
enum dp_status dp_run_number_find(struct dp_job *job, bool resumes, struct dp_cluster_training *training,
                                  struct dp_error *err);
/* Of the last run, for those that only read: 0 in training->run becomes its number, or 1. */
enum dp_status dp_run_number_last(struct dp_job *job, struct dp_cluster_training *training,
                                  struct dp_error *err);
/* Called by worker 0 when its run is complete. */
enum dp_status dp_run_number_done(struct dp_job *job, uint32_t epochs, struct dp_error *err);

#endif
