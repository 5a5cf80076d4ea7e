/* What becomes of a device's failures, in CUDA's sources on an emulated device: waits end, nothing is asked of a lost device, a fault
 * is told the same from then on, and want of memory is told as that, with how much there is. */
#include "tests/lib/test.h"

#include "fixture.h"
#include "tests/gpu/emulator/emulator.h"
#include "worker/compute/device.h"
#include "worker/compute/model.h"
#include "worker/compute/pinned.h"

#include <dlfcn.h>
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
    *out = (struct emulator){.memory = (size_t)1 << 30, .used = out->used};
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
    (void)state;
    struct emulator *device = emulator();
    size_t before = device->used;
    struct dp_backend backend;
    struct dp_device_times times = {0};
    struct dp_error err = {0};
    opened(0, &backend);
    assert_true(device->used > before);
    for (int stage = DP_STAGE_IN; stage <= DP_STAGE_END; stage++)
        backend.ops->mark(backend.self, (enum dp_stage)stage, 1);
    assert_true(backend.ops->done(backend.self, 1));
    assert_int_equal(backend.ops->wait(backend.self, 1, &times, &err), DP_OK);
    assert_true(times.copy_in > 0 && times.compute > 0 && times.copy_out > 0);
    dp_backend_close(&backend);
    assert_int_equal(device->used, before);
}

static void a_wait_ends(void **state)
{
    (void)state;
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
        says(&err, "start this process again");

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
    (void)state;
    struct emulator *device = emulator();
    struct dp_model model;
    struct dp_backend backend;
    struct dp_error err = {0};
    struct fixture f;
    float loss = 4711;
    assert_int_equal(dp_model_open("mlp:4-3-2", &model, NULL), DP_OK);
    opened(20, &backend);
    fixture_open(&f, model.graph, backend, 5, 1, 1);
    const float *const *weights = (const float *const *)f.weights;
    for (int p = 0; p < dp_graph_parameters(model.graph); p++)
        assert_int_equal(backend.ops->pin(backend.self, f.weights[p], f.floats[p] * sizeof(float), &err),
                         DP_OK);
    assert_int_equal(backend.ops->pin(backend.self, f.output, 5 * 2 * sizeof(float), &err), DP_OK);
    device->stuck = true;
    assert_int_equal(dp_program_forward(f.program, &f.batch, weights, &loss, f.output, &err), DP_IO);
    says(&err, "is not done within 20 ms");
    assert_int_equal(device->asked, 0);
    assert_true(loss == 4711);
    fixture_close(&f);
    dp_model_close(&model);
}

static void a_fault_is_told_the_same_from_then_on(void **state)
{
    (void)state;
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
    says(&first, "start it again");
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
    says(&err, "start it again");
    assert_int_equal(open_with("auto", 0, &next, &err), DP_IO); /* not the CPU, unasked */
    says(&err, "start it again");
}

static void want_of_memory_is_told_as_that(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_left),
        cmocka_unit_test(want_of_memory_is_told_as_that),
        cmocka_unit_test(a_wait_ends),
        cmocka_unit_test(a_forward_ends),
        cmocka_unit_test(a_fault_is_told_the_same_from_then_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
