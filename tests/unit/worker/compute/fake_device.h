/* Fake device: the CPU's operations behind a wall: its memory is not the host's, it wants the lists by slot
 * and sums sparse gradients by them, and it fails when told to. A host pointer where a device pointer
 * belongs, or lists that are wrong, fail the test.
 * Thread    The test's own (it asserts). */
#ifndef DP_TESTS_UNIT_WORKER_COMPUTE_FAKE_DEVICE_H
#define DP_TESTS_UNIT_WORKER_COMPUTE_FAKE_DEVICE_H

#include "worker/compute/backend.h"

#include <stddef.h>

struct fake_device {
    struct dp_backend_ops ops;
    const struct dp_backend_ops *cpu;
    char *block; /* the one block of its memory */
    size_t bytes;
    int allocs, copies_in;
    int fail_copy_at; /* the copy in or out with this number (from 1) fails with DP_IO */
    int copies;
    bool fail_finish, fail_alloc;
};

void fake_device_init(struct fake_device *fake, struct dp_backend *out);

#endif
