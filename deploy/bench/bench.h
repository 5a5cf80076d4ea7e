/* Bench: the subcommand `downpour bench`. argv and what it returns: as those of deploy/cli/commands.h. */
#ifndef DP_BENCH_BENCH_H
#define DP_BENCH_BENCH_H

int dp_bench(int argc, char *const *argv);

#endif
