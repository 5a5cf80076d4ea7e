/* Rounds: the steps of a run. A step of a worker is the group that it pushes together (group.h). Where
 * workers do not wait for each other they have as many as their minibatches make. Where they do (ssp, sync:
 * common/config/consistency.h) every member has the same number of steps in an epoch, those of the member
 * with the most minibatches, and step s of the run is a round of all members: a member without a minibatch
 * in it pushes an empty step.
 * Holds     own <= count <= own + 1: shares differ by one minibatch, so an empty step is the last of its
 *           epoch.
 * Why       Workers that have no minibatch at all, because there are more workers than minibatches, are no
 *           members: no worker has to wait for them.
 * Thread    Any: plain functions. */
#ifndef DP_SCHEDULE_ROUNDS_H
#define DP_SCHEDULE_ROUNDS_H

#include "common/config/consistency.h"
#include "worker/schedule/group.h"

struct dp_rounds {
    struct dp_cluster_rule rule;
    struct dp_share share;
    uint32_t every;   /* minibatches in a step */
    uint32_t members; /* 0: async, or this worker is none; it is else number share.worker of these */
    uint64_t own;     /* this worker's steps with minibatches in an epoch */
    uint64_t count;   /* its steps in an epoch */
    uint64_t most;    /* those of the worker that has the most */
    uint64_t listed;  /* pushes of an epoch that all workers take from one list; 0: each has its share */
};

struct dp_rounds dp_rounds_of(const struct dp_cluster_training *training, struct dp_share share);
/* The number of a step in the run. epoch: from 0; step: of this epoch. */
static inline uint64_t dp_rounds_step(const struct dp_rounds *rounds, uint32_t epoch, uint64_t step)
{
    return epoch * rounds->count + step;
}
/* The same for workers that do not wait for each other: those with fewer steps skip some numbers at the end of an epoch. */
static inline uint64_t dp_rounds_clock(const struct dp_rounds *rounds, uint32_t epoch, uint64_t step)
{
    return epoch * rounds->most + step;
}
/* The minibatch whose learning rate a push has: `last`, the last of the push, or in sync the first of the
 * round, so that all members push with the same rate. Also of an empty step (`last` is ignored). */
uint64_t dp_rounds_rated(const struct dp_rounds *rounds, uint64_t step, uint64_t last);
/* The examples of a step, 0 of an empty one. examples, batch: dp_share_examples. */
uint64_t dp_rounds_examples(const struct dp_rounds *rounds, uint64_t examples, uint32_t batch, uint64_t step);

#endif
