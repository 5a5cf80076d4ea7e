#undef _FORTIFY_SOURCE // its longjmp takes a change of stacks for a mistake
#include "cublas_v2.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <ucontext.h>
#include <vector>

extern "C" {
struct emulator emulator = EMULATOR_SOUND;

__attribute__((constructor)) static void look_into_environment()
{
    const char *fault_at = std::getenv("DP_EMULATOR_FAULT_AT");
    if (fault_at)
        emulator.fault_at = std::strtoull(fault_at, nullptr, 10);
    const char *devices = std::getenv("DP_EMULATOR_DEVICES");
    if (devices)
        emulator.devices = std::atoi(devices);
}
}

static cudaError_t last_error; // of a launch, until it is asked for by cudaGetLastError

namespace emulated
{
dim3 grid, block, block_at, thread_at;

static const unsigned most = 1024, stack_bytes = 32768;
// Made once; switched by jumps, since swapcontext asks the kernel each time.
struct fiber {
    ucontext_t context;
    jmp_buf place;
    std::vector<char> stack;
    bool made, idle;
};
static std::vector<fiber> fibers(most);
static fiber *running;
static jmp_buf scheduler;
static const std::function<void()> *kernel;
static unsigned progress, next, ended, at_barrier, barriers, at_warp[most / 32], warps[most / 32];
static double given[most];

[[noreturn]] static void broken(const char *what)
{
    (void)std::fprintf(stderr, "emulator: %s\n", what);
    std::abort();
}

static unsigned number()
{
    return thread_at.y * block.x + thread_at.x;
}

unsigned lane()
{
    return number() % 32;
}

__attribute__((noinline)) static void yield()
{
    const dim3 at = thread_at;
    if (_setjmp(running->place) == 0)
        _longjmp(scheduler, 1);
    thread_at = at;
}

// A fiber runs threads of the block, one after the other, until one has to wait; then those of the next.
static void run()
{
    for (;;) {
        while (next < block.x * block.y) {
            thread_at = dim3(next % block.x, next / block.x);
            next++;
            (*kernel)();
            ended++;
            progress++;
        }
        running->idle = true;
        yield();
    }
}

__attribute__((noinline)) static void resume(fiber *fiber)
{
    running = fiber;
    if (_setjmp(scheduler) != 0)
        return;
    if (fiber->made)
        _longjmp(fiber->place, 1);
    fiber->made = true;
    (void)setcontext(&fiber->context);
}

static void start(fiber *fiber)
{
    progress++;
    fiber->idle = false;
    if (!fiber->made) {
        fiber->stack.resize(stack_bytes);
        (void)getcontext(&fiber->context);
        fiber->context.uc_stack.ss_sp = fiber->stack.data();
        fiber->context.uc_stack.ss_size = stack_bytes;
        fiber->context.uc_link = nullptr;
        makecontext(&fiber->context, run, 0);
    }
    resume(fiber);
}

static void run_block()
{
    unsigned threads = block.x * block.y, used = 0;
    next = ended = at_barrier = 0;
    std::memset(at_warp, 0, sizeof at_warp);
    while (ended < threads) {
        unsigned before = progress;
        while (next < threads)
            start(&fibers[used++]);
        for (unsigned f = 0; f < used; f++)
            if (!fibers[f].idle)
                resume(&fibers[f]);
        if (ended < threads && progress == before)
            broken("a barrier that not all threads reach");
    }
}

void launch(dim3 grid_, dim3 block_, const std::function<void()> &thread)
{
    grid = grid_, block = block_, kernel = &thread;
    if (grid.x == 0 || grid.y == 0 || grid.y > 65535 || block.x == 0 || block.y == 0 ||
        block.x * block.y > most)
        broken("a launch that no device takes");
    emulator.faulty = emulator.faulty || ++emulator.launches == emulator.fault_at;
    if (emulator.launches == emulator.refused_at)
        last_error = static_cast<cudaError_t>(emulator.refused_code);
    if (emulator.faulty || last_error != cudaSuccess)
        return;
    for (block_at.y = 0; block_at.y < grid.y; block_at.y++)
        for (block_at.x = 0; block_at.x < grid.x; block_at.x++)
            run_block();
}

void block_barrier()
{
    unsigned mine = barriers;
    if (++at_barrier == block.x * block.y) {
        at_barrier = 0;
        barriers++;
        progress++;
    }
    while (mine == barriers)
        yield();
}

static void warp_barrier()
{
    unsigned w = number() / 32, mine = warps[w];
    if (++at_warp[w] == 32) {
        at_warp[w] = 0;
        warps[w]++;
        progress++;
    }
    while (mine == warps[w])
        yield();
}

double shuffle(double x, unsigned from)
{
    unsigned mine = number();
    given[mine] = x;
    warp_barrier();
    double got = from < 32 ? given[mine / 32 * 32 + from] : x;
    warp_barrier();
    return got;
}
} // namespace emulated

static cudaError_t answer()
{
    if (!emulator.faulty)
        return cudaSuccess;
    return emulator.fault_code ? static_cast<cudaError_t>(emulator.fault_code) : cudaErrorIllegalAddress;
}

// A call that waits for all that is under way.
static cudaError_t waiting()
{
    emulator.asked += emulator.stuck;
    return answer();
}

static std::map<void *, size_t> &blocks()
{
    static std::map<void *, size_t> all;
    return all;
}

const char *cudaGetErrorString(cudaError_t code)
{
    return code == cudaErrorIllegalAddress ? "an illegal memory access was encountered" : "emulated";
}

const char *cudaGetErrorName(cudaError_t code)
{
#define EMULATOR_NAME(name, number)                                                                          \
    case name:                                                                                               \
        return #name;
    switch (code) {
        EMULATOR_ERRORS(EMULATOR_NAME)
    }
#undef EMULATOR_NAME
    return "unrecognized error code";
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    if (emulator.faulty)
        return answer();
    if (bytes > emulator.memory - emulator.used)
        return cudaErrorMemoryAllocation;
    *out = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!*out)
        return cudaErrorMemoryAllocation;
    std::memset(*out, 0x7f, bytes);
    blocks()[*out] = bytes;
    emulator.used += bytes;
    return cudaSuccess;
}

cudaError_t cudaFree(void *block)
{
    if (!block)
        return answer();
    if (blocks().count(block) == 0)
        emulated::broken("what was not allocated is freed");
    emulator.used -= blocks()[block];
    blocks().erase(block);
    std::free(block);
    return waiting();
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
    *left = emulator.memory - emulator.used;
    *all = emulator.memory;
    return answer();
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t)
{
    if (!emulator.faulty)
        std::memset(at, value, bytes);
    return answer();
}

static std::map<const char *, size_t> &pinned()
{
    static std::map<const char *, size_t> all;
    return all;
}

static bool is_pinned(const void *host, size_t bytes)
{
    const char *at = static_cast<const char *>(host);
    auto after = pinned().upper_bound(at);
    return after != pinned().begin() && (--after, at + bytes <= after->first + after->second);
}

// What is not pinned is copied through memory that is, and waited for.
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t)
{
    if (!is_pinned(kind == cudaMemcpyDeviceToHost ? to : from, bytes))
        (void)waiting();
    if (!emulator.faulty)
        std::memcpy(to, from, bytes);
    return answer();
}

cudaError_t cudaHostRegister(void *host, size_t bytes, unsigned)
{
    if (!emulator.faulty)
        pinned()[static_cast<const char *>(host)] = bytes;
    return answer();
}

cudaError_t cudaHostUnregister(void *host)
{
    pinned().erase(static_cast<const char *>(host));
    return waiting();
}

cudaError_t cudaGetLastError()
{
    cudaError_t code = last_error;
    last_error = cudaSuccess;
    return code != cudaSuccess ? code : answer();
}

cudaError_t cudaPeekAtLastError()
{
    return last_error != cudaSuccess ? last_error : answer();
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    *out = static_cast<cudaEvent_t>(std::malloc(1));
    return answer();
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    std::free(event);
    return answer();
}

cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t)
{
    return answer();
}

cudaError_t cudaEventQuery(cudaEvent_t)
{
    return emulator.stuck ? cudaErrorNotReady : answer();
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t, cudaEvent_t)
{
    *ms = 1;
    return answer();
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned)
{
    *out = static_cast<cudaStream_t>(std::malloc(1));
    return answer();
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    std::free(stream);
    return answer();
}

cudaError_t cudaStreamQuery(cudaStream_t)
{
    return emulator.stuck ? cudaErrorNotReady : answer();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned)
{
    return answer();
}

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= emulator.devices)
        return cudaErrorInvalidDevice;
    emulator.device = device;
    return answer();
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = emulator.devices;
    return static_cast<cudaError_t>(emulator.count_code);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = emulator.driver;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int)
{
    *value = which == cudaDevAttrComputeCapabilityMajor ? emulator.capability / 10 : emulator.capability % 10;
    return cudaSuccess;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_ALLOC_FAILED ? "the resource allocation failed" : "emulated";
}

cublasStatus_t cublasCreate(cublasHandle_t *out)
{
    if (emulator.blas_open == 0)
        *out = static_cast<cublasHandle_t>(std::malloc(1));
    return static_cast<cublasStatus_t>(emulator.blas_open);
}

cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    std::free(handle);
    emulator.asked += emulator.stuck;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t, void *, size_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                            const void *alpha, const void *a, cudaDataType, int lda, const void *b,
                            cudaDataType, int ldb, const void *beta, void *c, cudaDataType, int ldc,
                            cublasComputeType_t, cublasGemmAlgo_t)
{
    const float *x = static_cast<const float *>(a), *y = static_cast<const float *>(b);
    float *out = static_cast<float *>(c), scale = *static_cast<const float *>(beta);
    if (emulator.blas_product != 0)
        return static_cast<cublasStatus_t>(emulator.blas_product);
    for (long col = 0; col < n; col++)
        for (long row = 0; row < m; row++) {
            float sum = 0, *to = out + col * ldc + row;
            for (long i = 0; i < k; i++)
                sum += x[ta == CUBLAS_OP_N ? i * lda + row : row * lda + i] *
                       y[tb == CUBLAS_OP_N ? col * ldb + i : i * ldb + col];
            *to = (scale == 0 ? 0 : scale * *to) + *static_cast<const float *>(alpha) * sum;
        }
    return CUBLAS_STATUS_SUCCESS;
}
