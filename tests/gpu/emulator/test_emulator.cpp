/* Goal    the emulator holds what CUDA promises, and no more: order within a stream and by events, when host memory is read and
 *         written, what a mask names; mistakes end the program; factors are rounded as the hardware does.
 * Method  each property under many orders. Where nothing orders two streams, both outcomes must be seen. Mistakes are made in a
 *         child process. */
#include "cublas_v2.h"
#include "inside.h"

#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

extern "C" { // which CMocka's header does not say itself
#include "tests/lib/test.h"
}

static const uint64_t orders = 64;

// A device float, a pinned one, and streams that nothing orders.
struct bed {
    float *on_device, *pinned, host;
    cudaStream_t a, b;
    cudaEvent_t event;
};

static void open_bed(struct bed *bed, uint64_t order)
{
    void *block;
    emulator.order = order;
    assert_int_equal(cudaMalloc(&block, sizeof(float)), cudaSuccess);
    bed->on_device = static_cast<float *>(block);
    bed->pinned = static_cast<float *>(std::calloc(1, sizeof(float)));
    assert_int_equal(cudaHostRegister(bed->pinned, sizeof(float), cudaHostRegisterDefault), cudaSuccess);
    bed->host = 0;
    assert_int_equal(cudaStreamCreateWithFlags(&bed->a, cudaStreamNonBlocking), cudaSuccess);
    assert_int_equal(cudaStreamCreateWithFlags(&bed->b, cudaStreamNonBlocking), cudaSuccess);
    assert_int_equal(cudaEventCreate(&bed->event), cudaSuccess);
}

static void close_bed(struct bed *bed)
{
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
    assert_int_equal(cudaEventDestroy(bed->event), cudaSuccess);
    assert_int_equal(cudaStreamDestroy(bed->a), cudaSuccess);
    assert_int_equal(cudaStreamDestroy(bed->b), cudaSuccess);
    assert_int_equal(cudaHostUnregister(bed->pinned), cudaSuccess);
    assert_int_equal(cudaFree(bed->on_device), cudaSuccess);
    std::free(bed->pinned);
}

static void add_kernel(float *to, float x)
{
    if (threadIdx.x == 0)
        *to += x;
}

static void add(float *to, float x, cudaStream_t stream)
{
    DP_CUDA_LAUNCH(add_kernel, 1, 32, stream, to, x);
}

static void copy_in(struct bed *bed, const float *from, cudaStream_t stream)
{
    assert_int_equal(cudaMemcpyAsync(bed->on_device, from, sizeof(float), cudaMemcpyHostToDevice, stream),
                     cudaSuccess);
}

static void copy_out(struct bed *bed, float *to, cudaStream_t stream)
{
    assert_int_equal(cudaMemcpyAsync(to, bed->on_device, sizeof(float), cudaMemcpyDeviceToHost, stream),
                     cudaSuccess);
}

static void a_stream_keeps_its_order(void **)
{
    unsigned early = 0;
    for (uint64_t order = 0; order < orders; order++) {
        struct bed bed;
        open_bed(&bed, order);
        *bed.pinned = 5;
        copy_in(&bed, bed.pinned, bed.a);
        add(bed.on_device, 2, bed.a);
        copy_out(&bed, bed.pinned, bed.a);
        early += *bed.pinned == 7;
        assert_int_equal(cudaStreamSynchronize(bed.a), cudaSuccess);
        assert_true(*bed.pinned == 7);
        close_bed(&bed);
    }
    assert_in_range(early, 1, orders - 1);
}

// `ordered` by an event, b reads what a has written, and a does not overwrite what b still reads.
static float read_by_another(struct bed *bed, bool ordered)
{
    *bed->pinned = 5;
    copy_in(bed, bed->pinned, bed->a);
    assert_int_equal(cudaStreamSynchronize(bed->a), cudaSuccess);
    add(bed->on_device, 2, bed->a);
    if (ordered) {
        assert_int_equal(cudaEventRecord(bed->event, bed->a), cudaSuccess);
        assert_int_equal(cudaStreamWaitEvent(bed->b, bed->event, 0), cudaSuccess);
    }
    copy_out(bed, bed->pinned, bed->b);
    if (ordered) {
        assert_int_equal(cudaEventRecord(bed->event, bed->b), cudaSuccess);
        assert_int_equal(cudaStreamWaitEvent(bed->a, bed->event, 0), cudaSuccess);
    }
    add(bed->on_device, 100, bed->a);
    assert_int_equal(cudaStreamSynchronize(bed->b), cudaSuccess);
    return *bed->pinned;
}

static void streams_are_ordered_by_events_alone(void **)
{
    unsigned before = 0, right = 0, overwritten = 0;
    for (uint64_t order = 0; order < orders; order++) {
        struct bed bed;
        open_bed(&bed, order);
        assert_true(read_by_another(&bed, true) == 7);
        assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
        float read = read_by_another(&bed, false);
        before += read == 5;
        right += read == 7;
        overwritten += read == 107;
        close_bed(&bed);
    }
    (void)std::printf("read %u times before, %u right, %u overwritten\n", before, right, overwritten);
    assert_true(before > 0 && right > 0 && overwritten > 0);
    assert_int_equal(before + right + overwritten, orders);
}

// A wait is for the record of its time: what is recorded later is not waited for, and what was never recorded neither.
static void a_wait_is_for_the_last_record(void **)
{
    unsigned early = 0;
    for (uint64_t order = 0; order < orders; order++) {
        struct bed bed;
        open_bed(&bed, order);
        assert_int_equal(cudaStreamWaitEvent(bed.b, bed.event, 0), cudaSuccess);
        assert_int_equal(cudaEventQuery(bed.event), cudaSuccess);
        *bed.pinned = 5;
        copy_in(&bed, bed.pinned, bed.a);
        assert_int_equal(cudaEventRecord(bed.event, bed.a), cudaSuccess);
        assert_int_equal(cudaStreamWaitEvent(bed.b, bed.event, 0), cudaSuccess);
        add(bed.on_device, 2, bed.a);
        assert_int_equal(cudaEventRecord(bed.event, bed.a), cudaSuccess);
        copy_out(&bed, &bed.host, bed.b);
        assert_true(bed.host == 5 || bed.host == 7);
        early += bed.host == 5;
        close_bed(&bed);
    }
    assert_in_range(early, 1, orders - 1);
}

static void a_query_makes_progress(void **)
{
    unsigned asked_twice = 0;
    for (uint64_t order = 0; order < orders; order++) {
        struct bed bed;
        unsigned asked = 0;
        float ms;
        open_bed(&bed, order);
        (void)cudaGetLastError();
        cudaEvent_t begun;
        assert_int_equal(cudaEventCreate(&begun), cudaSuccess);
        assert_int_equal(cudaEventRecord(begun, bed.a), cudaSuccess);
        copy_in(&bed, &bed.host, bed.a);
        assert_int_equal(cudaEventRecord(bed.event, bed.a), cudaSuccess);
        while (cudaEventQuery(bed.event) != cudaSuccess)
            assert_true(++asked < 3);
        assert_int_equal(cudaGetLastError(), asked > 0 ? cudaErrorNotReady : cudaSuccess);
        asked_twice += asked > 0;
        assert_int_equal(cudaEventElapsedTime(&ms, begun, bed.event), cudaSuccess);
        assert_true(ms > 0);
        assert_int_equal(cudaEventDestroy(begun), cudaSuccess);
        close_bed(&bed);
    }
    assert_in_range(asked_twice, 1, orders - 1);
}

static void host_memory_is_read_when_cuda_says(void **)
{
    unsigned late = 0;
    for (uint64_t order = 0; order < orders; order++) {
        struct bed bed;
        open_bed(&bed, order);
        *bed.pinned = 5;
        copy_in(&bed, bed.pinned, bed.a);
        *bed.pinned = 6;
        copy_out(&bed, &bed.host, bed.a); // not pinned: done on return
        assert_true(bed.host == 5 || bed.host == 6);
        late += bed.host == 6;
        bed.host = 3;
        copy_in(&bed, &bed.host, bed.a); // not pinned: read on return
        bed.host = 4;
        copy_out(&bed, &bed.host, bed.a);
        assert_true(bed.host == 3);
        close_bed(&bed);
    }
    assert_in_range(late, 1, orders - 1);
}

static void half_kernel(float *out, unsigned mask, bool all)
{
    if (all || threadIdx.x < 16)
        out[threadIdx.x] = __shfl_down_sync(mask, static_cast<float>(threadIdx.x), 8);
}

static void a_mask_names_who_shuffles(void **)
{
    void *block;
    float out[32];
    assert_int_equal(cudaMalloc(&block, sizeof out), cudaSuccess);
    DP_CUDA_LAUNCH(half_kernel, 1, 32, nullptr, static_cast<float *>(block), 0xffffu, false);
    assert_int_equal(cudaMemcpyAsync(out, block, sizeof out, cudaMemcpyDeviceToHost, nullptr), cudaSuccess);
    for (unsigned i = 0; i < 8; i++)
        assert_true(out[i] == static_cast<float>(i + 8));
    for (unsigned i = 8; i < 16; i++)
        assert_true(std::isnan(out[i]));
    assert_int_equal(cudaFree(block), cudaSuccess);
}

// Whether it ends the program.
static bool aborts(void (*mistake)(struct bed *bed))
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct bed bed;
        open_bed(&bed, 1);
        mistake(&bed);
        std::_Exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

// Leaves a copy in a's queue: under some order it does not run at once.
static void queue_something(struct bed *bed)
{
    for (emulator.order = 1; !emulated::is_queued(bed->on_device, 1); emulator.order++) {
        assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
        copy_in(bed, bed->pinned, bed->a);
    }
}

static void mistakes_end_the_program(void **)
{
    static void (*const mistakes[])(struct bed *) = {
        [](struct bed *bed) {
            queue_something(bed);
            (void)cudaFree(bed->on_device);
        },
        [](struct bed *bed) {
            queue_something(bed);
            (void)cudaHostUnregister(bed->pinned);
        },
        [](struct bed *bed) {
            queue_something(bed);
            (void)cudaStreamDestroy(bed->a);
        },
        [](struct bed *bed) { (void)cudaMemsetAsync(bed->on_device + 1, 0, sizeof(float), bed->a); },
        [](struct bed *bed) { (void)cudaFree(bed->pinned); },
        [](struct bed *bed) {
            DP_CUDA_LAUNCH(half_kernel, 1, 32, bed->a, bed->on_device, 0xffffu, true);
            (void)cudaDeviceSynchronize();
        },
        [](struct bed *bed) {
            DP_CUDA_LAUNCH(half_kernel, 1, 32, bed->a, bed->on_device, 0xffffffffu, false);
            (void)cudaDeviceSynchronize();
        },
        [](struct bed *bed) { DP_CUDA_LAUNCH(add_kernel, 1, 2048, bed->a, bed->on_device, 1.0f); },
    };
    assert_false(aborts([](struct bed *bed) { queue_something(bed); }));
    for (auto mistake : mistakes)
        assert_true(aborts(mistake));
}

static void a_fault_drops_what_is_queued(void **)
{
    for (uint64_t order = 0; order < orders; order++) {
        struct bed bed;
        open_bed(&bed, order);
        emulator.fault_at = emulator.launches + 1;
        add(bed.on_device, 1, bed.a);
        (void)cudaMemcpyAsync(bed.pinned, bed.on_device, sizeof(float), cudaMemcpyDeviceToHost, bed.a);
        assert_int_equal(cudaStreamSynchronize(bed.a), cudaErrorIllegalAddress);
        assert_int_equal(cudaPeekAtLastError(), cudaErrorIllegalAddress);
        assert_true(*bed.pinned == 0);
        emulator.faulty = false;
        close_bed(&bed);
    }
}

// One more or less than a tie, ties, and what has no more bits; 0x1p-10 and 0x1p-7 are a unit in the last place at 1.
static void factors_are_rounded_as_by_the_hardware(void **)
{
    static const cublasComputeType_t f32 = CUBLAS_COMPUTE_32F_PEDANTIC, tf32 = CUBLAS_COMPUTE_32F_FAST_TF32,
                                     bf16 = CUBLAS_COMPUTE_32F_FAST_16BF;
    static const struct {
        cublasComputeType_t compute;
        float x, want;
    } cases[] = {
        {f32, 1 + 0x1p-23f, 1 + 0x1p-23f},
        {tf32, 1 + 0x1p-10f, 1 + 0x1p-10f},
        {tf32, 1 + 0x1p-11f - 0x1p-23f, 1},
        {tf32, 1 + 0x1p-11f, 1 + 0x1p-10f}, // a tie: away from zero, also where even is nearer to it
        {tf32, -1 - 0x1p-11f, -1 - 0x1p-10f},
        {tf32, 2 - 0x1p-11f, 2},
        {bf16, 1 + 0x1p-7f, 1 + 0x1p-7f},
        {bf16, 1 + 0x1p-8f - 0x1p-23f, 1},
        {bf16, 1 + 0x1p-8f, 1}, // ties: to even
        {bf16, 1 + 0x1p-8f + 0x1p-23f, 1 + 0x1p-7f},
        {bf16, 1 + 0x1p-7f + 0x1p-8f, 1 + 0x1p-6f},
        {bf16, -2 + 0x1p-9f, -2},
        {tf32, 0, 0},
        {bf16, INFINITY, INFINITY},
    };
    for (auto &each : cases)
        if (!(emulated::rounded(each.x, each.compute) == each.want))
            fail_msg("%a is %a, not %a", static_cast<double>(each.x),
                     static_cast<double>(emulated::rounded(each.x, each.compute)),
                     static_cast<double>(each.want));
    assert_true(std::isnan(emulated::rounded(NAN, tf32)) && std::isnan(emulated::rounded(NAN, bf16)));
}

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_keeps_its_order),
        cmocka_unit_test(streams_are_ordered_by_events_alone),
        cmocka_unit_test(a_wait_is_for_the_last_record),
        cmocka_unit_test(a_query_makes_progress),
        cmocka_unit_test(host_memory_is_read_when_cuda_says),
        cmocka_unit_test(a_mask_names_who_shuffles),
        cmocka_unit_test(mistakes_end_the_program),
        cmocka_unit_test(a_fault_drops_what_is_queued),
        cmocka_unit_test(factors_are_rounded_as_by_the_hardware),
    };
    return cmocka_run_group_tests_name("emulator", tests, nullptr, nullptr);
}
