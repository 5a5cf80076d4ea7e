/* Sequential: a run as one process computes it that has all rows and does one step after the other, without shards, client, network
 * or faults: what a run gives, step by step, whose result the plan fixes beforehand.
 *     new (all of it) -> weights ... -> compare -> free
 * Thread    One. Failure: sim_fail. */
#ifndef DP_TESTS_SIM_SEQUENTIAL_H
#define DP_TESTS_SIM_SEQUENTIAL_H

#include "tests/sim/world.h"

struct sim_sequential;

/* NULL: the plan does not fix it; it does with synchronous steps, and with one worker that waits for each push. */
struct sim_sequential *sim_sequential_new(struct sim_world *world);
void sim_sequential_free(struct sim_sequential **sequential); /* accepts NULL inside */
/* Before the push of this number of each worker: lent. */
const float *sim_sequential_weights(const struct sim_sequential *sequential, uint32_t table, uint64_t key,
                                    uint64_t number);
/* The model's rows must be those at its end, every bit but the lsn. */
void sim_sequential_compare(const struct sim_sequential *sequential);

#endif
