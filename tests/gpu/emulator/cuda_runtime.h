/* As much of CUDA as worker/compute/cuda uses, on the CPU, so that its sources run where there is no GPU: a thread of a kernel is a
 * fiber that goes on until it waits for others (a barrier of its block, a shuffle in its warp), blocks follow each other.
 * What it shows   the kernels' arithmetic and indices, barriers that not all reach, launches that are too large, and what becomes of
 *                 failures, which `emulator` brings about.
 * What not        races (one thread runs at a time), the GPU's own e^x, copies beside kernels, time.
 * The device's memory is the host's, full of 0x7f, which is a large number as a float. Not of several threads. */
#ifndef DP_TESTS_EMULATOR_CUDA_RUNTIME_H
#define DP_TESTS_EMULATOR_CUDA_RUNTIME_H

#include "tests/gpu/emulator/emulator.h"
#include "tests/gpu/emulator/errors.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>

#define __global__
#define __device__
#define __shared__ static /* blocks follow each other */
#define __launch_bounds__(...)

struct dim3 {
    unsigned x, y;
    dim3(unsigned x_ = 1, unsigned y_ = 1) : x(x_), y(y_) {}
};

#define CUDART_VERSION 13000

enum { cudaStreamNonBlocking, cudaHostRegisterDefault };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
enum cudaDeviceAttr { cudaDevAttrComputeCapabilityMajor, cudaDevAttrComputeCapabilityMinor };
typedef struct emulated_stream *cudaStream_t;
typedef struct emulated_event *cudaEvent_t;

const char *cudaGetErrorString(cudaError_t code);
const char *cudaGetErrorName(cudaError_t code);
cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaFree(void *block);
cudaError_t cudaMemGetInfo(size_t *left, size_t *all);
cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaHostRegister(void *host, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *host);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
cudaError_t cudaEventCreate(cudaEvent_t *out);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int device);

namespace emulated
{
extern dim3 grid, block, block_at, thread_at; /* of the thread that runs */
void launch(dim3 grid_, dim3 block_, const std::function<void()> &thread);
void block_barrier();
/* What the lane `from` of the warp gave; x itself where there is none. */
double shuffle(double x, unsigned from);
unsigned lane();
} // namespace emulated

#define threadIdx       emulated::thread_at
#define blockIdx        emulated::block_at
#define blockDim        emulated::block
#define gridDim         emulated::grid
#define __syncthreads() emulated::block_barrier()

template <class T> T __shfl_down_sync(unsigned, T x, unsigned by)
{
    return static_cast<T>(emulated::shuffle(static_cast<double>(x), emulated::lane() + by));
}

template <class T> T __shfl_xor_sync(unsigned, T x, unsigned with)
{
    return static_cast<T>(emulated::shuffle(static_cast<double>(x), emulated::lane() ^ with));
}

#define DP_CUDA_LAUNCH(kernel, grid_, block_, stream, ...)                                                   \
    emulated::launch(grid_, block_, [&] { kernel(__VA_ARGS__); })

#endif
