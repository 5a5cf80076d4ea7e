// Rows of sparse parameters. Backward, a slot's entries are summed by its own threads in one fixed order: few
// entries by one thread a column, many by a whole block whose partial sums are added pairwise.
#include "worker/compute/cuda/launch.h"

#define FEW         32u  // entries
#define SUM_THREADS 512u // of a slot with many
#define SUM_COLUMNS 32u  // at most

__device__ static float share(const struct dp_entries &e, uint32_t i, bool mean)
{
    uint32_t count = e.offsets[i + 1] - e.offsets[i];
    return mean && count > 0 ? 1.0f / static_cast<float>(count) : 1.0f;
}

__global__ static void dp_cuda_gather_sum(struct dp_entries e, const float *p, uint32_t width, bool mean,
                                          float *out)
{
    DP_CUDA_LOOP(at, static_cast<size_t>(e.examples) * width)
    {
        uint32_t i = static_cast<uint32_t>(at / width), c = static_cast<uint32_t>(at % width);
        float sum = 0;
        for (uint32_t j = e.offsets[i]; j < e.offsets[i + 1]; j++)
            sum += e.values[j] * p[static_cast<size_t>(e.slots[j]) * width + c];
        out[at] = sum * share(e, i, mean);
    }
}

static void gather_sum(void *self, const struct dp_entries *e, const float *p, uint32_t width, bool mean,
                       float *out)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    DP_CUDA_LAUNCH(dp_cuda_gather_sum, dp_cuda_blocks(static_cast<size_t>(e->examples) * width),
                   DP_CUDA_THREADS, cuda->stream, *e, p, width, mean, out);
    dp_cuda_launched(cuda, "gather_sum");
}

// The contribution of an entry to column c of its slot's gradient.
struct of_sum {
    const float *dout;
    uint32_t width;
    bool mean;
    __device__ float operator()(const struct dp_entries &e, uint32_t j, uint32_t c) const
    {
        uint32_t i = e.example_of[j];
        return e.values[j] * share(e, i, mean) * dout[static_cast<size_t>(i) * width + c];
    }
};

struct of_sequence {
    const float *dout;
    uint32_t width;
    __device__ float operator()(const struct dp_entries &e, uint32_t j, uint32_t c) const
    {
        return e.values[j] * dout[static_cast<size_t>(j) * width + c];
    }
};

struct of_near {
    const float *x, *saved, *dout;
    uint32_t width;
    __device__ float operator()(const struct dp_entries &e, uint32_t j, uint32_t c) const
    {
        uint32_t i = e.example_of[j];
        return saved[j] * dout[i] * x[static_cast<size_t>(i) * width + c];
    }
};

struct of_interactions {
    const float *p, *sums, *dout;
    uint32_t width;
    __device__ float operator()(const struct dp_entries &e, uint32_t j, uint32_t c) const
    {
        uint32_t i = e.example_of[j];
        float value = e.values[j], row = p[static_cast<size_t>(e.slots[j]) * width + c];
        return dout[i] * value * (sums[static_cast<size_t>(i) * width + c] - value * row);
    }
};

template <class Each>
__global__ static void dp_cuda_few_entries(struct dp_entries e, uint32_t width, Each each, float *dp,
                                           bool add)
{
    DP_CUDA_LOOP(at, static_cast<size_t>(e.distinct) * width)
    {
        uint32_t s = static_cast<uint32_t>(at / width), c = static_cast<uint32_t>(at % width);
        uint32_t from = e.slot_offsets[s], to = e.slot_offsets[s + 1];
        if (to - from > FEW)
            continue;
        float sum = 0;
        for (uint32_t k = from; k < to; k++)
            sum += each(e, e.by_slot[k], c);
        dp[at] = add ? dp[at] + sum : sum;
    }
}

// A block has as many columns as the rows, up to 32, and the rest of its threads are lanes, which sum entries
// in turns, so that a slot of most examples (a bias, a default) keeps all threads busy also in rows of width
// 1.
template <class Each>
__global__ static void __launch_bounds__(SUM_THREADS)
    dp_cuda_many_entries(struct dp_entries e, uint32_t width, Each each, float *dp, bool add)
{
    __shared__ float part[SUM_THREADS];
    uint32_t columns = blockDim.x, lanes = blockDim.y, me = threadIdx.y * columns + threadIdx.x;
    for (uint32_t s = blockIdx.x; s < e.distinct; s += gridDim.x) {
        uint32_t from = e.slot_offsets[s], to = e.slot_offsets[s + 1];
        if (to - from <= FEW)
            continue; // of the whole block
        for (uint32_t first = 0; first < width; first += columns) {
            uint32_t c = first + threadIdx.x;
            float sum = 0;
            for (uint32_t k = from + threadIdx.y; c < width && k < to; k += lanes)
                sum += each(e, e.by_slot[k], c);
            part[me] = sum;
            __syncthreads();
            for (uint32_t half = lanes / 2; half > 0; half /= 2) {
                if (threadIdx.y < half)
                    part[me] += part[me + half * columns];
                __syncthreads();
            }
            size_t at = static_cast<size_t>(s) * width + c;
            if (threadIdx.y == 0 && c < width)
                dp[at] = add ? dp[at] + part[threadIdx.x] : part[threadIdx.x];
            __syncthreads();
        }
    }
}

template <class Each>
static void sum_by_slot(void *self, const char *what, const struct dp_entries *e, uint32_t width, Each each,
                        float *dp, bool add)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    uint32_t columns = 1;
    if (e->distinct == 0)
        return;
    while (columns < width && columns < SUM_COLUMNS)
        columns *= 2;
    DP_CUDA_LAUNCH(dp_cuda_few_entries, dp_cuda_blocks(static_cast<size_t>(e->distinct) * width),
                   DP_CUDA_THREADS, cuda->stream, *e, width, each, dp, add);
    DP_CUDA_LAUNCH(dp_cuda_many_entries, e->distinct < 4096 ? e->distinct : 4096,
                   dim3(columns, SUM_THREADS / columns), cuda->stream, *e, width, each, dp, add);
    dp_cuda_launched(cuda, what);
}

static void gather_sum_back(void *self, const struct dp_entries *e, const float *dout, uint32_t width,
                            bool mean, float *dp, bool add)
{
    sum_by_slot(self, "gather_sum, dp", e, width, of_sum{dout, width, mean}, dp, add);
}

static void near_back_p(void *self, const struct dp_entries *e, const float *x, const float *saved,
                        const float *dout, uint32_t width, float *dp, bool add)
{
    sum_by_slot(self, "near, dp", e, width, of_near{x, saved, dout, width}, dp, add);
}

__global__ static void dp_cuda_gather(struct dp_entries e, const float *p, uint32_t width, float *out)
{
    DP_CUDA_LOOP(at, static_cast<size_t>(e.count) * width)
    {
        size_t j = at / width, c = at % width;
        out[at] = e.values[j] * p[static_cast<size_t>(e.slots[j]) * width + c];
    }
}

static void gather(void *self, const struct dp_entries *e, const float *p, uint32_t width, float *out)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    DP_CUDA_LAUNCH(dp_cuda_gather, dp_cuda_blocks(static_cast<size_t>(e->count) * width), DP_CUDA_THREADS,
                   cuda->stream, *e, p, width, out);
    dp_cuda_launched(cuda, "gather");
}

static void gather_back(void *self, const struct dp_entries *e, const float *dout, uint32_t width, float *dp,
                        bool add)
{
    sum_by_slot(self, "gather, dp", e, width, of_sequence{dout, width}, dp, add);
}

// One warp for each example: each lane sums its columns, then the lanes' parts are added pairwise.
__global__ static void dp_cuda_interactions(struct dp_entries e, const float *p, uint32_t width, float *sums,
                                            float *out)
{
    uint32_t lane = threadIdx.x % 32, warps = gridDim.x * blockDim.x / 32;
    for (uint32_t i = (blockIdx.x * blockDim.x + threadIdx.x) / 32; i < e.examples; i += warps) {
        float total = 0;
        for (uint32_t c = lane; c < width; c += 32) {
            float sum = 0, squares = 0;
            for (uint32_t j = e.offsets[i]; j < e.offsets[i + 1]; j++) {
                float r = e.values[j] * p[static_cast<size_t>(e.slots[j]) * width + c];
                sum += r;
                squares += r * r;
            }
            sums[static_cast<size_t>(i) * width + c] = sum;
            total += sum * sum - squares;
        }
        for (int half = 16; half > 0; half /= 2)
            total += __shfl_down_sync(0xffffffffu, total, half);
        if (lane == 0)
            out[i] = 0.5f * total;
    }
}

static void interactions(void *self, const struct dp_entries *e, const float *p, uint32_t width, float *sums,
                         float *out)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    DP_CUDA_LAUNCH(dp_cuda_interactions, dp_cuda_blocks(static_cast<size_t>(e->examples) * 32),
                   DP_CUDA_THREADS, cuda->stream, *e, p, width, sums, out);
    dp_cuda_launched(cuda, "interactions");
}

static void interactions_back(void *self, const struct dp_entries *e, const float *p, const float *sums,
                              const float *dout, uint32_t width, float *dp, bool add)
{
    sum_by_slot(self, "interactions, dp", e, width, of_interactions{p, sums, dout, width}, dp, add);
}

void dp_cuda_set_rows(struct dp_backend_ops *ops)
{
    ops->gather_sum = gather_sum;
    ops->gather_sum_back = gather_sum_back;
    ops->gather = gather;
    ops->gather_back = gather_back;
    ops->interactions = interactions;
    ops->interactions_back = interactions_back;
    ops->near_back_p = near_back_p;
}
