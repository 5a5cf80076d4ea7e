/* Sampling: rank 0's copy of the weights at moments of an all-reduce training, in the file that an observer of servers writes
 * (worker/observe/samples.h), so that both are scored alike.
 *     open (the first sample) -> step, step, ... -> end (the last one) -> close
 * When      As observe.h says it for servers: the training begins at the end of the first step; then every
 *           every_ms, and each time that another `each` examples were applied, after a step.
 * Cost      Rank 0 copies, hashes and writes between two steps, and the other ranks wait for it: about a millisecond a megabyte.
 * Thread    The training's.
 * Failure   open: DP_DATA, DP_NOT_FOUND name the file of keys. A sample that cannot be written does not end
 *           the training. It is logged, and sampling ends. The file is removed, because its last sample
 *           would not have the last weights. */
#ifndef DP_ALLREDUCE_SAMPLING_H
#define DP_ALLREDUCE_SAMPLING_H

#include "common/env/clock.h"
#include "worker/allreduce/replica.h"

struct dp_sampling_options {
    const char *samples, *keys; /* NULL: none */
    uint32_t every_ms;          /* 1 or more */
};

struct dp_sampling;

/* options, graph and replica: lent until close. */
enum dp_status dp_sampling_open(const struct dp_sampling_options *options, const struct dp_graph *graph,
                                const struct dp_replica *replica, struct dp_clock clock,
                                struct dp_sampling **out, struct dp_error *err);
/* A step was applied: this many gradients, of this many examples. */
void dp_sampling_step(struct dp_sampling *sampling, uint64_t pushes, uint64_t examples);
void dp_sampling_end(struct dp_sampling *sampling);
void dp_sampling_close(struct dp_sampling **sampling); /* accepts NULL inside, leaves NULL */

#endif
