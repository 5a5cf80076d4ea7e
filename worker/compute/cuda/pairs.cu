// Products of vectors: row by row, of all pairs in a row, and of a row with rows of a sparse parameter.
#include "worker/compute/cuda/launch.h"

__device__ static float add_lanes(float x)
{
    for (int half = 16; half > 0; half /= 2)
        x += __shfl_down_sync(0xffffffffu, x, half);
    return x;
}

// A warp an example.
__global__ static void dp_cuda_dot(const float *x, const float *y, uint32_t examples, uint32_t width,
                                   float *out)
{
    uint32_t lane = threadIdx.x % 32, warps = gridDim.x * blockDim.x / 32;
    for (uint32_t i = (blockIdx.x * blockDim.x + threadIdx.x) / 32; i < examples; i += warps) {
        float total = 0;
        for (uint32_t c = lane; c < width; c += 32)
            total += x[static_cast<size_t>(i) * width + c] * y[static_cast<size_t>(i) * width + c];
        total = add_lanes(total);
        if (lane == 0)
            out[i] = total;
    }
}

static void dot(void *self, const float *x, const float *y, uint32_t examples, uint32_t width, float *out)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    DP_CUDA_LAUNCH(dp_cuda_dot, dp_cuda_blocks(static_cast<size_t>(examples) * 32), DP_CUDA_THREADS,
                   cuda->stream, x, y, examples, width, out);
    dp_cuda_launched(cuda, "dot");
}

__global__ static void dp_cuda_dot_back(const float *y, const float *dout, uint32_t examples, uint32_t width,
                                        float *dx, bool add)
{
    DP_CUDA_LOOP(at, static_cast<size_t>(examples) * width)
    {
        float d = dout[at / width] * y[at];
        dx[at] = add ? dx[at] + d : d;
    }
}

static void dot_back(void *self, const float *y, const float *dout, uint32_t examples, uint32_t width,
                     float *dx, bool add)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    DP_CUDA_LAUNCH(dp_cuda_dot_back, dp_cuda_blocks(static_cast<size_t>(examples) * width), DP_CUDA_THREADS,
                   cuda->stream, y, dout, examples, width, dx, add);
    dp_cuda_launched(cuda, "dot, dx");
}

// A warp an example, which takes its entries in their order.
__global__ static void dp_cuda_near(struct dp_entries e, const float *x, const float *p, uint32_t width,
                                    float *saved, float *out)
{
    uint32_t lane = threadIdx.x % 32, warps = gridDim.x * blockDim.x / 32;
    for (uint32_t i = (blockIdx.x * blockDim.x + threadIdx.x) / 32; i < e.examples; i += warps) {
        double sum = 0;
        for (uint32_t j = e.offsets[i]; j < e.offsets[i + 1]; j++) {
            float dot = 0, value = e.values[j];
            for (uint32_t c = lane; c < width; c += 32)
                dot += x[static_cast<size_t>(i) * width + c] * p[static_cast<size_t>(e.slots[j]) * width + c];
            dot = add_lanes(dot);
            float low = expf(-fabsf(dot)), wrong = value > 0 ? -dot : dot;
            if (lane != 0)
                continue;
            sum += static_cast<double>(fabsf(value) * ((wrong > 0 ? wrong : 0.0f) + log1pf(low)));
            saved[j] = (wrong > 0 ? value : value * low) / -(1.0f + low);
        }
        if (lane == 0)
            out[i] = static_cast<float>(sum);
    }
}

static void near(void *self, const struct dp_entries *e, const float *x, const float *p, uint32_t width,
                 float *saved, float *out)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    DP_CUDA_LAUNCH(dp_cuda_near, dp_cuda_blocks(static_cast<size_t>(e->examples) * 32), DP_CUDA_THREADS,
                   cuda->stream, *e, x, p, width, saved, out);
    dp_cuda_launched(cuda, "near");
}

__global__ static void dp_cuda_near_back_x(struct dp_entries e, const float *p, const float *saved,
                                           const float *dout, uint32_t width, float *dx, bool add)
{
    DP_CUDA_LOOP(at, static_cast<size_t>(e.examples) * width)
    {
        uint32_t i = static_cast<uint32_t>(at / width), c = static_cast<uint32_t>(at % width);
        float sum = 0;
        for (uint32_t j = e.offsets[i]; j < e.offsets[i + 1]; j++)
            sum += saved[j] * dout[i] * p[static_cast<size_t>(e.slots[j]) * width + c];
        dx[at] = add ? dx[at] + sum : sum;
    }
}

static void near_back_x(void *self, const struct dp_entries *e, const float *p, const float *saved,
                        const float *dout, uint32_t width, float *dx, bool add)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    DP_CUDA_LAUNCH(dp_cuda_near_back_x, dp_cuda_blocks(static_cast<size_t>(e->examples) * width),
                   DP_CUDA_THREADS, cuda->stream, *e, p, saved, dout, width, dx, add);
    dp_cuda_launched(cuda, "near, dx");
}

// Number of the pair (a, b), a < b, in the order (0,1), (0,2), ..., (1,2), ...
__device__ static uint32_t pair_of(uint32_t a, uint32_t b, uint32_t vectors)
{
    return a * (2 * vectors - a - 1) / 2 + b - a - 1;
}

// One block for each example. A warp takes row a and all b > a, which avoids divisions of indices.
__global__ static void dp_cuda_pairs(const float *x, uint32_t examples, uint32_t vectors, uint32_t width,
                                     float *out)
{
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    size_t pairs = static_cast<size_t>(vectors) * (vectors - 1) / 2;
    for (uint32_t i = blockIdx.x; i < examples; i += gridDim.x) {
        const float *row = x + static_cast<size_t>(i) * vectors * width;
        for (uint32_t a = warp; a < vectors; a += warps)
            for (uint32_t b = a + 1; b < vectors; b++) {
                float total = 0;
                for (uint32_t c = lane; c < width; c += 32)
                    total +=
                        row[static_cast<size_t>(a) * width + c] * row[static_cast<size_t>(b) * width + c];
                total = add_lanes(total);
                if (lane == 0)
                    out[i * pairs + pair_of(a, b, vectors)] = total;
            }
    }
}

static unsigned blocks_of(uint32_t examples)
{
    return examples < 65536 ? examples : 65536;
}

static void pairs(void *self, const float *x, uint32_t examples, uint32_t vectors, uint32_t width, float *out)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    DP_CUDA_LAUNCH(dp_cuda_pairs, blocks_of(examples), DP_CUDA_THREADS, cuda->stream, x, examples, vectors,
                   width, out);
    dp_cuda_launched(cuda, "pairs");
}

// One thread for each element: dx[a][c] sums the other vectors' column c, in their order.
__global__ static void dp_cuda_pairs_back(const float *x, const float *dout, uint32_t examples,
                                          uint32_t vectors, uint32_t width, float *dx, bool add)
{
    size_t each = static_cast<size_t>(vectors) * width,
           pairs = static_cast<size_t>(vectors) * (vectors - 1) / 2;
    DP_CUDA_LOOP(at, examples * each)
    {
        size_t i = at / each;
        uint32_t a = static_cast<uint32_t>(at % each / width), c = static_cast<uint32_t>(at % width);
        const float *row = x + i * each, *d = dout + i * pairs;
        float sum = 0;
        for (uint32_t b = 0; b < a; b++)
            sum += d[pair_of(b, a, vectors)] * row[static_cast<size_t>(b) * width + c];
        for (uint32_t b = a + 1; b < vectors; b++)
            sum += d[pair_of(a, b, vectors)] * row[static_cast<size_t>(b) * width + c];
        dx[at] = add ? dx[at] + sum : sum;
    }
}

static void pairs_back(void *self, const float *x, const float *dout, uint32_t examples, uint32_t vectors,
                       uint32_t width, float *dx, bool add)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    DP_CUDA_LAUNCH(dp_cuda_pairs_back, dp_cuda_blocks(static_cast<size_t>(examples) * vectors * width),
                   DP_CUDA_THREADS, cuda->stream, x, dout, examples, vectors, width, dx, add);
    dp_cuda_launched(cuda, "pairs, dx");
}

void dp_cuda_set_pairs(struct dp_backend_ops *ops)
{
    ops->dot = dot;
    ops->dot_back = dot_back;
    ops->pairs = pairs;
    ops->pairs_back = pairs_back;
    ops->near = near;
    ops->near_back_x = near_back_x;
}
