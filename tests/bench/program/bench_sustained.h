/* Bench sustained: durable pushes for minutes, while rows are written back and the journal is recycled:
 * whether the peak lasts, how long a turn of the shard takes at most, and whether the store keeps up. */
#ifndef DP_TESTS_BENCH_PROGRAM_BENCH_SUSTAINED_H
#define DP_TESTS_BENCH_PROGRAM_BENCH_SUSTAINED_H

/* argv: the arguments after "sustained". Returns the exit code. */
int dp_bench_sustained(int argc, char *const *argv);

#endif
