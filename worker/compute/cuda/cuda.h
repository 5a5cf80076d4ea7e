/* CUDA: the operations of backend.h on an NVIDIA GPU, as a plugin (libdownpour-cuda.so) that ../plugin.c
 * loads, so that the worker starts without CUDA installed. Only this folder sees CUDA's headers.
 * Promise   Equal inputs give equal bits on one kind of device: no atomics, every sum in a fixed order,
 *           cuBLAS with one workspace and stream. Float32 by default; `precision` sets the rounding of
 *           products.
 * Memory    The device's. Pinned host memory (ops->pin) is copied while the host continues; other memory is
 *           copied before the call returns.
 * Thread    The thread that opened it: CUDA's current device belongs to a thread.
 * Failure   Each CUDA and cuBLAS error is translated where it occurs, and kept: operations return nothing,
 *           and every later call that can fail reports the first error, with the operation's name.
 *           DP_NOT_FOUND: no driver or no such device; DP_UNSUPPORTED: a GPU older than the program is built
 *           for; DP_NOMEM: out of device memory, with how much is free; DP_IO otherwise: a driver whose two
 *           parts have different versions, a fault of a kernel, after which no CUDA call works in this
 *           process (the text says to restart it), or a device that is not done within wait_ms. Such a device
 *           is lost: it is not used again, and nothing is freed. */
#ifndef DP_COMPUTE_CUDA_CUDA_H
#define DP_COMPUTE_CUDA_CUDA_H

#ifdef __cplusplus
extern "C" {
#endif
#include "worker/compute/backend.h"

enum dp_precision {
    DP_PRECISION_F32,
    DP_PRECISION_TF32, /* factors of a product are rounded to 10 bits of mantissa; sums are f32 */
    DP_PRECISION_BF16, /* to 7 bits */
};

#define DP_CUDA_WAIT_MS 120000u

struct dp_cuda_options {
    int device; /* its number; with `each` the worker's number, taken modulo the number of devices */
    bool each;
    enum dp_precision precision;
    uint32_t wait_ms; /* how long a step may take on the device after it was issued; 0: DP_CUDA_WAIT_MS */
    int *taken;       /* set to the number of the opened device; or NULL */
};

/* What program and plugin must agree on, read before anything is called: first the version, on which the rest
 * depends, then the sizes of all structs that they exchange. */
struct dp_cuda_layout {
    uint32_t version;
    uint32_t operations, options, entries, columns, times, error;
};

#define DP_CUDA_LAYOUT                                                                                       \
    {                                                                                                        \
        DP_BACKEND_VERSION, sizeof(struct dp_backend_ops), sizeof(struct dp_cuda_options),                   \
            sizeof(struct dp_entries), sizeof(struct dp_column_copy), sizeof(struct dp_device_times),        \
            sizeof(struct dp_error)                                                                          \
    }

/* The plugin's two symbols. */
extern const struct dp_cuda_layout dp_cuda_layout;
enum dp_status dp_cuda_open(const struct dp_cuda_options *options, struct dp_backend *out,
                            struct dp_error *err);
#ifdef __cplusplus
}
#endif

#endif
