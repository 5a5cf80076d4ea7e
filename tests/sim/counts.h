/* Counts: what happened, over all seeds. A simulation in which nothing does shows nothing.
 * Thread    One. */
#ifndef DP_TESTS_SIM_COUNTS_H
#define DP_TESTS_SIM_COUNTS_H

#include "server/shard/shard.h"

enum sim_count {
    SIM_DEATHS,
    SIM_POWER_CUTS,
    SIM_BEHIND,
    SIM_CLAIMS,
    SIM_ENDED,
    SIM_AGAIN,
    SIM_LEASED,
    SIM_LEASED_TWICE,
    SIM_TOLD,
    SIM_REPLACED,
    SIM_GONE,
    SIM_LEFT,
    SIM_MADE_AGAIN,
    SIM_RETURNED,
    SIM_PASSED,
    SIM_CHECKPOINTS,
    SIM_GIVEN_UP,
    SIM_RESTORED,
    SIM_RESTORED_ANEW,
    SIM_PARTIAL
};

void sim_counts_add(enum sim_count what, uint64_t number);
/* What its counters say, at its end. */
void sim_counts_add_shard(const struct dp_shard *shard);
/* Of all worlds so far. */
void sim_counts_print(void);

#endif
