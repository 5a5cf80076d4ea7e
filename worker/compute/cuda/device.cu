// The device: found, opened and closed.
#include "worker/compute/cuda/device.h"

#include <stdlib.h>

#define WORKSPACE_BYTES ((size_t)32 << 20)

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
    if (cuda->lost) { // each of these may wait for it
        free(cuda);
        return;
    }
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
    (void)cudaFree(cuda->sums);
    free(cuda);
}

// CUDA's own messages for these are only about versions.
static enum dp_status count_devices(int *devices, struct dp_error *err)
{
    int driver = 0, runtime = 0;
    cudaError_t code = cudaGetDeviceCount(devices);
    if (code == cudaErrorNoDevice || (code == cudaSuccess && *devices == 0))
        return dp_fail(err, DP_NOT_FOUND,
                       "the NVIDIA driver finds no GPU on this machine (does CUDA_VISIBLE_DEVICES hide it?)");
    if (code != cudaErrorInsufficientDriver)
        return dp_cuda_fail(err, code, "looking for a device");
    (void)cudaGetLastError();
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return dp_fail(err, DP_NOT_FOUND, "this machine has no NVIDIA driver (libcuda.so.1)");
    (void)cudaRuntimeGetVersion(&runtime);
    return dp_fail(err, DP_NOT_FOUND,
                   "the NVIDIA driver is for CUDA %d.%d, this program needs %d.%d: install a newer driver",
                   driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
}

static enum dp_status choose_device(const struct dp_cuda_options *options, int *device, struct dp_error *err)
{
    int devices = 0;
    enum dp_status st = count_devices(&devices, err);
    if (st != DP_OK)
        return st;
    *device = options->each ? options->device % devices : options->device;
    if (*device < 0 || *device >= devices)
        return dp_fail(err, DP_NOT_FOUND, "there is no CUDA device %d: this machine has %d", *device,
                       devices);
    return DP_OK;
}

static enum dp_status check_device(int device, enum dp_precision precision, struct dp_error *err)
{
    int major = 0, minor = 0;
    cudaError_t code = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (code == cudaSuccess)
        code = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    if (code != cudaSuccess)
        return dp_cuda_fail(err, code, "asking for the device's properties");
    if (major < 8 && precision == DP_PRECISION_BF16)
        return dp_fail(err, DP_UNSUPPORTED,
                       "CUDA device %d has no bf16: its compute capability is %d.%d, bf16 came with 8.0",
                       device, major, minor);
    if (major < 8)
        return dp_fail(err, DP_UNSUPPORTED,
                       "CUDA device %d has compute capability %d.%d; this program is built for 8.0 and later "
                       "(which TF32 and bf16 need too)",
                       device, major, minor);
    return DP_OK;
}

static cudaError_t create(struct dp_cuda *cuda)
{
    cudaError_t code = cudaSetDevice(cuda->device);
    if (code == cudaSuccess)
        code = cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking);
    if (code == cudaSuccess)
        code = cudaStreamCreateWithFlags(&cuda->in, cudaStreamNonBlocking);
    if (code == cudaSuccess)
        code = cudaStreamCreateWithFlags(&cuda->out, cudaStreamNonBlocking);
    for (unsigned s = 0; s < DP_BACKEND_SLOTS; s++)
        for (int i = 0; i < EVENTS && code == cudaSuccess; i++)
            code = cudaEventCreate(event_of(&cuda->slot[s], i));
    return code;
}

// Computes a product of each kind now, so that cuBLAS takes its memory before a model takes the rest.
static enum dp_status start_blas(struct dp_cuda *cuda, struct dp_error *err)
{
    cublasStatus_t blas = cublasCreate(&cuda->blas);
    if (blas == CUBLAS_STATUS_SUCCESS)
        blas = cublasSetStream(cuda->blas, cuda->stream);
    // One workspace of our own: equal bits from run to run.
    if (blas == CUBLAS_STATUS_SUCCESS)
        blas = cublasSetWorkspace(cuda->blas, cuda->workspace, WORKSPACE_BYTES);
    if (blas != CUBLAS_STATUS_SUCCESS)
        return dp_cuda_fail_blas(err, cuda->device, blas, "opening it");
    enum dp_status st = dp_cuda_warm_products(cuda, err);
    if (st != DP_OK)
        return st;
    dp_cuda_wait_all(cuda, DP_CUDA_WAIT_MS);
    return dp_cuda_failed(cuda, err);
}

static enum dp_status start(struct dp_cuda *cuda, const struct dp_cuda_options *options, struct dp_error *err)
{
    static const cublasComputeType_t computes[] = {CUBLAS_COMPUTE_32F_PEDANTIC, CUBLAS_COMPUTE_32F_FAST_TF32,
                                                   CUBLAS_COMPUTE_32F_FAST_16BF};
    void *sums = NULL;
    cuda->compute = computes[options->precision];
    cuda->wait_ms = options->wait_ms > 0 ? options->wait_ms : DP_CUDA_WAIT_MS;
    cudaError_t code = create(cuda);
    if (code != cudaSuccess)
        return dp_cuda_fail(err, code, "opening the device");
    enum dp_status st = cuda->ops.alloc(cuda, WORKSPACE_BYTES, &cuda->workspace, err);
    if (st == DP_OK)
        st = cuda->ops.alloc(cuda, sizeof(float) * DP_CUDA_SUM_BLOCKS * DP_CUDA_SUM_COLUMNS, &sums, err);
    cuda->sums = static_cast<float *>(sums);
    return st == DP_OK ? start_blas(cuda, err) : st;
}

extern "C" const struct dp_cuda_layout dp_cuda_layout = DP_CUDA_LAYOUT;

extern "C" enum dp_status dp_cuda_open(const struct dp_cuda_options *options, struct dp_backend *out,
                                       struct dp_error *err)
{
    int device = 0;
    *out = {};
    enum dp_status st = choose_device(options, &device, err);
    if (st == DP_OK)
        st = check_device(device, options->precision, err);
    if (st != DP_OK)
        return st;
    struct dp_cuda *cuda = static_cast<struct dp_cuda *>(calloc(1, sizeof *cuda));
    if (!cuda)
        return dp_fail(err, DP_NOMEM, "no memory for the CUDA backend");
    cuda->device = device;
    cuda->ops.name = "cuda";
    cuda->ops.wants_by_slot = true;
    cuda->ops.loads_at_first_use = true; // CUDA_MODULE_LOADING's default since 11.7 is LAZY
    cuda->ops.close = close_device;
    dp_cuda_set_memory(&cuda->ops);
    dp_cuda_set_steps(&cuda->ops);
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
    if (options->taken)
        *options->taken = device;
    return DP_OK;
}
