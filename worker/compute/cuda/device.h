// What the .cu files share: the device's state, and the first failure. Kernels are launched by launch.h.
#ifndef DP_COMPUTE_CUDA_DEVICE_H
#define DP_COMPUTE_CUDA_DEVICE_H

#include "worker/compute/cuda/cuda.h"

#include <cublas_v2.h>
#include <cuda_runtime.h>

// The events of one step under way, with times.
struct dp_cuda_slot {
    cudaEvent_t in_begun, in_done, compute_begun, compute_done, out_begun, out_done;
    uint64_t issued_ns; // when its last operation was issued
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
    bool lost; // it did not answer in time: another call may hang
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
// The result of a call that reports its own error. A fault of an earlier kernel may show in any call, and is
// kept.
enum dp_status dp_cuda_result(struct dp_cuda *cuda, cudaError_t code, const char *what, struct dp_error *err);

// steps.cu: waits for everything that is issued, for at most so long.
void dp_cuda_wait_all(struct dp_cuda *cuda, uint32_t ms);

void dp_cuda_set_memory(struct dp_backend_ops *ops);
void dp_cuda_set_steps(struct dp_backend_ops *ops);
void dp_cuda_set_rows(struct dp_backend_ops *ops);
void dp_cuda_set_products(struct dp_backend_ops *ops);
void dp_cuda_set_elements(struct dp_backend_ops *ops);
void dp_cuda_set_pairs(struct dp_backend_ops *ops);
void dp_cuda_set_losses(struct dp_backend_ops *ops);

// products.cu: computes one small product of each kind, so that a lack of memory for cuBLAS shows at start.
// A product's own failure is noted (dp_cuda_failed).
enum dp_status dp_cuda_warm_products(struct dp_cuda *cuda, struct dp_error *err);

#endif
