/* Device: a backend by its name in the settings.
 *     "cpu"          always there
 *     "cuda"         the first GPU; "cuda:1" the second. An error names the missing part (plugin, driver,
 *                    device)
 *     "cuda:each"    the GPU with the worker's number modulo the GPUs of its machine, so that each worker has
 *                    its own if there are enough; *used says which
 *     "auto"         the first usable GPU, else the CPU, in f32: *used says which, and the log why. It falls
 *                    back only if the GPU is absent or too old: a GPU that is out of memory or fails is an
 *                    error, so that a worker that restarts in the middle of a training does not silently
 *                    continue elsewhere
 * Failure   DP_ARGUMENT: no such name, or a precision that the CPU does not have; DP_NOT_FOUND: plugin,
 *           driver or device is missing; DP_UNSUPPORTED: the GPU is too old or lacks the precision;
 *           DP_VERSION: the plugin is from another build; DP_NOMEM; DP_IO. */
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

/* used: a description for the log, "cpu, 1 thread" or "cuda:0, tf32". NULL, or 64 bytes. */
enum dp_status dp_device_open(const struct dp_device_options *options, struct dp_backend *out, char *used,
                              struct dp_error *err);

#endif
