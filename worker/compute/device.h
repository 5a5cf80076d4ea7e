/* Device: a backend by the name that people give it.
 *     "cpu"          always there
 *     "cuda"         the first GPU; "cuda:1" the second. What is missing (plugin, driver, device) is said by name
 *     "auto"         the first GPU where there is one, else the CPU: *used says which
 * Failure   DP_ARGUMENT: no such name, or the device lacks the precision; DP_NOT_FOUND: what "cuda" misses.        */
#ifndef DP_COMPUTE_DEVICE_H
#define DP_COMPUTE_DEVICE_H

#include "worker/compute/backend.h"

struct dp_device_options {
    const char *device;
    const char *precision; /* of products: "f32", "tf32", "bf16" (cuda/cuda.h); the CPU has f32 only */
    uint32_t threads;      /* CPU: OpenBLAS's */
};

/* used: what a person reads in the log: "cpu, 1 thread", "cuda:0, tf32". NULL, or 64 bytes. */
DP_MUST_USE
enum dp_status dp_device_open(const struct dp_device_options *options, struct dp_backend *out, char *used,
                              struct dp_error *err);

#endif
