// What the .cu files share: the device's state, launches, and the first failure.
#ifndef DP_COMPUTE_CUDA_DEVICE_H
#define DP_COMPUTE_CUDA_DEVICE_H

#include "worker/compute/cuda/cuda.h"

#include <cublas_v2.h>
#include <cuda_runtime.h>

// Of one step under way; with times.
struct dp_cuda_slot {
    cudaEvent_t in_begun, in_done, compute_begun, compute_done, out_begun, out_done;
    uint64_t issued_ns; // when its last order was given
};

// Partial sums of columns (elements.cu): blocks of a grid that fills a large GPU, each of so many columns.
#define DP_CUDA_SUM_BLOCKS  264u
#define DP_CUDA_SUM_COLUMNS 32u

struct dp_cuda {
    struct dp_backend_ops ops;
    int device;
    cudaStream_t stream;  // of operations
    cudaStream_t in, out; // of copies
    struct dp_cuda_slot slot[DP_BACKEND_SLOTS];
    cublasHandle_t blas;
    cublasComputeType_t compute;
    void *workspace; // cuBLAS's
    float *sums;     // DP_CUDA_SUM_BLOCKS * DP_CUDA_SUM_COLUMNS
    uint32_t wait_ms;
    bool lost; // it did not answer in time: whoever asks again may hang
    struct dp_error failed;
};

static inline struct dp_cuda *dp_cuda_of(void *self)
{
    return static_cast<struct dp_cuda *>(self);
}

// failed.cu
enum dp_status dp_cuda_fail(struct dp_error *err, cudaError_t code, const char *what);
enum dp_status dp_cuda_fail_blas(struct dp_error *err, int device, cublasStatus_t code, const char *what);
// Keeps the first failure; `what` is the operation's name.
void dp_cuda_note(struct dp_cuda *cuda, cudaError_t code, const char *what);
void dp_cuda_note_blas(struct dp_cuda *cuda, cublasStatus_t code, const char *what);
// The first failure, if there was one.
enum dp_status dp_cuda_failed(const struct dp_cuda *cuda, struct dp_error *err);
// The outcome of a call that is told by itself; a fault of an earlier kernel may show in any call, and is kept.
enum dp_status dp_cuda_told(struct dp_cuda *cuda, cudaError_t code, const char *what, struct dp_error *err);

// steps.cu: waits for all that is issued, at most so long.
void dp_cuda_wait_all(struct dp_cuda *cuda, uint32_t ms);

// After a launch: a bad configuration, or no memory to load the kernel, shows here, a fault of the kernel at finish. The error is taken
// away from CUDA: it would be seen as that of the next backend's first launch.
static inline void dp_cuda_launched(struct dp_cuda *cuda, const char *what)
{
    dp_cuda_note(cuda, cudaGetLastError(), what);
}

// A kernel on a grid of blocks; tests/gpu/emulator has one of its own, for machines without a GPU. Kernels are named dp_cuda_*:
// tests/gpu/sanitize.sh chooses them by that.
#ifndef DP_CUDA_LAUNCH
#define DP_CUDA_LAUNCH(kernel, grid, block, stream, ...) kernel<<<grid, block, 0, stream>>>(__VA_ARGS__)
#endif

#define DP_CUDA_THREADS 256u

// Blocks for a loop over n elements with a stride of the whole grid.
static inline unsigned dp_cuda_blocks(size_t n)
{
    size_t blocks = (n + DP_CUDA_THREADS - 1) / DP_CUDA_THREADS;
    return static_cast<unsigned>(blocks < 1 ? 1 : blocks < 65536 ? blocks : 65536);
}

#define DP_CUDA_LOOP(i, n)                                                                                   \
    for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < (n);                     \
         i += static_cast<size_t>(gridDim.x) * blockDim.x)

void dp_cuda_set_memory(struct dp_backend_ops *ops);
void dp_cuda_set_steps(struct dp_backend_ops *ops);
void dp_cuda_set_rows(struct dp_backend_ops *ops);
void dp_cuda_set_products(struct dp_backend_ops *ops);
void dp_cuda_set_elements(struct dp_backend_ops *ops);
void dp_cuda_set_pairs(struct dp_backend_ops *ops);
void dp_cuda_set_losses(struct dp_backend_ops *ops);

// products.cu: one small product of each kind, so that what cuBLAS lacks is found at start.
void dp_cuda_warm_products(struct dp_cuda *cuda);

#endif
