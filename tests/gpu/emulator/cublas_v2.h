/* As much of cuBLAS as worker/compute/cuda uses, in loops on the CPU (blas.cpp). */
#ifndef DP_TESTS_GPU_EMULATOR_CUBLAS_V2_H
#define DP_TESTS_GPU_EMULATOR_CUBLAS_V2_H

#include "cuda_runtime.h"

typedef struct emulated_blas *cublasHandle_t;
enum cublasStatus_t {
    CUBLAS_STATUS_SUCCESS,
    CUBLAS_STATUS_NOT_INITIALIZED,
    CUBLAS_STATUS_ALLOC_FAILED,
    CUBLAS_STATUS_ARCH_MISMATCH,
    CUBLAS_STATUS_EXECUTION_FAILED,
    CUBLAS_STATUS_NOT_SUPPORTED,
};
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cublasComputeType_t {
    CUBLAS_COMPUTE_32F_PEDANTIC,
    CUBLAS_COMPUTE_32F_FAST_TF32,
    CUBLAS_COMPUTE_32F_FAST_16BF
};
enum cudaDataType { CUDA_R_32F };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT };

const char *cublasGetStatusString(cublasStatus_t status);
cublasStatus_t cublasCreate(cublasHandle_t *out);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes);
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
                            int k, const void *alpha, const void *a, cudaDataType a_type, int lda,
                            const void *b, cudaDataType b_type, int ldb, const void *beta, void *c,
                            cudaDataType c_type, int ldc, cublasComputeType_t compute, cublasGemmAlgo_t how);

namespace emulated
{
/* A factor of a product, as the device converts it. */
float rounded(float x, cublasComputeType_t compute);
} // namespace emulated

#endif
