// Matrix products by cuBLAS. Row-major [a, b] is column-major [b, a]: factors change places.
#include "worker/compute/cuda/device.h"

#include <stdio.h>

static void product(void *self, const char *what, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
                    int k, const float *a, int lda, const float *b, int ldb, bool add, float *c, int ldc)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    const float one = 1.0f, beta = add ? 1.0f : 0.0f;
    cublasStatus_t st = cublasGemmEx(cuda->blas, ta, tb, m, n, k, &one, a, CUDA_R_32F, lda, b, CUDA_R_32F,
                                     ldb, &beta, c, CUDA_R_32F, ldc, cuda->compute, CUBLAS_GEMM_DEFAULT);
    if (st == CUBLAS_STATUS_SUCCESS)
        return;
    char which[128];
    (void)snprintf(which, sizeof which, "%s of %d x %d x %d", what, m, n, k);
    dp_cuda_note_blas(cuda, st, which);
}

static void matmul(void *self, const float *x, const float *p, uint32_t examples, uint32_t k, uint32_t width,
                   float *out)
{
    int b = static_cast<int>(examples), kk = static_cast<int>(k), w = static_cast<int>(width);
    product(self, "matmul", CUBLAS_OP_N, CUBLAS_OP_N, w, b, kk, p, w, x, kk, false, out, w);
}

static void matmul_back_x(void *self, const float *p, const float *dout, uint32_t examples, uint32_t k,
                          uint32_t width, float *dx, bool add)
{
    int b = static_cast<int>(examples), kk = static_cast<int>(k), w = static_cast<int>(width);
    product(self, "matmul, dx", CUBLAS_OP_T, CUBLAS_OP_N, kk, b, w, p, w, dout, w, add, dx, kk);
}

static void matmul_back_p(void *self, const float *x, const float *dout, uint32_t examples, uint32_t k,
                          uint32_t width, float *dp, bool add)
{
    int b = static_cast<int>(examples), kk = static_cast<int>(k), w = static_cast<int>(width);
    product(self, "matmul, dp", CUBLAS_OP_N, CUBLAS_OP_T, w, kk, b, dout, w, x, kk, add, dp, w);
}

enum dp_status dp_cuda_warm_products(struct dp_cuda *cuda, struct dp_error *err)
{
    const uint32_t n = 16;
    float *a = cuda->sums, *b = a + n * n, *c = b + n * n;
    static_assert(3 * 16 * 16 <= DP_CUDA_SUM_BLOCKS * DP_CUDA_SUM_COLUMNS, "room for three matrices");
    if (cuda->ops.zero(cuda, a, 3 * n * n * sizeof(float), err) != DP_OK)
        return err->status;
    matmul(cuda, a, b, n, n, n, c);
    matmul_back_x(cuda, a, b, n, n, n, c, false);
    matmul_back_p(cuda, a, b, n, n, n, c, true);
    return DP_OK;
}

void dp_cuda_set_products(struct dp_backend_ops *ops)
{
    ops->matmul = matmul;
    ops->matmul_back_x = matmul_back_x;
    ops->matmul_back_p = matmul_back_p;
}
