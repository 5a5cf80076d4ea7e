/* CUDA: the operations of backend.h on an NVIDIA GPU, as a plugin (libdownpour-cuda.so) that ../plugin.c loads, so that
 * the worker starts where no CUDA is installed. The only folder that sees CUDA's headers.
 * Promise   Equal inputs give equal bits on one kind of device: no atomics, every sum in a fixed order, cuBLAS with one
 *           workspace and stream. Float32 by default; `precision` says how products round.
 * Memory    The device's. Host memory that is pinned (ops->pin) is copied while the host goes on; other memory is copied
 *           before the call returns.
 * Thread    The one that opened it: CUDA's current device is a thread's.
 * Failure   Each CUDA and cuBLAS error is translated where it occurs, and kept: operations return nothing, and every later call that
 *           can fail says the first one, with the operation's name. DP_NOT_FOUND: no driver or no such device; DP_UNSUPPORTED: a
 *           GPU older than the program is built for; DP_NOMEM: memory of the device, with how much is free; DP_IO, among it:
 *           a driver whose two parts are of different versions (the GPU is there),
 *           a fault of a kernel, after which CUDA answers nothing in this process (the text says so: start it again), and a
 *           device that is not done within wait_ms. The latter is lost: nothing is asked of it or freed any more. */
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
    int device; /* its number; with `each` a worker's, which is taken modulo the number of devices */
    bool each;
    enum dp_precision precision;
    uint32_t wait_ms; /* how long a step may take on the device, from its last order on; 0: DP_CUDA_WAIT_MS */
    int *taken;       /* set to the number of the device that is opened; NULL: not wanted */
};

/* What both sides of the plugin must agree on, read before anything is called: the version first, of which the rest
 * depends, then the sizes of all structs that go from one to the other. */
struct dp_cuda_layout {
    uint32_t version;
    uint32_t operations, options, entries, columns, times, error;
};

#define DP_CUDA_LAYOUT                                                                                       \
    {                                                                                                        \
        DP_BACKEND_VERSION, sizeof(struct dp_backend_ops), sizeof(struct dp_cuda_options),                   \
            sizeof(struct dp_entries), sizeof(struct dp_columns), sizeof(struct dp_device_times),            \
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
