// The device: opened and closed, memory, copies, failures.
#include "worker/compute/cuda/device.h"

#include <stdlib.h>

#define WORKSPACE_BYTES ((size_t)32 << 20)

static enum dp_status status_of(cudaError_t code)
{
    switch (code) {
    case cudaSuccess:
        return DP_OK;
    case cudaErrorMemoryAllocation:
        return DP_NOMEM;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInvalidDevice:
    case cudaErrorSystemDriverMismatch:
        return DP_NOT_FOUND;
    default:
        return DP_IO;
    }
}

static enum dp_status fail(struct dp_error *err, cudaError_t code, const char *what)
{
    if (code == cudaSuccess)
        return DP_OK;
    return dp_fail(err, status_of(code), "CUDA, %s: %s (%s)", what, cudaGetErrorString(code),
                   cudaGetErrorName(code));
}

void dp_cuda_note(struct dp_cuda *cuda, cudaError_t code, const char *what)
{
    if (code != cudaSuccess && cuda->failed.status == DP_OK)
        (void)fail(&cuda->failed, code, what);
}

static enum dp_status alloc(void *self, size_t bytes, void **out, struct dp_error *err)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    size_t left = 0, all = 0;
    *out = NULL;
    cudaError_t code = cudaMalloc(out, bytes > 0 ? bytes : 1);
    if (code == cudaErrorMemoryAllocation && cudaMemGetInfo(&left, &all) == cudaSuccess) {
        (void)cudaGetLastError();
        return dp_fail(
            err, DP_NOMEM,
            "device %d has no %zu bytes: %zu of its %zu are free; a smaller batch or model needs less",
            cuda->device, bytes, left, all);
    }
    if (code == cudaSuccess)
        code = cudaMemsetAsync(*out, 0, bytes, cuda->stream);
    if (code == cudaSuccess)
        code = cudaStreamSynchronize(cuda->stream);
    if (code != cudaSuccess) {
        (void)cudaFree(*out);
        *out = NULL;
    }
    return fail(err, code, "memory");
}

static void release(void *self, void *block)
{
    (void)self;
    (void)cudaFree(block);
}

static enum dp_status pin(void *self, void *host, size_t bytes, struct dp_error *err)
{
    (void)self;
    cudaError_t code = bytes > 0 ? cudaHostRegister(host, bytes, cudaHostRegisterDefault) : cudaSuccess;
    if (code != cudaSuccess) /* it would be taken for that of the next kernel: pinning is only a help */
        (void)cudaGetLastError();
    if (code == cudaErrorHostMemoryAlreadyRegistered)
        code = cudaSuccess;
    return fail(err, code, "pinning host memory");
}

static void unpin(void *self, void *host)
{
    (void)self;
    if (cudaHostUnregister(host) != cudaSuccess)
        (void)cudaGetLastError();
}

static enum dp_status copy_in(void *self, void *device, const void *host, size_t bytes, struct dp_error *err)
{
    return fail(err, cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, dp_cuda_of(self)->in),
                "copy to the device");
}

static enum dp_status copy_out(void *self, void *host, const void *device, size_t bytes, struct dp_error *err)
{
    return fail(err, cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, dp_cuda_of(self)->out),
                "copy from the device");
}

static enum dp_status zero(void *self, void *block, size_t bytes, struct dp_error *err)
{
    return fail(err, cudaMemsetAsync(block, 0, bytes, dp_cuda_of(self)->stream), "zeroing memory");
}

static enum dp_status failed(const struct dp_cuda *cuda, struct dp_error *err)
{
    if (cuda->failed.status != DP_OK)
        return dp_fail(err, cuda->failed.status, "%s", cuda->failed.text);
    return DP_OK;
}

static enum dp_status finish(void *self, struct dp_error *err)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    dp_cuda_note(cuda, cudaStreamSynchronize(cuda->in), "a copy to the device");
    dp_cuda_note(cuda, cudaStreamSynchronize(cuda->stream), "a kernel");
    dp_cuda_note(cuda, cudaStreamSynchronize(cuda->out), "a copy from the device");
    return failed(cuda, err);
}

// `after` was reached on `from`; what is issued to `to` from here on waits for it, and `begun` is when it begins.
static void then(struct dp_cuda *cuda, cudaStream_t from, cudaEvent_t after, cudaStream_t to,
                 cudaEvent_t begun)
{
    dp_cuda_note(cuda, cudaEventRecord(after, from), "marking a step");
    dp_cuda_note(cuda, cudaStreamWaitEvent(to, after, 0), "ordering a step");
    dp_cuda_note(cuda, cudaEventRecord(begun, to), "marking a step");
}

static void mark(void *self, enum dp_stage stage, uint32_t number)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    struct dp_cuda_slot *slot = &cuda->slot[number];
    if (stage == DP_STAGE_IN)
        dp_cuda_note(cuda, cudaEventRecord(slot->in_begun, cuda->in), "marking a step");
    else if (stage == DP_STAGE_COMPUTE)
        then(cuda, cuda->in, slot->in_done, cuda->stream, slot->compute_begun);
    else if (stage == DP_STAGE_OUT)
        then(cuda, cuda->stream, slot->compute_done, cuda->out, slot->out_begun);
    else
        dp_cuda_note(cuda, cudaEventRecord(slot->out_done, cuda->out), "marking a step");
}

static bool done(void *self, uint32_t slot)
{
    if (cudaEventQuery(dp_cuda_of(self)->slot[slot].out_done) != cudaErrorNotReady)
        return true;
    (void)cudaGetLastError(); // it would be taken for the next kernel's
    return false;
}

static double seconds(struct dp_cuda *cuda, cudaEvent_t from, cudaEvent_t to)
{
    float ms = 0;
    dp_cuda_note(cuda, cudaEventElapsedTime(&ms, from, to), "timing a step");
    return static_cast<double>(ms) / 1e3;
}

static enum dp_status wait(void *self, uint32_t number, struct dp_device_times *times, struct dp_error *err)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    struct dp_cuda_slot *slot = &cuda->slot[number];
    dp_cuda_note(cuda, cudaEventSynchronize(slot->out_done), "a kernel or copy");
    if (cuda->failed.status == DP_OK) {
        times->copy_in = seconds(cuda, slot->in_begun, slot->in_done);
        times->compute = seconds(cuda, slot->compute_begun, slot->compute_done);
        times->copy_out = seconds(cuda, slot->out_begun, slot->out_done);
    }
    return failed(cuda, err);
}

static cudaEvent_t *event_of(struct dp_cuda_slot *slot, int i)
{
    cudaEvent_t *const events[] = {&slot->in_begun,     &slot->in_done,   &slot->compute_begun,
                                   &slot->compute_done, &slot->out_begun, &slot->out_done};
    return events[i];
}
#define EVENTS 6

static void close_device(void *self)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    if (cuda->blas)
        (void)cublasDestroy(cuda->blas);
    for (unsigned s = 0; s < DP_BACKEND_SLOTS; s++)
        for (int i = 0; i < EVENTS; i++)
            if (*event_of(&cuda->slot[s], i))
                (void)cudaEventDestroy(*event_of(&cuda->slot[s], i));
    const cudaStream_t streams[] = {cuda->stream, cuda->in, cuda->out};
    for (cudaStream_t stream : streams)
        if (stream)
            (void)cudaStreamDestroy(stream);
    (void)cudaFree(cuda->workspace);
    free(cuda);
}

void dp_cuda_set_memory(struct dp_backend_ops *ops)
{
    ops->name = "cuda";
    ops->wants_by_slot = true;
    ops->close = close_device;
    ops->alloc = alloc;
    ops->release = release;
    ops->pin = pin;
    ops->unpin = unpin;
    ops->copy_in = copy_in;
    ops->copy_out = copy_out;
    ops->zero = zero;
    ops->finish = finish;
    ops->mark = mark;
    ops->done = done;
    ops->wait = wait;
}

// CUDA's words for these are of versions and of nothing else.
static enum dp_status count_devices(int *devices, struct dp_error *err)
{
    int driver = 0, runtime = 0;
    cudaError_t code = cudaGetDeviceCount(devices);
    if (code == cudaErrorNoDevice || (code == cudaSuccess && *devices == 0))
        return dp_fail(err, DP_NOT_FOUND,
                       "the NVIDIA driver sees no GPU on this machine (CUDA_VISIBLE_DEVICES hides some?)");
    if (code != cudaErrorInsufficientDriver)
        return fail(err, code, "looking for a device");
    (void)cudaGetLastError();
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return dp_fail(err, DP_NOT_FOUND, "this machine has no NVIDIA driver (libcuda.so.1)");
    (void)cudaRuntimeGetVersion(&runtime);
    return dp_fail(err, DP_NOT_FOUND,
                   "the NVIDIA driver is for CUDA %d.%d, this program wants %d.%d: a newer driver",
                   driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
}

static enum dp_status check_device(const struct dp_cuda_options *options, struct dp_error *err)
{
    int devices = 0, major = 0, minor = 0;
    enum dp_status st = count_devices(&devices, err);
    if (st != DP_OK)
        return st;
    if (options->device < 0 || options->device >= devices)
        return dp_fail(err, DP_NOT_FOUND, "there is no CUDA device %d: this machine has %d", options->device,
                       devices);
    cudaError_t code = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, options->device);
    if (code == cudaSuccess)
        code = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, options->device);
    if (code != cudaSuccess)
        return fail(err, code, "asking what the device can do");
    if (major < 8 && options->precision == DP_PRECISION_BF16)
        return dp_fail(err, DP_UNSUPPORTED,
                       "CUDA device %d has no bf16: its compute capability is %d.%d, bf16 came with 8.0",
                       options->device, major, minor);
    if (major < 8)
        return dp_fail(err, DP_UNSUPPORTED,
                       "CUDA device %d has compute capability %d.%d; this program is built for 8.0 and later "
                       "(which TF32 and bf16 need too)",
                       options->device, major, minor);
    return DP_OK;
}

static enum dp_status start(struct dp_cuda *cuda, const struct dp_cuda_options *options, struct dp_error *err)
{
    static const cublasComputeType_t computes[] = {CUBLAS_COMPUTE_32F_PEDANTIC, CUBLAS_COMPUTE_32F_FAST_TF32,
                                                   CUBLAS_COMPUTE_32F_FAST_16BF};
    cuda->device = options->device;
    cuda->compute = computes[options->precision];
    cudaError_t code = cudaSetDevice(options->device);
    if (code == cudaSuccess)
        code = cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking);
    if (code == cudaSuccess)
        code = cudaStreamCreateWithFlags(&cuda->in, cudaStreamNonBlocking);
    if (code == cudaSuccess)
        code = cudaStreamCreateWithFlags(&cuda->out, cudaStreamNonBlocking);
    for (unsigned s = 0; s < DP_BACKEND_SLOTS; s++)
        for (int i = 0; i < EVENTS && code == cudaSuccess; i++)
            code = cudaEventCreate(event_of(&cuda->slot[s], i));
    if (code == cudaSuccess)
        code = cudaMalloc(&cuda->workspace, WORKSPACE_BYTES);
    if (code != cudaSuccess)
        return fail(err, code, "opening the device");
    cublasStatus_t blas = cublasCreate(&cuda->blas);
    if (blas == CUBLAS_STATUS_SUCCESS)
        blas = cublasSetStream(cuda->blas, cuda->stream);
    // One workspace of our own: equal bits from run to run.
    if (blas == CUBLAS_STATUS_SUCCESS)
        blas = cublasSetWorkspace(cuda->blas, cuda->workspace, WORKSPACE_BYTES);
    if (blas != CUBLAS_STATUS_SUCCESS)
        return dp_fail(err, DP_IO, "cuBLAS could not be opened: %s", cublasGetStatusString(blas));
    return DP_OK;
}

extern "C" enum dp_status dp_cuda_open(const struct dp_cuda_options *options, struct dp_backend *out,
                                       struct dp_error *err)
{
    *out = {};
    enum dp_status st = check_device(options, err);
    if (st != DP_OK)
        return st;
    struct dp_cuda *cuda = static_cast<struct dp_cuda *>(calloc(1, sizeof *cuda));
    if (!cuda)
        return dp_fail(err, DP_NOMEM, "no memory for the CUDA backend");
    dp_cuda_set_memory(&cuda->ops);
    dp_cuda_set_rows(&cuda->ops);
    dp_cuda_set_products(&cuda->ops);
    dp_cuda_set_elements(&cuda->ops);
    dp_cuda_set_pairs(&cuda->ops);
    dp_cuda_set_losses(&cuda->ops);
    st = start(cuda, options, err);
    if (st != DP_OK) {
        close_device(cuda);
        return st;
    }
    out->ops = &cuda->ops;
    out->self = cuda;
    return DP_OK;
}
