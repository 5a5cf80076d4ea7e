/* Shares: which minibatches of an epoch belong to a worker, which of them are fetched or pushed together, and
 * the steps and push ids of a run.
 *     share    Minibatch n belongs to worker n % workers; a worker's minibatches have positions 0, 1, ... in
 *              ascending order of n.
 *     group    Group g of `every` has the positions g * every .. g * every + every - 1. The last group of an
 *              epoch may be short, and none crosses epochs.
 *     rounds A step of a worker is the group that it pushes together. If workers wait for each other (ssp,
 *     sync), every member has the same number of steps in an epoch: as many as the member with the most
 *     minibatches. Step s of the run is a round of all members. A member without a minibatch in it pushes
 *     an empty step. Else they have as many as their minibatches make. push id The stream and number of a
 *     push are functions of the run, the epoch and the position of the
 *              minibatch alone: a repeated push (a retry, a restarted worker) has the id of its first copy,
 *              and servers apply it once.
 * Holds     own <= count <= own + 1: shares differ by one minibatch, so an empty step is the last of its
 *           epoch.
 * Why       Workers that have no minibatch at all, because there are more workers than minibatches, are no
 *           members: no worker has to wait for them.
 * Thread    Any: plain functions. */
#ifndef DP_SCHEDULE_SHARES_H
#define DP_SCHEDULE_SHARES_H

#include "common/config/consistency.h"
#include "common/model/stream.h"

struct dp_share {
    uint64_t batches; /* minibatches of an epoch, all workers */
    uint32_t worker, workers;
};

struct dp_group {
    uint64_t first; /* position */
    uint32_t count;
};

/* The number of this worker's minibatches (positions) in an epoch. */
uint64_t dp_share_positions(struct dp_share share);
uint64_t dp_share_number(struct dp_share share, uint64_t position);
uint64_t dp_share_position(struct dp_share share, uint64_t number); /* the inverse */
/* The share that has the minibatch. */
struct dp_share dp_share_with(struct dp_share share, uint64_t number);
/* This worker's examples in an epoch of `examples`, in minibatches of `batch`, the last one possibly
 * short. */
uint64_t dp_share_examples(struct dp_share share, uint64_t examples, uint32_t batch);

uint64_t dp_groups(uint64_t positions, uint32_t every);
/* Of all shares, which are the push numbers of an epoch: 0 .. that - 1. */
uint64_t dp_groups_of_all(struct dp_share share, uint32_t every);
/* index < dp_groups */
struct dp_group dp_group_at(uint64_t positions, uint32_t every, uint64_t index);
/* Whether a group ends with this position. */
bool dp_group_ends(uint64_t positions, uint32_t every, uint64_t position);

/* run: 1 .. 2^31-1. The top bit distinguishes training's streams from those that the servers assign. */
static inline uint64_t dp_push_stream(uint32_t run, uint32_t epoch)
{
    return dp_stream_of_run(run, epoch);
}

/* group: 0, 1, ... of one worker's pushes in one epoch. With one minibatch in a push this is the
 * number of the minibatch. */
static inline uint64_t dp_push_number(uint32_t worker, uint32_t workers, uint64_t group)
{
    return worker + (uint64_t)workers * group;
}

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
/* The same for workers that do not wait for each other: those with fewer steps skip some numbers at the end
 * of an epoch. */
static inline uint64_t dp_rounds_clock(const struct dp_rounds *rounds, uint32_t epoch, uint64_t step)
{
    return epoch * rounds->most + step;
}
/* The minibatch whose learning rate a push has: `last`, the last of the push, or in sync the first of the
 * round, so that all members push with the same rate. Also of an empty step (`last` is ignored). */
uint64_t dp_rounds_rated(const struct dp_rounds *rounds, uint64_t step, uint64_t last);
/* The examples of a step, 0 of an empty one. examples, batch: dp_share_examples. */
uint64_t dp_rounds_examples(const struct dp_rounds *rounds, uint64_t examples, uint32_t batch, uint64_t step);

/* When a worker takes part. {0}: from the beginning. */
struct dp_seat {
    uint64_t from;   /* the first step of the run in which it takes part since it came back last */
    uint64_t missed; /* steps below, in which it took no part, in all */
};

#endif
