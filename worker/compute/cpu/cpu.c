/* The CPU's backend: memory, and products by OpenBLAS. */
#include "worker/compute/cpu/cpu.h"

#include "common/base/memory.h"
#include "worker/compute/cpu/blas.h"

#include <cblas.h>

static void cpu_close(void *self)
{
    (void)self;
}

static enum dp_status cpu_alloc(void *self, size_t bytes, void **out, struct dp_error *err)
{
    (void)self;
    *out = dp_alloc_aligned(bytes);
    if (!*out)
        return dp_fail(err, DP_NOMEM, "no memory for %zu bytes: a smaller batch or model needs less", bytes);
    return DP_OK;
}

static void cpu_release(void *self, void *block)
{
    (void)self;
    free(block);
}

static enum dp_status cpu_copy(void *self, void *to, const void *from, size_t bytes, struct dp_error *err)
{
    (void)self, (void)err;
    if (bytes > 0)
        memcpy(to, from, bytes);
    return DP_OK;
}

static enum dp_status cpu_zero(void *self, void *block, size_t bytes, struct dp_error *err)
{
    (void)self, (void)err;
    if (bytes > 0)
        memset(block, 0, bytes);
    return DP_OK;
}

static enum dp_status cpu_finish(void *self, struct dp_error *err)
{
    (void)self, (void)err;
    return DP_OK;
}

static void cpu_matmul(void *self, const float *x, const float *p, uint32_t examples, uint32_t k,
                       uint32_t width, float *out)
{
    (void)self;
    int m = (int)examples, kk = (int)k, n = (int)width;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, kk, 1.0f, x, kk, p, n, 0.0f, out, n);
}

/* dx = dout p^T */
static void cpu_matmul_back_x(void *self, const float *p, const float *dout, uint32_t examples, uint32_t k,
                              uint32_t width, float *dx, bool add)
{
    (void)self;
    int m = (int)examples, kk = (int)k, n = (int)width;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, kk, n, 1.0f, dout, n, p, n, add ? 1.0f : 0.0f, dx,
                kk);
}

/* dp = x^T dout */
static void cpu_matmul_back_p(void *self, const float *x, const float *dout, uint32_t examples, uint32_t k,
                              uint32_t width, float *dp, bool add)
{
    (void)self;
    int m = (int)examples, kk = (int)k, n = (int)width;
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, kk, n, m, 1.0f, x, kk, dout, n, add ? 1.0f : 0.0f,
                dp, n);
}

static const struct dp_backend_ops cpu_ops = {
    .name = "cpu",
    .host_memory = true,
    .wants_by_slot = false,
    .close = cpu_close,
    .alloc = cpu_alloc,
    .release = cpu_release,
    .copy_in = cpu_copy,
    .copy_out = cpu_copy,
    .zero = cpu_zero,
    .finish = cpu_finish,
    .gather_sum = dp_cpu_gather_sum,
    .gather_sum_back = dp_cpu_gather_sum_back,
    .gather = dp_cpu_gather,
    .gather_back = dp_cpu_gather_back,
    .interactions = dp_cpu_interactions,
    .interactions_back = dp_cpu_interactions_back,
    .matmul = cpu_matmul,
    .matmul_back_x = cpu_matmul_back_x,
    .matmul_back_p = cpu_matmul_back_p,
    .bias = dp_cpu_bias,
    .bias_back_p = dp_cpu_bias_back_p,
    .relu = dp_cpu_relu,
    .relu_back = dp_cpu_relu_back,
    .sigmoid = dp_cpu_sigmoid,
    .sigmoid_back = dp_cpu_sigmoid_back,
    .tanh_ = dp_cpu_tanh,
    .tanh_back = dp_cpu_tanh_back,
    .dropout = dp_cpu_dropout,
    .columns = dp_cpu_columns,
    .sum = dp_cpu_sum,
    .multiply = dp_cpu_multiply,
    .multiply_back = dp_cpu_multiply_back,
    .dot = dp_cpu_dot,
    .dot_back = dp_cpu_dot_back,
    .pairs = dp_cpu_pairs,
    .pairs_back = dp_cpu_pairs_back,
    .copy_back = dp_cpu_copy_back,
    .softmax_loss = dp_cpu_softmax_loss,
    .logistic_loss = dp_cpu_logistic_loss,
    .squared_loss = dp_cpu_squared_loss,
    .bpr_loss = dp_cpu_bpr_loss,
};

enum dp_status dp_backend_cpu(uint32_t threads, struct dp_backend *out, struct dp_error *err)
{
    *out = (struct dp_backend){0};
    if (threads == 0 || threads > 1024)
        return dp_fail(err, DP_ARGUMENT, "compute threads: %u is not 1 .. 1024", threads);
    dp_blas_init((int)threads);
    out->ops = &cpu_ops;
    return DP_OK;
}
