/* Bench train: how fast each model trains on this machine, with one real server and one real worker on
 * generated data, and where a step's time goes. */
#ifndef DP_TESTS_BENCH_PROGRAM_BENCH_TRAIN_H
#define DP_TESTS_BENCH_PROGRAM_BENCH_TRAIN_H

/* argv: the arguments after "train". Returns the exit code. */
int dp_bench_train(int argc, char *const *argv);

#endif
