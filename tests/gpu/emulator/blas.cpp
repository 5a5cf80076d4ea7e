/* cuBLAS's products, on the stream that the handle was given: the legacy one before cublasSetStream. Factors are rounded as the
 * hardware's conversions round them, products and sums are f32 (of two rounded factors a product is exact).
 * TF32   10 bits of mantissa, to nearest, ties away from zero: cvt.rna.tf32.f32, the only conversion that devices of 8.0 have. (A
 *        tensor core that is given f32 unconverted ignores the low bits; NVIDIA's documents let cuBLAS do either.)
 * bf16   7 bits, to nearest, ties to even: cvt.rn.bf16.f32.
 * A tensor core adds up in blocks, with fewer roundings than these loops. */
#include "cublas_v2.h"
#include "inside.h"

#include <cstdlib>
#include <cstring>
#include <vector>

using namespace emulated;

struct emulated_blas {
    cudaStream_t stream;
    void *workspace;
};

float emulated::rounded(float x, cublasComputeType_t compute)
{
    uint32_t bits;
    if (compute == CUBLAS_COMPUTE_32F_PEDANTIC || !std::isfinite(x))
        return x;
    std::memcpy(&bits, &x, sizeof bits);
    if (compute == CUBLAS_COMPUTE_32F_FAST_TF32)
        bits = (bits + 0x1000u) & 0xffffe000u;
    else
        bits = (bits + 0x7fffu + (bits >> 16 & 1)) & 0xffff0000u;
    std::memcpy(&x, &bits, sizeof bits);
    return x;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_ALLOC_FAILED ? "the resource allocation failed" : "emulated";
}

cublasStatus_t cublasCreate(cublasHandle_t *out)
{
    if (emulator.blas_open == 0)
        *out = new emulated_blas{};
    return static_cast<cublasStatus_t>(emulator.blas_open);
}

cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    delete handle;
    emulator.asked += emulator.stuck;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    handle->workspace = nullptr; // back to cuBLAS's own, as it says
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t)
{
    handle->workspace = workspace;
    return CUBLAS_STATUS_SUCCESS;
}

// op(x), rows x columns and column-major, as rounded rows: element (row, i) at row * columns + i.
static std::vector<float> factor(const float *x, bool transposed, long ld, long rows, long columns,
                                 cublasComputeType_t compute)
{
    std::vector<float> out(static_cast<size_t>(rows * columns));
    for (long row = 0; row < rows; row++)
        for (long i = 0; i < columns; i++)
            out[static_cast<size_t>(row * columns + i)] =
                rounded(x[transposed ? row * ld + i : i * ld + row], compute);
    return out;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
                            int k, const void *alpha, const void *a, cudaDataType, int lda, const void *b,
                            cudaDataType, int ldb, const void *beta, void *c, cudaDataType, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t)
{
    const float by = *static_cast<const float *>(alpha), scale = *static_cast<const float *>(beta);
    if (emulator.blas_product != 0)
        return static_cast<cublasStatus_t>(emulator.blas_product);
    if (!handle->workspace)
        broken("a product in cuBLAS's own workspace: its bits may differ from run to run");
    auto product = [=] {
        const std::vector<float> x =
            factor(static_cast<const float *>(a), ta == CUBLAS_OP_T, lda, m, k, compute);
        const std::vector<float> y =
            factor(static_cast<const float *>(b), tb == CUBLAS_OP_N, ldb, n, k, compute);
        for (long col = 0; col < n; col++)
            for (long row = 0; row < m; row++) {
                float sum = 0, *to = static_cast<float *>(c) + col * ldc + row;
                const float *left = x.data() + row * k, *right = y.data() + col * k;
                for (long i = 0; i < k; i++)
                    sum += left[i] * right[i];
                *to = (scale == 0 ? 0 : scale * *to) + by * sum;
            }
    };
    issue(handle->stream, product, {word(a), word(b), word(c), word(handle->workspace)});
    return emulator.faulty ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}
