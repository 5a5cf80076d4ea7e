/* Bench train, hidden: the overlap of a device's computing and the transfers around it, as a share of the
 * shorter of the two. deploy/bench/README.md explains it; tests/bench/compare.py computes it too.
 *     transfers = the longest of pulls, copies in, copies out, which run in parallel
 *     transfers >= compute:  1 - (the thread's waiting for the device) / compute: what passed behind reading
 *                            and pushing is hidden, too
 *     compute > transfers:   1 - (the whole - compute) / transfers: whatever left the device idle counts as
 *                            not hidden
 * Promise   0 .. 1. */
#ifndef DP_TESTS_BENCH_PROGRAM_BENCH_TRAIN_HIDDEN_H
#define DP_TESTS_BENCH_PROGRAM_BENCH_TRAIN_HIDDEN_H

/* Seconds of the same epochs. */
struct dp_bench_train_lanes {
    double whole; /* of the training thread */
    double pulls; /* the thread's time with them and waiting for them; the rest of a pull is not measured */
    double copy_in, compute, copy_out; /* by the device's clock */
    double waiting_device;             /* the thread's, when nothing is pulled */
};

/* NaN when nothing was computed on a device, or nothing was transferred. */
double dp_bench_train_hidden(const struct dp_bench_train_lanes *lanes);

#endif
