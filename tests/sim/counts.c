#include "tests/sim/counts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Those of enum sim_count first; the others are counters of a shard. */
static struct {
    const char *name;
    uint64_t sum;
} counted[] = {{"deaths", 0},
               {"power_cuts", 0},
               {"appends_behind", 0},
               {"journal_claims", 0},
               {"journals_ended", 0},
               {"reappend", 0},
               {"leased", 0},
               {"leased_twice", 0},
               {"tables_told", 0},
               {"processes_replaced", 0},
               {"workers_gone", 0},
               {"members_let_leave", 0},
               {"pushes_made_again", 0},
               {"members_returned", 0},
               {"returns_passed", 0},
               {"checkpoints", 0},
               {"checkpoints_given_up", 0},
               {"restored", 0},
               {"restored_on_others", 0},
               {"partial_pushes", 0},
               {"pushes", 0},
               {"pushes_repeated", 0},
               {"pushes_replayed", 0},
               {"rows_read", 0},
               {"rows_evicted", 0},
               {"rows_written_back", 0},
               {"write_back_cycles", 0},
               {"requests_postponed", 0},
               {"requests_parked", 0},
               {"pulls_held", 0},
               {"steps_closed", 0},
               {"pushes_dropped", 0}};

void sim_counts_add(enum sim_count what, uint64_t number)
{
    counted[what].sum += number;
}

void sim_counts_add_shard(const struct dp_shard *shard)
{
    struct dp_counter counters[DP_COUNTERS_MAX];
    uint32_t n = dp_shard_counters(shard, counters);
    for (uint32_t i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof counted / sizeof counted[0]; k++)
            if (strcmp(counters[i].name, counted[k].name) == 0)
                counted[k].sum += counters[i].value;
}

void sim_counts_print(void)
{
    for (size_t k = 0; k < sizeof counted / sizeof counted[0]; k++)
        (void)printf("%s %" PRIu64 "%s", counted[k].name, counted[k].sum,
                     k + 1 < sizeof counted / sizeof counted[0] ? ", " : "\n");
}
