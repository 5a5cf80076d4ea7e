// Losses and their gradients: one block, sums in float64, each thread's or warp's own examples in their
// order, then pairwise.
#include "worker/compute/cuda/launch.h"

// The kernels' launch bound: with more registers than 1,024 threads can have the launch would fail.
#define THREADS 1024u

__device__ static void add_up(double mine, uint32_t examples, float *loss)
{
    __shared__ double part[THREADS];
    part[threadIdx.x] = mine;
    __syncthreads();
    for (uint32_t half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        *loss = static_cast<float>(part[0] / examples);
}

// One warp for each example.
__global__ static void __launch_bounds__(THREADS)
    dp_cuda_softmax(const float *x, const float *labels, const float *weights, uint32_t examples,
                    uint32_t width, float *loss, float *dx)
{
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    double total = 0;
    for (uint32_t i = warp; i < examples; i += THREADS / 32) {
        const float *row = x + static_cast<size_t>(i) * width;
        uint32_t label = static_cast<uint32_t>(labels[i]);
        float weight = weights ? weights[i] : 1.0f, of_each = weight / static_cast<float>(examples);
        float max = row[lane < width ? lane : 0];
        for (uint32_t c = lane; c < width; c += 32)
            max = row[c] > max ? row[c] : max;
        for (int half = 16; half > 0; half /= 2) {
            float other = __shfl_xor_sync(0xffffffffu, max, half);
            max = other > max ? other : max;
        }
        double sum = 0;
        for (uint32_t c = lane; c < width; c += 32)
            sum += static_cast<double>(expf(row[c] - max));
        for (int half = 16; half > 0; half /= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, half);
        if (lane == 0)
            total += static_cast<double>(weight) *
                     (log(sum) - (static_cast<double>(row[label]) - static_cast<double>(max)));
        float scale = of_each / static_cast<float>(sum);
        for (uint32_t c = lane; dx && c < width; c += 32)
            dx[static_cast<size_t>(i) * width + c] =
                expf(row[c] - max) * scale - (c == label ? of_each : 0.0f);
    }
    add_up(lane == 0 ? total : 0, examples, loss);
}

static void softmax_loss(void *self, const float *x, const float *labels, const float *weights,
                         uint32_t examples, uint32_t width, float *loss, float *dx)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    DP_CUDA_LAUNCH(dp_cuda_softmax, 1, THREADS, cuda->stream, x, labels, weights, examples, width, loss, dx);
    dp_cuda_launched(cuda, "softmax loss");
}

__global__ static void __launch_bounds__(THREADS)
    dp_cuda_logistic(const float *x, const float *labels, const float *weights, uint32_t examples,
                     float *loss, float *dx)
{
    double total = 0;
    for (uint32_t i = threadIdx.x; i < examples; i += THREADS) {
        double logit = static_cast<double>(x[i]), label = static_cast<double>(labels[i]),
               weight = weights ? static_cast<double>(weights[i]) : 1, e = exp(-fabs(logit));
        total += weight * ((logit > 0 ? logit : 0) + log1p(e) - label * logit);
        if (dx)
            dx[i] = static_cast<float>(weight * ((logit > 0 ? 1 / (1 + e) : e / (1 + e)) - label) / examples);
    }
    add_up(total, examples, loss);
}

static void logistic_loss(void *self, const float *x, const float *labels, const float *weights,
                          uint32_t examples, float *loss, float *dx)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    DP_CUDA_LAUNCH(dp_cuda_logistic, 1, THREADS, cuda->stream, x, labels, weights, examples, loss, dx);
    dp_cuda_launched(cuda, "logistic loss");
}

__global__ static void __launch_bounds__(THREADS)
    dp_cuda_squared(const float *x, const float *labels, const float *weights, uint32_t examples, float *loss,
                    float *dx)
{
    double total = 0;
    for (uint32_t i = threadIdx.x; i < examples; i += THREADS) {
        double off = static_cast<double>(x[i]) - static_cast<double>(labels[i]),
               weight = weights ? static_cast<double>(weights[i]) : 1;
        total += weight * off * off;
        if (dx)
            dx[i] = static_cast<float>(2 * weight * off / examples);
    }
    add_up(total, examples, loss);
}

static void squared_loss(void *self, const float *x, const float *labels, const float *weights,
                         uint32_t examples, float *loss, float *dx)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    DP_CUDA_LAUNCH(dp_cuda_squared, 1, THREADS, cuda->stream, x, labels, weights, examples, loss, dx);
    dp_cuda_launched(cuda, "squared loss");
}

__global__ static void __launch_bounds__(THREADS)
    dp_cuda_mean(const float *x, uint32_t examples, float *loss, float *dx)
{
    double total = 0;
    for (uint32_t i = threadIdx.x; i < examples; i += THREADS) {
        total += static_cast<double>(x[i]);
        if (dx)
            dx[i] = 1.0f / static_cast<float>(examples);
    }
    add_up(total, examples, loss);
}

static void mean_loss(void *self, const float *x, uint32_t examples, float *loss, float *dx)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    DP_CUDA_LAUNCH(dp_cuda_mean, 1, THREADS, cuda->stream, x, examples, loss, dx);
    dp_cuda_launched(cuda, "mean loss");
}

__global__ static void __launch_bounds__(THREADS)
    dp_cuda_bpr(const float *x, const float *y, uint32_t examples, float *loss, float *dx, float *dy)
{
    double total = 0;
    for (uint32_t i = threadIdx.x; i < examples; i += THREADS) {
        double above = static_cast<double>(x[i]) - static_cast<double>(y[i]), e = exp(-fabs(above));
        total += (above > 0 ? 0 : -above) + log1p(e);
        double wrong = above > 0 ? e / (1 + e) : 1 / (1 + e);
        if (dx)
            dx[i] = static_cast<float>(-wrong / examples);
        if (dy)
            dy[i] = static_cast<float>(wrong / examples);
    }
    add_up(total, examples, loss);
}

static void bpr_loss(void *self, const float *x, const float *y, uint32_t examples, float *loss, float *dx,
                     float *dy)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    DP_CUDA_LAUNCH(dp_cuda_bpr, 1, THREADS, cuda->stream, x, y, examples, loss, dx, dy);
    dp_cuda_launched(cuda, "bpr loss");
}

void dp_cuda_set_losses(struct dp_backend_ops *ops)
{
    ops->softmax_loss = softmax_loss;
    ops->logistic_loss = logistic_loss;
    ops->squared_loss = squared_loss;
    ops->mean_loss = mean_loss;
    ops->bpr_loss = bpr_loss;
}
