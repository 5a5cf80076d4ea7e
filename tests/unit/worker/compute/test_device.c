/* Devices by name: what is missing is said, and the CPU is taken only where "auto" allows it. */
#include "tests/lib/test.h"

#include "worker/compute/device.h"

#include <string.h>

static enum dp_status open_device(const char *name, const char *precision, char *used, struct dp_error *err)
{
    const struct dp_device_options options = {.device = name, .precision = precision, .threads = 2};
    struct dp_backend backend;
    *err = (struct dp_error){0};
    enum dp_status st = dp_device_open(&options, &backend, used, err);
    dp_backend_close(&backend);
    return st;
}

static void names(void **state)
{
    struct dp_error err;
    char used[64];
    assert_int_equal(open_device("cpu", "f32", used, &err), DP_OK);
    assert_string_equal(used, "cpu, 2 threads");
    assert_int_equal(open_device("auto", "f32", used, &err), DP_OK);
    assert_true(strncmp(used, "cpu", 3) == 0 || strncmp(used, "cuda:0", 6) == 0);
    static const char *const bad[] = {"", "gpu", "cud", "cudax", "cuda;1", "CPU", "cudaeach"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(open_device(bad[i], "f32", used, &err), DP_ARGUMENT);
        assert_non_null(strstr(err.text, "cpu, cuda, cuda:N, cuda:each or auto"));
    }
    assert_int_equal(open_device("cuda:x", "f32", used, &err), DP_ARGUMENT);
    assert_int_equal(open_device("cuda:", "f32", used, &err), DP_ARGUMENT);
    assert_int_equal(open_device("cuda:eac", "f32", used, &err), DP_ARGUMENT);
    assert_int_equal(open_device("cuda:each0", "f32", used, &err), DP_ARGUMENT);
    assert_int_equal(open_device("cpu", "f16", used, &err), DP_ARGUMENT);
    assert_int_equal(open_device("cpu", "bf16", used, &err), DP_ARGUMENT);
    assert_non_null(strstr(err.text, "the CPU computes in f32"));
}

/* Without the plugin beside this program, or without a GPU, "cuda" says what it misses. */
static void what_cuda_misses_is_said(void **state)
{
    struct dp_error err;
    enum dp_status st = open_device("cuda", "f32", NULL, &err);
    if (st == DP_OK)
        skip();
    assert_int_equal(st, DP_NOT_FOUND);
    assert_non_null(strstr(err.text, "device cuda: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(what_cuda_misses_is_said)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
