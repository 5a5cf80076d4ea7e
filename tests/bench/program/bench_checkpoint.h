/* Bench checkpoint: what a checkpoint costs while it is taken under full load, how small an incremental one is, and how
 * fast it is restored. */
#ifndef DP_TESTS_BENCH_PROGRAM_BENCH_CHECKPOINT_H
#define DP_TESTS_BENCH_PROGRAM_BENCH_CHECKPOINT_H

#include "deploy/bench/bench_store.h"

/* argv: the arguments after "checkpoint". Returns the exit code. store: NULL, or the yardstick of another layout. */
int dp_bench_checkpoint(int argc, char *const *argv, const struct dp_bench_store *store);

#endif
