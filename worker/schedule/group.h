/* Group: which minibatches of an epoch belong to a worker, and which of them are fetched or pushed together.
 * Minibatch n belongs to worker n % workers; a worker's minibatches have positions 0, 1, ... in ascending
 * order of n. Group g of `every` has the positions g * every .. g * every + every - 1; the last group of an
 * epoch may be short, and none crosses epochs. */
#ifndef DP_SCHEDULE_GROUP_H
#define DP_SCHEDULE_GROUP_H

#include <stdbool.h>
#include <stdint.h>

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

/* The same for the positions first .. first + count - 1. */
uint64_t dp_share_examples_of(struct dp_share share, uint64_t examples, uint32_t batch, uint64_t first,
                              uint64_t count);

uint64_t dp_groups(uint64_t positions, uint32_t every);
/* Of all shares, which are the push numbers of an epoch: 0 .. that - 1 (push_id.h). */
uint64_t dp_groups_of_all(struct dp_share share, uint32_t every);
/* index < dp_groups */
struct dp_group dp_group_at(uint64_t positions, uint32_t every, uint64_t index);
/* Whether a group ends with this position. */
bool dp_group_ends(uint64_t positions, uint32_t every, uint64_t position);

#endif
