// The device's memory, pinned memory, copies.
#include "worker/compute/cuda/device.h"

static void release(void *self, void *block)
{
    if (!dp_cuda_of(self)->lost) // cudaFree waits for all that is under way
        (void)cudaFree(block);
}

static enum dp_status alloc(void *self, size_t bytes, void **out, struct dp_error *err)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    size_t left = 0, all = 0;
    *out = NULL;
    if (cuda->failed.status != DP_OK)
        return dp_cuda_failed(cuda, err);
    cudaError_t code = cudaMalloc(out, bytes > 0 ? bytes : 1);
    if (code == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        (void)cudaMemGetInfo(&left, &all);
        return dp_fail(
            err, DP_NOMEM,
            "out of device memory: device %d has no %zu bytes: %zu of its %zu are free; a smaller batch or "
            "model needs less",
            cuda->device, bytes, left, all);
    }
    if (code != cudaSuccess) {
        *out = NULL;
        return dp_cuda_result(cuda, code, "memory", err);
    }
    return DP_OK;
}

static enum dp_status pin(void *self, void *host, size_t bytes, struct dp_error *err)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    if (cuda->failed.status != DP_OK)
        return dp_cuda_failed(cuda, err);
    cudaError_t code = bytes > 0 ? cudaHostRegister(host, bytes, cudaHostRegisterDefault) : cudaSuccess;
    if (code != cudaSuccess) /* pinning is optional; clears the error, which the next kernel would report */
        (void)cudaGetLastError();
    if (code == cudaErrorHostMemoryAlreadyRegistered)
        code = cudaSuccess;
    if (code == cudaErrorMemoryAllocation) // of the host, not of the device
        return dp_fail(err, DP_NOMEM, "CUDA, pinning %zu bytes of host memory: %s (%s)", bytes,
                       cudaGetErrorString(code), cudaGetErrorName(code));
    return dp_cuda_result(cuda, code, "pinning host memory", err);
}

static bool unpin(void *self, void *host)
{
    if (dp_cuda_of(self)->lost)
        return false;
    if (cudaHostUnregister(host) != cudaSuccess)
        (void)cudaGetLastError();
    return true;
}

static enum dp_status copy_in(void *self, void *device, const void *host, size_t bytes, struct dp_error *err)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    if (cuda->failed.status != DP_OK)
        return dp_cuda_failed(cuda, err);
    return dp_cuda_result(cuda, cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, cuda->in),
                          "copy to the device", err);
}

static enum dp_status copy_out(void *self, void *host, const void *device, size_t bytes, struct dp_error *err)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    if (cuda->failed.status != DP_OK)
        return dp_cuda_failed(cuda, err);
    return dp_cuda_result(cuda, cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, cuda->out),
                          "copy from the device", err);
}

static enum dp_status zero(void *self, void *block, size_t bytes, struct dp_error *err)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    if (cuda->failed.status != DP_OK)
        return dp_cuda_failed(cuda, err);
    return dp_cuda_result(cuda, cudaMemsetAsync(block, 0, bytes, cuda->stream), "zeroing memory", err);
}

void dp_cuda_set_memory(struct dp_backend_ops *ops)
{
    ops->alloc = alloc;
    ops->release = release;
    ops->pin = pin;
    ops->unpin = unpin;
    ops->copy_in = copy_in;
    ops->copy_out = copy_out;
    ops->zero = zero;
}
