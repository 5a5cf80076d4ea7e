/* Bench turns: how long the turns of a server's shards took, from its counters.
 *     dp_bench_turns_read before and after -> dp_bench_turns_add_between -> dp_bench_turns_p9999_ms
 * Thread    Any, each with its own. */
#ifndef DP_TESTS_BENCH_PROGRAM_BENCH_TURNS_H
#define DP_TESTS_BENCH_PROGRAM_BENCH_TURNS_H

#include "common/wire/reply.h"

#define DP_BENCH_TURN_BOUNDS 9u

/* In milliseconds, ascending. */
extern const uint32_t dp_bench_turn_bounds[DP_BENCH_TURN_BOUNDS];

struct dp_bench_turns {
    uint64_t turns, over[DP_BENCH_TURN_BOUNDS]; /* over[i]: turns longer than dp_bench_turn_bounds[i] */
};

struct dp_bench_turns dp_bench_turns_read(const struct dp_status_report *report);
/* Adds to `sum` the turns that came after `before`, up to `after`. */
void dp_bench_turns_add_between(struct dp_bench_turns *sum, const struct dp_bench_turns *before,
                                const struct dp_bench_turns *after);
/* The smallest bound that at most one turn in 10,000 exceeds; 0: none. */
uint32_t dp_bench_turns_p9999_ms(const struct dp_bench_turns *turns);

#endif
