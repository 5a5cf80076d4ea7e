/* Bench train: how fast each model trains on this machine, by one real server and one real worker, on data that is made for
 * it, and where a step's time goes. */
#ifndef DP_CLI_BENCH_TRAIN_H
#define DP_CLI_BENCH_TRAIN_H

/* argv: what follows "bench train". Gives the exit code. */
int dp_bench_train(int argc, char *const *argv);

#endif
