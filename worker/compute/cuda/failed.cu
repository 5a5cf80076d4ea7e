// Failures: what CUDA and cuBLAS say, for people; the first is kept.
#include "worker/compute/cuda/device.h"

static enum dp_status status_of(cudaError_t code)
{
    switch (code) {
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInvalidDevice:
        return DP_NOT_FOUND;
    case cudaErrorNoKernelImageForDevice:
        return DP_UNSUPPORTED;
    default:
        return DP_IO;
    }
}

// Errors that newer toolkits name and the oldest one does not: CUDA never gives a number to another error.
static const int contained = 226, tensor_memory_leak = 721, mps_client_terminated = 810,
                 external_device = 911;
#if CUDART_VERSION >= 13000
static_assert(contained == cudaErrorContained, "CUDA's number");
static_assert(tensor_memory_leak == cudaErrorTensorMemoryLeak, "CUDA's number");
static_assert(mps_client_terminated == cudaErrorMpsClientTerminated, "CUDA's number");
static_assert(external_device == cudaErrorExternalDevice, "CUDA's number");
#endif

// What to do, besides restarting the process, about an error after which every CUDA call returns the same
// code until the process ends. NULL: the error is not one of those.
static const char *remedy_of_fatal(cudaError_t code)
{
    switch (static_cast<int>(code)) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case tensor_memory_leak:
        return "with CUDA_LAUNCH_BLOCKING=1 the fault is seen in its own operation";
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case contained:
    case external_device:
        return "if it fails again, check the hardware: nvidia-smi -q, dmesg | grep Xid";
    case mps_client_terminated:
        return "the log of the MPS server says why it ended this client";
    default:
        return NULL;
    }
}

enum dp_status dp_cuda_fail(struct dp_error *err, cudaError_t code, const char *what)
{
    if (code == cudaSuccess)
        return DP_OK;
    const char *remedy = remedy_of_fatal(code);
    if (remedy)
        return dp_fail(err, DP_IO,
                       "CUDA, a fault on the device, seen in %s: %s (%s); no CUDA call works in this process "
                       "any more: restart it (%s)",
                       what, cudaGetErrorString(code), cudaGetErrorName(code), remedy);
    // Kernels are loaded when they are first launched: a launch can lack memory, too.
    if (code == cudaErrorMemoryAllocation)
        return dp_fail(err, DP_NOMEM,
                       "out of device memory: CUDA, %s: %s (%s); end other programs that use the device "
                       "(nvidia-smi), or use a smaller batch or model",
                       what, cudaGetErrorString(code), cudaGetErrorName(code));
    // Not DP_NOT_FOUND: the GPU is there, and it was of use until the driver was replaced under it.
    if (code == cudaErrorSystemDriverMismatch)
        return dp_fail(err, DP_IO,
                       "CUDA, %s: %s (%s): the driver's two parts, in the kernel and libcuda.so.1, have "
                       "different versions, as after an update: restart the machine",
                       what, cudaGetErrorString(code), cudaGetErrorName(code));
    return dp_fail(err, status_of(code), "CUDA, %s: %s (%s)", what, cudaGetErrorString(code),
                   cudaGetErrorName(code));
}

void dp_cuda_note(struct dp_cuda *cuda, cudaError_t code, const char *what)
{
    if (code != cudaSuccess && cuda->failed.status == DP_OK)
        (void)dp_cuda_fail(&cuda->failed, code, what);
}

// cuBLAS says no more than "not initialized" where it finds no memory for its handle.
enum dp_status dp_cuda_fail_blas(struct dp_error *err, int device, cublasStatus_t code, const char *what)
{
    size_t left = 0, all = 0;
    if (code == CUBLAS_STATUS_SUCCESS)
        return DP_OK;
    bool known = cudaMemGetInfo(&left, &all) == cudaSuccess;
    if (!known)
        (void)cudaGetLastError();
    if (code == CUBLAS_STATUS_ALLOC_FAILED ||
        (code == CUBLAS_STATUS_NOT_INITIALIZED && known && left < static_cast<size_t>(512) << 20))
        return dp_fail(err, DP_NOMEM,
                       "out of device memory: cuBLAS, %s (%s): device %d has %zu of its %zu bytes free; end "
                       "other programs that use it (nvidia-smi), or use a smaller batch or model",
                       what, cublasGetStatusString(code), device, left, all);
    bool not_here = code == CUBLAS_STATUS_NOT_SUPPORTED || code == CUBLAS_STATUS_ARCH_MISMATCH;
    return dp_fail(err, not_here ? DP_UNSUPPORTED : DP_IO, "cuBLAS, %s: %s", what,
                   cublasGetStatusString(code));
}

void dp_cuda_note_blas(struct dp_cuda *cuda, cublasStatus_t code, const char *what)
{
    if (code == CUBLAS_STATUS_SUCCESS || cuda->failed.status != DP_OK)
        return;
    // A fault of an earlier kernel is the cause of what cuBLAS only calls a failed execution.
    dp_cuda_note(cuda, cudaPeekAtLastError(), what);
    if (cuda->failed.status == DP_OK)
        (void)dp_cuda_fail_blas(&cuda->failed, cuda->device, code, what);
}

enum dp_status dp_cuda_failed(const struct dp_cuda *cuda, struct dp_error *err)
{
    if (cuda->failed.status != DP_OK)
        return dp_fail(err, cuda->failed.status, "%s", cuda->failed.text);
    return DP_OK;
}

enum dp_status dp_cuda_result(struct dp_cuda *cuda, cudaError_t code, const char *what, struct dp_error *err)
{
    if (remedy_of_fatal(code))
        dp_cuda_note(cuda, code, what);
    return dp_cuda_fail(err, code, what);
}
