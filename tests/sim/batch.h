/* Batch: what a minibatch of the simulated training touches, and what training would give: functions of the seed, the worker, the number
 * and the weights alone. */
#ifndef DP_TESTS_SIM_BATCH_H
#define DP_TESTS_SIM_BATCH_H

#include "tests/sim/world.h"

#define SIM_BATCH_ROWS  6u /* of one table in a step */
#define SIM_BATCH_PARTS 2u /* tables in a step */
#define SIM_BATCH_DIM   256u
_Static_assert(SIM_BATCH_ROWS *SIM_BATCH_PARTS == SIM_ROWS_MAX, "the plan makes room for them");

struct sim_batch {
    uint32_t parts;
    struct {
        uint32_t table, rows;
        uint64_t key[SIM_BATCH_ROWS];
    } part[SIM_BATCH_PARTS];
    float rate;
    uint32_t examples;
    bool blind; /* pushed without a pull before it, so that rows may be missing in the cache */
};

void sim_batch_make(const struct sim_world *world, uint32_t worker, uint32_t number, struct sim_batch *out);
/* Integers, or something that depends on the weights. */
void sim_batch_gradient(const struct sim_world *world, uint32_t worker, uint32_t table, uint64_t key,
                        uint64_t number, const float *weights, float *out);

#endif
