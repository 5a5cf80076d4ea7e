/* Bench train, hidden: how much of the lesser of two works, a device's computing and the transfers around it, passed while the
 * other one was done. tests/bench/README.md says what it means; tests/bench/compare.py has it too.
 *     transfers = the longest of pulls, copies in, copies out: they run beside one another, so at least that long
 *     transfers >= compute:  1 - (the thread's waiting for the device) / compute: what passed behind reading and pushing is hidden, too
 *     compute > transfers:   1 - (the whole - compute) / transfers: whatever left the device idle counts as not hidden
 * Promise   0 .. 1. */
#ifndef DP_CLI_BENCH_TRAIN_HIDDEN_H
#define DP_CLI_BENCH_TRAIN_HIDDEN_H

/* Seconds of the same epochs. */
struct dp_train_lanes {
    double whole; /* of the training thread */
    double pulls; /* its time with them and waiting for them: what else passes of them is not known */
    double copy_in, compute, copy_out; /* by the device's clock */
    double waiting_device;             /* the thread's, when nothing is pulled */
};

/* NaN: nothing was computed on a device, or nothing was transferred. */
double dp_train_hidden(const struct dp_train_lanes *lanes);

#endif
