/* Device: a backend by the name that people give it.
 *     "cpu"          always there
 *     "cuda"         the first GPU; "cuda:1" the second. What is missing (plugin, driver, device) is said by name
 *     "cuda:each"    the GPU with the worker's number, modulo how many the worker's machine has: each worker of a machine has its own
 *                    where there are enough; *used says which
 *     "auto"         the first GPU where one can be used, else the CPU, in f32: *used says which, and the log why. Only what is not
 *                    there or too old is passed by: a GPU without memory left, or one that fails, is an error, so that a
 *                    worker that is started again in the middle of a training does not go on elsewhere unasked
 * Failure   DP_ARGUMENT: no such name, or the CPU is to round; DP_NOT_FOUND: what "cuda" misses; DP_UNSUPPORTED: the GPU is too old,
 *           or lacks the precision; DP_VERSION: the plugin is of another build; DP_NOMEM; DP_IO.                 */
#ifndef DP_COMPUTE_DEVICE_H
#define DP_COMPUTE_DEVICE_H

#include "worker/compute/backend.h"

struct dp_device_options {
    const char *device;
    const char *precision; /* of products: "f32", "tf32", "bf16" (cuda/cuda.h); the CPU has f32 only */
    uint32_t threads;      /* CPU: OpenBLAS's */
    uint32_t worker;       /* its number, for "cuda:each" */
    uint32_t wait_ms;      /* GPU: how long a step may take (cuda/cuda.h); 0: its default */
};

/* used: what a person reads in the log: "cpu, 1 thread", "cuda:0, tf32". NULL, or 64 bytes. */
DP_MUST_USE
enum dp_status dp_device_open(const struct dp_device_options *options, struct dp_backend *out, char *used,
                              struct dp_error *err);

#endif
