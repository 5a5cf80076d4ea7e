/* Bench: the subcommand `downpour bench`. Arguments and result are those of deploy/cli/commands.h. */
#ifndef DP_BENCH_BENCH_H
#define DP_BENCH_BENCH_H

int dp_bench(int argc, char *const *argv);

#endif
