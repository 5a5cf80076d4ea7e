/* Run number: which training the workers of a cluster make, where the cluster file does not say it
 * (training.run = 0). It is one value of the register:
 *     runs    JSON: {"run":2,"first_epoch":20,"epochs":0,"done":false,"train":"day2.csv",
 *             "earlier_examples":0,"examples":640,"digest":"00c0ffee"}, of the last run
 * epochs: how many it trained; known once it is done. train: the file that it was begun with.
 * earlier_examples, examples, digest: until it is done of the run before it, then its own. A run on other
 * data than these has had earlier_examples + examples before it.
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

/* Sets training->run, first_epoch and earlier_examples, and job->runs. resumes: the last run, done or not. */
enum dp_status dp_run_number_find(struct dp_job *job, bool resumes, struct dp_cluster_training *training,
                                  struct dp_error *err);
/* Of the last run, for those that only read: 0 in training->run becomes its number, or 1. */
enum dp_status dp_run_number_last(struct dp_job *job, struct dp_cluster_training *training,
                                  struct dp_error *err);
/* Called by worker 0 when its run is complete. digest, examples: of its training set. */
enum dp_status dp_run_number_done(struct dp_job *job, uint32_t epochs, uint64_t digest, uint64_t examples,
                                  struct dp_error *err);

#endif
