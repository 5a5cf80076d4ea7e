/* Bench modes: what the consistency modes cost: several clients that pull and push steps in the asynchronous mode,
 * with bounded staleness and synchronously, in turns, against one server of the same run. */
#ifndef DP_TESTS_BENCH_PROGRAM_BENCH_MODES_H
#define DP_TESTS_BENCH_PROGRAM_BENCH_MODES_H

/* argv: the arguments after "modes". Returns the exit code. */
int dp_bench_modes(int argc, char *const *argv);

#endif
