/* Late device: the CPU's operations behind memory of their own, with copies that overlap steps as late as a device may make
 * them. Host memory that is copied in must not change before the step is waited for; what is copied out is not there (NaN)
 * before that. Between mark(IN) and mark(COMPUTE) no pinned memory may be written. Whoever breaks this contract ends the program with a line that says how. Needs no test library: it is a plugin, too.
 * done() says no two times of three, so that both answers are met. */
#ifndef DP_TESTS_UNIT_WORKER_COMPUTE_LATE_DEVICE_H
#define DP_TESTS_UNIT_WORKER_COMPUTE_LATE_DEVICE_H

#include "worker/compute/backend.h"

#define LATE_COPIES 512

struct late_copy {
    void *to;
    const void *from;
    size_t bytes;
};

struct late_slot {
    struct late_copy in[LATE_COPIES], out[LATE_COPIES];
    int ins, outs;
    enum { LATE_FREE, LATE_UNDER_WAY, LATE_FINISHED } state; /* finished: not by wait */
};

struct late_device {
    struct dp_backend_ops ops;
    const struct dp_backend_ops *cpu;
    struct late_slot slot[DP_BACKEND_SLOTS];
    struct late_copy pinned[LATE_COPIES]; /* to: its begin */
    int pins;
    uint32_t at; /* the slot that is marked */
    enum dp_stage stage;
    uint64_t sum; /* of what is pinned, at mark(IN) */
    bool lost;    /* what is pinned must not be freed: the test frees it */
    unsigned polls;
    int overlapped;           /* steps that were ended while another was under way */
    int unpinned;             /* copies of such steps from or to memory that is not pinned */
    int copies, fail_copy_at; /* the copy with this number (from 1) fails with DP_IO */
    int waits, fail_wait_at;  /* likewise a wait */
};

void late_device_init(struct late_device *late, struct dp_backend *out);

#endif
