// Launching kernels on the device's stream.
#ifndef DP_COMPUTE_CUDA_LAUNCH_H
#define DP_COMPUTE_CUDA_LAUNCH_H

#include "worker/compute/cuda/device.h"

// After a launch: a bad configuration, or no memory to load the kernel, shows here; a fault of the kernel
// shows at finish. Clears CUDA's error, which would otherwise count as that of the next backend's first
// launch.
static inline void dp_cuda_launched(struct dp_cuda *cuda, const char *what)
{
    dp_cuda_note(cuda, cudaGetLastError(), what);
}

// Launches a kernel on a grid of blocks; tests/gpu/emulator replaces it on machines without a GPU. Kernels
// are named dp_cuda_*, by which tests/gpu/sanitize.sh selects them.
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

#endif
