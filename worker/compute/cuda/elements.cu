// Operations on elements and columns.
#include "worker/compute/cuda/launch.h"
#include "worker/compute/dropout.h"

// One kernel for all operations on single elements: out[i] = f(i), or out[i] += f(i).
template <class F> __global__ static void dp_cuda_each(size_t n, F f, float *out, bool add)
{
    DP_CUDA_LOOP(i, n)
    {
        float y = f(i);
        out[i] = add ? out[i] + y : y;
    }
}

template <class F> static void each(void *self, const char *what, size_t n, F f, float *out, bool add)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    DP_CUDA_LAUNCH(dp_cuda_each, dp_cuda_blocks(n), DP_CUDA_THREADS, cuda->stream, n, f, out, add);
    dp_cuda_launched(cuda, what);
}

static void bias(void *self, const float *x, const float *p, uint32_t examples, uint32_t width, float *out)
{
    each(
        self, "bias", static_cast<size_t>(examples) * width,
        [=] __device__(size_t i) { return x[i] + p[i % width]; }, out, false);
}

#define LANES   8u
#define COLUMNS DP_CUDA_SUM_COLUMNS

// Sums of columns over the examples, in two passes: over parts of the examples, then over the parts. A block
// has 32 columns and a part, which its 8 lanes sum in turns and add pairwise. The number of parts depends on
// the shape alone, not on the GPU.
__global__ static void __launch_bounds__(LANES *COLUMNS)
    dp_cuda_column_sums(const float *x, uint32_t rows, uint32_t each, uint32_t width, float *out, bool add)
{
    __shared__ float part[LANES][COLUMNS];
    uint32_t c = blockIdx.x * COLUMNS + threadIdx.x, from = blockIdx.y * each;
    uint32_t to = rows - from < each ? rows : from + each;
    float sum = 0;
    for (uint32_t i = from + threadIdx.y; c < width && i < to; i += LANES)
        sum += x[static_cast<size_t>(i) * width + c];
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    for (uint32_t half = LANES / 2; half > 0; half /= 2) {
        if (threadIdx.y < half)
            part[threadIdx.y][threadIdx.x] += part[threadIdx.y + half][threadIdx.x];
        __syncthreads();
    }
    size_t at = static_cast<size_t>(blockIdx.y) * width + c;
    if (threadIdx.y == 0 && c < width)
        out[at] = add ? out[at] + part[0][threadIdx.x] : part[0][threadIdx.x];
}

// Parts of at least 64 examples, enough to fill the grid; 1 if the columns alone do.
static uint32_t parts_of(uint32_t examples, uint32_t blocks)
{
    uint32_t most = DP_CUDA_SUM_BLOCKS / blocks, wanted = examples / 64;
    uint32_t parts = wanted < most ? wanted : most;
    return parts > 1 ? parts : 1;
}

static void bias_back_p(void *self, const float *dout, uint32_t examples, uint32_t width, float *dp, bool add)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    const dim3 threads(COLUMNS, LANES);
    uint32_t blocks = (width + COLUMNS - 1) / COLUMNS, parts = parts_of(examples, blocks);
    uint32_t each = examples > parts ? (examples + parts - 1) / parts : 1;
    parts = (examples + each - 1) / each; // none of them empty
    if (parts > 1) {
        DP_CUDA_LAUNCH(dp_cuda_column_sums, dim3(blocks, parts), threads, cuda->stream, dout, examples, each,
                       width, cuda->sums, false);
        dout = cuda->sums;
        examples = each = parts;
    }
    DP_CUDA_LAUNCH(dp_cuda_column_sums, blocks, threads, cuda->stream, dout, examples, each, width, dp, add);
    dp_cuda_launched(cuda, "bias, dp");
}

// NaN stays NaN.
static void relu(void *self, const float *x, size_t n, float *out)
{
    each(
        self, "relu", n, [=] __device__(size_t i) { return x[i] < 0.0f ? 0.0f : x[i]; }, out, false);
}

static void relu_back(void *self, const float *out, const float *dout, size_t n, float *dx, bool add)
{
    each(
        self, "relu, dx", n, [=] __device__(size_t i) { return out[i] > 0.0f ? dout[i] : 0.0f; }, dx, add);
}

static void sigmoid(void *self, const float *x, size_t n, float *out)
{
    each(
        self, "sigmoid", n, [=] __device__(size_t i) { return 1.0f / (1.0f + expf(-x[i])); }, out, false);
}

static void sigmoid_back(void *self, const float *out, const float *dout, size_t n, float *dx, bool add)
{
    each(
        self, "sigmoid, dx", n, [=] __device__(size_t i) { return dout[i] * (out[i] * (1.0f - out[i])); }, dx,
        add);
}

static void tanh_(void *self, const float *x, size_t n, float *out)
{
    each(
        self, "tanh", n, [=] __device__(size_t i) { return tanhf(x[i]); }, out, false);
}

static void tanh_back(void *self, const float *out, const float *dout, size_t n, float *dx, bool add)
{
    each(
        self, "tanh, dx", n, [=] __device__(size_t i) { return dout[i] * (1.0f - out[i] * out[i]); }, dx,
        add);
}

static void dropout(void *self, const float *x, size_t n, uint64_t seed, float rate, float *out, bool add)
{
    uint32_t threshold = dp_dropout_threshold(rate);
    float scale = 1.0f / (1.0f - rate);
    each(
        self, "dropout", n,
        [=] __device__(size_t i) { return dp_dropout_keeps(seed, i, threshold) ? x[i] * scale : 0.0f; }, out,
        add);
}

__global__ static void dp_cuda_columns(const float *x, struct dp_column_copy k, uint32_t examples, float *out,
                                       bool add)
{
    DP_CUDA_LOOP(at, static_cast<size_t>(examples) * k.count)
    {
        size_t i = at / k.count, c = at % k.count;
        float y = x[i * k.from_width + k.from + c], *to = out + i * k.to_width + k.to + c;
        *to = add ? *to + y : y;
    }
}

static void columns(void *self, const float *x, const struct dp_column_copy *k, uint32_t examples, float *out,
                    bool add)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    DP_CUDA_LAUNCH(dp_cuda_columns, dp_cuda_blocks(static_cast<size_t>(examples) * k->count), DP_CUDA_THREADS,
                   cuda->stream, x, *k, examples, out, add);
    dp_cuda_launched(cuda, "columns");
}

static void sum(void *self, const float *x, const float *y, size_t n, float *out)
{
    each(
        self, "add", n, [=] __device__(size_t i) { return x[i] + y[i]; }, out, false);
}

static void copy_back(void *self, const float *dout, size_t n, float *dx, bool add)
{
    if (add || dx != dout)
        each(
            self, "add, dx", n, [=] __device__(size_t i) { return dout[i]; }, dx, add);
}

static void multiply(void *self, const float *x, const float *y, size_t n, float *out)
{
    each(
        self, "multiply", n, [=] __device__(size_t i) { return x[i] * y[i]; }, out, false);
}

static void multiply_back(void *self, const float *y, const float *dout, size_t n, float *dx, bool add)
{
    each(
        self, "multiply, dx", n, [=] __device__(size_t i) { return dout[i] * y[i]; }, dx, add);
}

void dp_cuda_set_elements(struct dp_backend_ops *ops)
{
    ops->bias = bias;
    ops->bias_back_p = bias_back_p;
    ops->relu = relu;
    ops->relu_back = relu_back;
    ops->sigmoid = sigmoid;
    ops->sigmoid_back = sigmoid_back;
    ops->tanh_ = tanh_;
    ops->tanh_back = tanh_back;
    ops->dropout = dropout;
    ops->columns = columns;
    ops->sum = sum;
    ops->copy_back = copy_back;
    ops->multiply = multiply;
    ops->multiply_back = multiply_back;
}
