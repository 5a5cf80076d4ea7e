/* CUDA: the operations of backend.h on an NVIDIA GPU, as a plugin (libdownpour-cuda.so) that plugin.c loads, so that
 * the worker starts where no CUDA is installed. The only folder that sees CUDA's headers.
 * Promise   Equal inputs give equal bits on one kind of device: no atomics, every sum in a fixed order, cuBLAS with one
 *           workspace and stream. Float32 by default; `precision` says how products round.
 * Memory    The device's. Host memory that is pinned (ops->pin) is copied while the host goes on; other memory is copied
 *           before the call returns.
 * Failure   Each CUDA and cuBLAS error is translated where it occurs, and kept: operations return nothing, finish says
 *           the first one, with the operation's name. DP_NOT_FOUND: no driver or no such device; DP_NOMEM; DP_IO. */
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

struct dp_cuda_options {
    int device;
    enum dp_precision precision;
};

/* The plugin's one symbol. */
enum dp_status dp_cuda_open(const struct dp_cuda_options *options, struct dp_backend *out,
                            struct dp_error *err);
#ifdef __cplusplus
}
#endif

#endif
