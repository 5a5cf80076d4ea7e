/* What becomes of a device's failures, in CUDA's sources on an emulated device: waits end, nothing is asked of a lost device, a fault
 * is told the same from then on, and want of memory is told as that, with how much there is; and of machines that have no device of use:
 * what they lack is said by name, and "auto" takes the CPU there, but not where a device is there and fails. */
#include "tests/lib/test.h"

#include "fixture.h"
#include "tests/gpu/emulator/emulator.h"
#include "tests/gpu/emulator/errors.h"
#include "worker/compute/device.h"
#include "worker/compute/models/model.h"
#include "worker/compute/pinned.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The plugin's; reset. */
static struct emulator *emulator(void)
{
    void *library = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    struct emulator *out = dlsym(library, "emulator");
    assert_non_null(out);
    const size_t used = out->used;
    *out = (struct emulator)EMULATOR_SOUND;
    out->used = used;
    return out;
}

static enum dp_status open_with(const char *device, uint32_t wait_ms, struct dp_backend *backend,
                                struct dp_error *err)
{
    const struct dp_device_options options = {
        .device = device, .precision = "f32", .threads = 1, .wait_ms = wait_ms};
    *err = (struct dp_error){0};
    return dp_device_open(&options, backend, NULL, err);
}

static void opened(uint32_t wait_ms, struct dp_backend *backend)
{
    struct dp_error err;
    if (open_with("cuda", wait_ms, backend, &err) != DP_OK)
        fail_msg("%s", err.text);
}

static void says(const struct dp_error *err, const char *what)
{
    if (!strstr(err->text, what))
        fail_msg("'%s' does not say '%s'", err->text, what);
}

static void nothing_is_left(void **state)
{
    struct emulator *device = emulator();
    size_t before = device->used;
    struct dp_backend backend;
    struct dp_device_times times = {0};
    struct dp_error err = {0};
    opened(0, &backend);
    assert_true(device->used > before);
    for (int stage = DP_STAGE_IN; stage <= DP_STAGE_END; stage++)
        backend.ops->mark(backend.self, (enum dp_stage)stage, 1);
    while (!backend.ops->done(backend.self, 1))
        continue;
    assert_int_equal(backend.ops->wait(backend.self, 1, &times, &err), DP_OK);
    assert_true(times.copy_in > 0 && times.compute > 0 && times.copy_out > 0);
    dp_backend_close(&backend);
    assert_int_equal(device->used, before);
}

static void a_wait_ends(void **state)
{
    for (int steps = 0; steps < 2; steps++) {
        struct emulator *device = emulator();
        struct dp_backend backend;
        struct dp_device_times times;
        struct dp_error err = {0};
        void *block, *pinned;
        opened(20, &backend);
        assert_int_equal(backend.ops->alloc(backend.self, 64, &block, &err), DP_OK);
        assert_int_equal(dp_pinned_new(&backend, 64, &pinned, &err), DP_OK);
        device->stuck = true;
        backend.ops->mark(backend.self, DP_STAGE_END, 0);
        while (steps && !backend.ops->done(backend.self, 0))
            continue; /* ends when wait would */
        assert_int_equal(steps ? backend.ops->wait(backend.self, 0, &times, &err)
                               : backend.ops->finish(backend.self, &err),
                         DP_IO);
        says(&err, "is not done within 20 ms");
        says(&err, "restart this process");

        /* From here on nothing waits, and what it may write to stays. */
        struct dp_error again = {0};
        assert_int_equal(backend.ops->finish(backend.self, &again), DP_IO);
        assert_string_equal(err.text, again.text);
        assert_int_equal(backend.ops->copy_in(backend.self, block, pinned, 4, &again), DP_IO);
        assert_true(backend.ops->done(backend.self, 0));
        void *left = pinned;
        dp_pinned_free(&backend, &pinned);
        memset(left, 1, 64);
        free(left);
        backend.ops->release(backend.self, block);
        dp_backend_close(&backend);
        assert_int_equal(device->asked, 0);
    }
}

/* A forward, as evaluation and prediction make: with weights and outputs pinned, nothing of it waits inside CUDA. */
static void a_forward_ends(void **state)
{
    struct emulator *device = emulator();
    struct dp_model model;
    struct dp_backend backend;
    struct dp_error err = {0};
    struct fixture f;
    float loss = 4711;
    assert_int_equal(dp_model_open("mlp:4-3-2", &model, NULL), DP_OK);
    opened(500, &backend); /* the first step must be done in this time, also beside other programs */
    fixture_open(&f, model.graph, backend, 5, 1, 1);
    const float *const *weights = (const float *const *)f.weights;
    for (int p = 0; p < dp_graph_parameters(model.graph); p++)
        assert_int_equal(backend.ops->pin(backend.self, f.weights[p], f.floats[p] * sizeof(float), &err),
                         DP_OK);
    assert_int_equal(backend.ops->pin(backend.self, f.output, 5 * 2 * sizeof(float), &err), DP_OK);
    device->stuck = true;
    assert_int_equal(dp_program_forward(f.program, &f.batch, weights, &loss, f.output, &err), DP_IO);
    says(&err, "is not done within 500 ms");
    assert_int_equal(device->asked, 0);
    assert_true(loss == 4711);
    fixture_close(&f);
    dp_model_close(&model);
}

static void a_fault_is_told_the_same_from_then_on(void **state)
{
    struct emulator *device = emulator();
    struct dp_backend backend, next;
    struct dp_error first = {0}, err;
    float x[8] = {0};
    void *block;
    opened(0, &backend);
    device->faulty = true;
    backend.ops->relu(backend.self, x, 8, x);
    assert_int_equal(backend.ops->finish(backend.self, &first), DP_IO);
    says(&first, "a fault on the device, seen in relu: an illegal memory access");
    says(&first, "restart it");
    for (int call = 0; call < 6; call++) {
        err = (struct dp_error){0};
        enum dp_status st = call == 0   ? backend.ops->finish(backend.self, &err)
                            : call == 1 ? backend.ops->alloc(backend.self, 64, &block, &err)
                            : call == 2 ? backend.ops->copy_in(backend.self, x, x, 4, &err)
                            : call == 3 ? backend.ops->copy_out(backend.self, x, x, 4, &err)
                            : call == 4 ? backend.ops->zero(backend.self, x, 4, &err)
                                        : backend.ops->pin(backend.self, x, 4, &err);
        assert_int_equal(st, DP_IO);
        assert_string_equal(err.text, first.text);
    }
    dp_backend_close(&backend);
    assert_int_equal(open_with("cuda", 0, &next, &err), DP_IO);
    says(&err, "restart it");
    assert_int_equal(open_with("auto", 0, &next, &err), DP_IO); /* not the CPU, unasked */
    says(&err, "restart it");
}

/* Every error after which CUDA answers nothing in this process, and what its text says to do. What is not one of them leaves the
 * device as it is. */
static void each_error_that_ends_the_context_is_told_as_that(void **state)
{
    static const struct {
        cudaError_t code;
        const char *says; /* NULL: the next call may answer again */
    } errors[] = {
        {cudaErrorIllegalAddress, "CUDA_LAUNCH_BLOCKING=1"},
        {cudaErrorLaunchTimeout, "CUDA_LAUNCH_BLOCKING=1"},
        {cudaErrorAssert, "CUDA_LAUNCH_BLOCKING=1"},
        {cudaErrorHardwareStackError, "CUDA_LAUNCH_BLOCKING=1"},
        {cudaErrorIllegalInstruction, "CUDA_LAUNCH_BLOCKING=1"},
        {cudaErrorMisalignedAddress, "CUDA_LAUNCH_BLOCKING=1"},
        {cudaErrorInvalidAddressSpace, "CUDA_LAUNCH_BLOCKING=1"},
        {cudaErrorInvalidPc, "CUDA_LAUNCH_BLOCKING=1"},
        {cudaErrorLaunchFailure, "CUDA_LAUNCH_BLOCKING=1"},
        {cudaErrorTensorMemoryLeak, "CUDA_LAUNCH_BLOCKING=1"},
        {cudaErrorECCUncorrectable, "check the hardware"},
        {cudaErrorNvlinkUncorrectable, "check the hardware"},
        {cudaErrorContained, "check the hardware"},
        {cudaErrorExternalDevice, "check the hardware"},
        {cudaErrorMpsClientTerminated, "the log of the MPS server"},
        {cudaErrorUnknown, NULL},
    };
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        struct emulator *device = emulator();
        struct dp_backend backend;
        struct dp_error err = {0}, again = {0};
        float x[8] = {0};
        void *block;
        opened(0, &backend);
        assert_int_equal(backend.ops->alloc(backend.self, 64, &block, &err), DP_OK);
        device->faulty = true;
        device->fault_code = (int)errors[i].code;
        assert_int_equal(backend.ops->copy_in(backend.self, block, x, 4, &err), DP_IO);
        says(&err, errors[i].says ? errors[i].says : "CUDA, copy to the device: emulated");
        device->faulty = false;
        if (errors[i].says) {
            says(&err, "a fault on the device, seen in copy to the device");
            says(&err, "restart it");
            assert_int_equal(backend.ops->finish(backend.self, &again), DP_IO);
            assert_string_equal(err.text, again.text);
        } else {
            assert_int_equal(backend.ops->finish(backend.self, &again), DP_OK);
        }
        backend.ops->release(backend.self, block);
        dp_backend_close(&backend);
    }
}

/* compute-sanitizer's initcheck, and the tests on the emulated device, whose memory is full of 0x7f, then see what is read before it was
 * written. */
static void reserved_memory_is_not_written(void **state)
{
    (void)emulator();
    struct dp_backend backend;
    struct dp_error err = {0};
    unsigned char bytes[256] = {0};
    void *block;
    opened(0, &backend);
    assert_int_equal(backend.ops->alloc(backend.self, sizeof bytes, &block, &err), DP_OK);
    assert_int_equal(backend.ops->copy_out(backend.self, bytes, block, sizeof bytes, &err), DP_OK);
    assert_int_equal(backend.ops->finish(backend.self, &err), DP_OK);
    for (size_t i = 0; i < sizeof bytes; i++)
        assert_int_equal(bytes[i], 0x7f);
    backend.ops->release(backend.self, block);
    dp_backend_close(&backend);
}

static void want_of_memory_is_told_as_that(void **state)
{
    struct emulator *device = emulator();
    struct dp_backend backend;
    struct dp_error err = {0};
    void *block;
    size_t used = device->used;
    device->memory = used + 1000;
    assert_int_equal(open_with("cuda", 0, &backend, &err), DP_NOMEM);
    says(&err, "out of device memory");
    says(&err, "1000 of its");
    device->memory = used + ((size_t)40 << 20);
    device->blas_open = 2;
    assert_int_equal(open_with("cuda", 0, &backend, &err), DP_NOMEM);
    says(&err, "out of device memory: cuBLAS, opening it (the resource allocation failed)");
    device->blas_open = 1; /* "not initialized", with little memory left */
    assert_int_equal(open_with("cuda", 0, &backend, &err), DP_NOMEM);
    device->blas_open = 0;
    device->blas_product = 2; /* found at start, before a model is laid out */
    assert_int_equal(open_with("cuda", 0, &backend, &err), DP_NOMEM);
    says(&err, "cuBLAS, matmul of 16 x 16 x 16");
    device->blas_product = 5;
    assert_int_equal(open_with("cuda", 0, &backend, &err), DP_UNSUPPORTED);
    device->blas_product = 0;
    device->memory = (size_t)1 << 30;
    device->blas_open = 1;
    assert_int_equal(open_with("cuda", 0, &backend, &err), DP_IO);
    assert_int_equal(device->used, used);
    device->blas_open = 0;
    opened(0, &backend);
    assert_int_equal(backend.ops->alloc(backend.self, (size_t)2 << 30, &block, &err), DP_NOMEM);
    assert_int_equal(backend.ops->alloc(backend.self, 64, &block, &err),
                     DP_OK); /* no failure of the device */
    backend.ops->release(backend.self, block);
    dp_backend_close(&backend);
    assert_int_equal(device->used, used);
}

static void refused(const char *device, const char *precision, enum dp_status want, const char *what)
{
    const struct dp_device_options options = {.device = device, .precision = precision, .threads = 1};
    struct dp_backend backend;
    struct dp_error err = {0};
    enum dp_status st = dp_device_open(&options, &backend, NULL, &err);
    assert_null(backend.ops);
    if (st != want)
        fail_msg("%s, %s: '%s' is %d, not %d", device, precision, err.text, (int)st, (int)want);
    says(&err, what);
}

static void taken(const char *device, const char *precision, const char *want)
{
    const struct dp_device_options options = {.device = device, .precision = precision, .threads = 1};
    struct dp_backend backend;
    struct dp_error err = {0};
    char used[64];
    if (dp_device_open(&options, &backend, used, &err) != DP_OK)
        fail_msg("%s, %s: %s", device, precision, err.text);
    assert_string_equal(used, want);
    dp_backend_close(&backend);
}

static void an_old_gpu_is_told_as_that(void **state)
{
    struct emulator *device = emulator();
    device->capability = 80;
    taken("cuda", "bf16", "cuda:0, bf16");
    taken("cuda", "f32", "cuda:0, f32");
    device->capability = 75;
    refused("cuda", "bf16", DP_UNSUPPORTED, "device 0 has no bf16: its compute capability is 7.5");
    refused("cuda", "f32", DP_UNSUPPORTED,
            "device 0 has compute capability 7.5; this program is built for 8.0");
    refused("cuda", "tf32", DP_UNSUPPORTED,
            "device 0 has compute capability 7.5; this program is built for 8.0");
    taken("auto", "bf16", "cpu, 1 thread");
    taken("auto", "f32", "cpu, 1 thread");
    assert_int_equal(device->launches, 0);
}

static void no_gpu_and_no_driver_are_told(void **state)
{
    struct emulator *device = emulator();
    for (int way = 0; way < 2; way++) { /* CUDA says either */
        device->devices = 0;
        device->count_code = way == 0 ? 0 : cudaErrorNoDevice;
        refused("cuda", "f32", DP_NOT_FOUND, "the NVIDIA driver finds no GPU on this machine");
        taken("auto", "f32", "cpu, 1 thread");
    }
    device = emulator();
    device->count_code = cudaErrorInsufficientDriver;
    device->driver = 0;
    refused("cuda", "f32", DP_NOT_FOUND, "this machine has no NVIDIA driver");
    taken("auto", "tf32", "cpu, 1 thread");
    device->driver = 11040;
    refused("cuda", "f32", DP_NOT_FOUND,
            "the NVIDIA driver is for CUDA 11.4, this program needs 13.0: install a newer driver");
    taken("auto", "f32", "cpu, 1 thread");
    device = emulator();
    device->devices = 2;
    taken("cuda:1", "f32", "cuda:1, f32");
    refused("cuda:2", "f32", DP_NOT_FOUND, "there is no CUDA device 2: this machine has 2");
}

static void each_worker_takes_a_device_of_its_own(void **state)
{
    struct dp_device_options options = {.device = "cuda:each", .precision = "f32", .threads = 1};
    struct dp_backend backend;
    struct dp_error err = {0};
    char used[64], want[64];
    for (int devices = 1; devices <= 3; devices += 2)
        for (uint32_t worker = 0; worker < 7; worker += 2) {
            struct emulator *device = emulator();
            device->devices = devices;
            options.worker = worker;
            if (dp_device_open(&options, &backend, used, &err) != DP_OK)
                fail_msg("worker %u of %d devices: %s", (unsigned)worker, devices, err.text);
            dp_backend_close(&backend);
            (void)snprintf(want, sizeof want, "cuda:%d, f32", (int)worker % devices);
            assert_string_equal(used, want);
            assert_int_equal(device->device, (int)worker % devices);
        }
    emulator()->devices = 0;
    refused("cuda:each", "f32", DP_NOT_FOUND, "device cuda:each: the NVIDIA driver finds no GPU");
}

/* A worker that is started again must not go on on the CPU, unasked. */
static void a_gpu_that_is_there_and_fails_is_not_passed_by(void **state)
{
    struct emulator *device = emulator();
    device->count_code = cudaErrorSystemDriverMismatch;
    refused("cuda", "f32", DP_IO, "restart the machine");
    refused("auto", "f32", DP_IO, "or choose the CPU (cpu)");
    device->count_code = cudaErrorIllegalAddress;
    refused("auto", "f32", DP_IO, "or choose the CPU (cpu)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_left),
        cmocka_unit_test(an_old_gpu_is_told_as_that),
        cmocka_unit_test(no_gpu_and_no_driver_are_told),
        cmocka_unit_test(each_worker_takes_a_device_of_its_own),
        cmocka_unit_test(a_gpu_that_is_there_and_fails_is_not_passed_by),
        cmocka_unit_test(reserved_memory_is_not_written),
        cmocka_unit_test(want_of_memory_is_told_as_that),
        cmocka_unit_test(a_wait_ends),
        cmocka_unit_test(a_forward_ends),
        cmocka_unit_test(a_fault_is_told_the_same_from_then_on),
        cmocka_unit_test(each_error_that_ends_the_context_is_told_as_that),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
