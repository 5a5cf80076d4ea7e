/* Defaults: the minibatch and the number of epochs of a training that names none (0 in the cluster file).
 *     batch    128, less for few examples, so that 32 minibatches or more are an epoch: a power of 2, 4 at least
 *     epochs   as many as make model.steps_wanted minibatches, at least model.epochs_min and at most 100; over 20 million
 *              examples in all as few as keep to that, 1 at least
 * Why       A step moves a weight by about the rate (Adam), however small the training set is: what converges needs a number
 *           of steps, not of epochs. The upper bounds are of time, as each epoch costs an evaluation.
 * Promise   A pure function of the model, the number of examples and what is given: all workers find the same, and it is settled before
 *           they compare what they train (agreed.h).
 * Thread    Any. */
#ifndef DP_WORKER_DEFAULTS_H
#define DP_WORKER_DEFAULTS_H

#include "common/config/cluster.h"
#include "worker/compute/model.h"

/* Of what is only scored, or not settled yet. */
#define DP_DEFAULTS_BATCH 128u

/* examples: of the training set, without those held out, > 0. Sets training->batch and epochs where they are 0. */
void dp_defaults_settle(const struct dp_model *model, uint64_t examples,
                        struct dp_cluster_training *training);

#endif
