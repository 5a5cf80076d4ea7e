#include "tests/bench/program/bench_turns.h"

#include "deploy/bench/bench_server.h"

#include <inttypes.h>
#include <stdio.h>

const uint32_t dp_bench_turn_bounds[DP_BENCH_TURN_BOUNDS] = {1, 2, 5, 10, 20, 50, 100, 200, 500};

struct dp_bench_turns dp_bench_turns_read(const struct dp_status_report *report)
{
    struct dp_bench_turns turns = {.turns = dp_bench_counter(report, "turns")};
    for (size_t i = 0; i < DP_BENCH_TURN_BOUNDS; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "turns_over_%" PRIu32 "ms", dp_bench_turn_bounds[i]);
        turns.over[i] = dp_bench_counter(report, name);
    }
    return turns;
}

void dp_bench_turns_add_between(struct dp_bench_turns *sum, const struct dp_bench_turns *before,
                                const struct dp_bench_turns *after)
{
    sum->turns += after->turns - before->turns;
    for (size_t i = 0; i < DP_BENCH_TURN_BOUNDS; i++)
        sum->over[i] += after->over[i] - before->over[i];
}

uint32_t dp_bench_turns_p9999_ms(const struct dp_bench_turns *turns)
{
    for (size_t i = 0; i < DP_BENCH_TURN_BOUNDS; i++)
        if (turns->over[i] * 10000 <= turns->turns)
            return dp_bench_turn_bounds[i];
    return 0;
}
