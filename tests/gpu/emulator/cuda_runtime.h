/* As much of CUDA as worker/compute/cuda uses, on the CPU, so that its sources run where there is no GPU.
 * Streams   Each is a queue (streams.cpp). Work runs when something forces it, with what it waits for and no more, or earlier, as
 *           emulator.order decides: what no event orders gives wrong bits, the same ones in each run.
 * Kernels   A thread is a fiber that goes on until it waits for others (a barrier of its block, a shuffle in its warp); blocks
 *           follow each other (fibers.cpp).
 * What it shows   the kernels' arithmetic and indices, barriers that not all reach, shuffles by lanes that the mask does not name,
 *                 launches that are too large, missing orders between streams, memory that is freed or unpinned while queued work names
 *                 it, copies beside the device's memory, and what becomes of failures, which `emulator` brings about.
 * What not        races inside a kernel (one thread runs at a time), the GPU's own e^x, kernels beside each other, time.
 * The device's memory is the host's, full of 0x7f, which is a large number as a float. Not of several threads. */
#ifndef DP_TESTS_GPU_EMULATOR_CUDA_RUNTIME_H
#define DP_TESTS_GPU_EMULATOR_CUDA_RUNTIME_H

#include "tests/gpu/emulator/emulator.h"
#include "tests/gpu/emulator/errors.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#define __global__
#define __device__
#define __shared__ static /* blocks follow each other */
#define __launch_bounds__(...)

struct dim3 {
    unsigned x, y;
    dim3(unsigned x_ = 1, unsigned y_ = 1) : x(x_), y(y_) {}
};

#define CUDART_VERSION 13000

enum { cudaHostRegisterDefault = 0, cudaStreamNonBlocking = 1 };
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
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int device);

namespace emulated
{
typedef std::vector<uintptr_t> words;

extern dim3 grid, block, block_at, thread_at; /* of the thread that runs */
void launch(dim3 grid_, dim3 block_, cudaStream_t stream, std::function<void()> thread, const words &names);
void block_barrier();
/* What the lane `from` of the warp gave; x itself where there is none, NaN where the mask does not name it. */
double shuffle(unsigned mask, double x, unsigned from);
unsigned lane();

/* The aligned words of an argument: pointers in it are among them. */
template <class T> void add_words(words *names, const T &argument)
{
    for (size_t at = 0; at + sizeof(uintptr_t) <= sizeof argument; at += sizeof(uintptr_t)) {
        uintptr_t word;
        std::memcpy(&word, reinterpret_cast<const char *>(&argument) + at, sizeof word);
        names->push_back(word);
    }
}

/* Arguments are taken when the launch is issued, as on a device. */
template <class Kernel, class... Arguments>
void launch_with(dim3 grid_, dim3 block_, cudaStream_t stream, Kernel kernel, Arguments... arguments)
{
    words names;
    (add_words(&names, arguments), ...);
    launch(
        grid_, block_, stream, [=] { kernel(arguments...); }, names);
}
} // namespace emulated

#define threadIdx       emulated::thread_at
#define blockIdx        emulated::block_at
#define blockDim        emulated::block
#define gridDim         emulated::grid
#define __syncthreads() emulated::block_barrier()

template <class T> T __shfl_down_sync(unsigned mask, T x, unsigned by)
{
    return static_cast<T>(emulated::shuffle(mask, static_cast<double>(x), emulated::lane() + by));
}

template <class T> T __shfl_xor_sync(unsigned mask, T x, unsigned with)
{
    return static_cast<T>(emulated::shuffle(mask, static_cast<double>(x), emulated::lane() ^ with));
}

/* In a lambda, so that a template is given its arguments' types. */
#define DP_CUDA_LAUNCH(kernel, grid_, block_, stream, ...)                                                   \
    emulated::launch_with(                                                                                   \
        grid_, block_, stream, [](auto... arguments) { kernel(arguments...); }, __VA_ARGS__)

#endif
