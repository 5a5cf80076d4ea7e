/* What goes wrong on the device ends by name: a step that takes too long, and a fault of a kernel, after which nothing answers in
 * this process. Each leaves the process unfit for more, so that they stand in a program of their own, in this order. */
#include "tests/lib/gpu.h"
#include "tests/lib/test.h"

#include "worker/compute/device.h"
#include "worker/compute/models/model.h"
#include "worker/compute/program.h"

#include <stdio.h>
#include <string.h>

static enum dp_status open_device(const char *name, uint32_t wait_ms, struct dp_backend *backend,
                                  struct dp_error *err)
{
    const struct dp_device_options options = {
        .device = name, .precision = "f32", .threads = 1, .wait_ms = wait_ms};
    *err = (struct dp_error){0};
    return dp_device_open(&options, backend, NULL, err);
}

static void says(const struct dp_error *err, const char *what)
{
    if (!strstr(err->text, what))
        fail_msg("'%s' does not say '%s'", err->text, what);
}

/* The first step, which opening a program makes: 134 MB of weights go up alone, and it may take 1 ms. */
static void a_wait_ends(void **state)
{
    struct dp_model model;
    struct dp_backend backend;
    struct dp_error err;
    struct dp_program *program = NULL;
    const struct dp_batch_shape worst = {.examples = 4096};
    assert_int_equal(dp_model_open("mlp:4096-4096-4096-2", &model, NULL), DP_OK);
    if (open_device("cuda", 1, &backend, &err) != DP_OK)
        fail_msg("%s", err.text);
    for (int again = 0; again < 2; again++) {
        err = (struct dp_error){0};
        assert_int_equal(dp_program_open(model.graph, &backend, &worst, &program, &err), DP_IO);
        says(&err, "is not done within 1 ms");
        assert_null(program);
    }
    dp_backend_close(&backend);
    dp_model_close(&model);
}

/* Rows a terabyte beyond the table. */
static void fault(struct dp_backend *backend, struct dp_error *err)
{
    const struct dp_backend_ops *ops = backend->ops;
    const uint32_t offsets[] = {0, 1}, slots[] = {0xfffffff0u};
    const float values[] = {1};
    void *block;
    if (ops->alloc(backend->self, 4096, &block, err) != DP_OK)
        fail_msg("%s", err->text);
    char *at = block;
    assert_int_equal(ops->copy_in(backend->self, at, offsets, sizeof offsets, err), DP_OK);
    assert_int_equal(ops->copy_in(backend->self, at + 256, slots, sizeof slots, err), DP_OK);
    assert_int_equal(ops->copy_in(backend->self, at + 512, values, sizeof values, err), DP_OK);
    assert_int_equal(ops->finish(backend->self, err), DP_OK);
    const struct dp_entries entries = {.examples = 1,
                                       .distinct = 1,
                                       .count = 1,
                                       .offsets = (const uint32_t *)block,
                                       .slots = (const uint32_t *)(void *)(at + 256),
                                       .values = (const float *)(void *)(at + 512)};
    ops->gather(backend->self, &entries, (const float *)(void *)(at + 1024), 64,
                (float *)(void *)(at + 2048));
}

static void a_fault_says_to_start_again(void **state)
{
    struct dp_backend backend, next;
    struct dp_error err, first;
    float x = 0;
    void *block;
    if (open_device("cuda", 0, &backend, &err) != DP_OK)
        fail_msg("%s", err.text);
    fault(&backend, &err);
    first = (struct dp_error){0};
    assert_int_equal(backend.ops->finish(backend.self, &first), DP_IO);
    says(&first, "restart it");
    print_message("%s\n", first.text);
    for (int again = 0; again < 3; again++) {
        err = (struct dp_error){0};
        enum dp_status st = again == 0   ? backend.ops->finish(backend.self, &err)
                            : again == 1 ? backend.ops->alloc(backend.self, 64, &block, &err)
                                         : backend.ops->copy_in(backend.self, &x, &x, sizeof x, &err);
        assert_int_equal(st, DP_IO);
        assert_string_equal(err.text, first.text);
    }
    dp_backend_close(&backend);
    assert_int_not_equal(open_device("cuda", 0, &next, &err), DP_OK);
    print_message("%s\n", err.text);
    assert_int_not_equal(open_device("auto", 0, &next, &err), DP_OK); /* not the CPU, unasked */
}

int main(void)
{
    struct dp_backend backend;
    struct dp_error err;
    if (open_device("cuda", 0, &backend, &err) != DP_OK) {
        return dp_gpu_test_lacks(err.text);
    }
    dp_backend_close(&backend);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_ends),
        cmocka_unit_test(a_fault_says_to_start_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
