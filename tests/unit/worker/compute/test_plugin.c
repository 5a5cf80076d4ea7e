/* A plugin of another build is refused by name, before anything of it is called (stale_plugin.c); one that cannot be loaded is an error
 * where there is an NVIDIA driver, and "no GPU here" where there is none. */
#include "tests/lib/test.h"

#include "worker/compute/device.h"
#include "worker/compute/plugin.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void *__real_dlopen(const char *path, int flags);
void *__wrap_dlopen(const char *path, int flags);

static bool driver; /* this machine's, as the test has it */

void *__wrap_dlopen(const char *path, int flags)
{
    if (strcmp(path, "libcuda.so.1") == 0)
        return driver ? &driver : NULL;
    return __real_dlopen(path, flags);
}

static void refused(const char *name, enum dp_status want, const char *says)
{
    const struct dp_cuda_options options = {0};
    struct dp_backend backend;
    struct dp_error err = {0};
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", DP_PLUGINS, name);
    assert_int_equal(dp_plugin_open(path, &options, &backend, &err), want);
    assert_null(backend.ops);
    if (!strstr(err.text, says))
        fail_msg("'%s' does not say '%s'", err.text, says);
    assert_non_null(strstr(err.text, name));
}

static void another_build_is_refused(void **state)
{
    static const char remedy[] = "install both from one build";
    refused("libstale_none.so", DP_VERSION, "does not say its layout");
    refused("libstale_none.so", DP_VERSION, remedy);
    refused("libstale_version.so", DP_VERSION, "its interface is number 4711, this program's is 4");
    refused("libstale_version.so", DP_VERSION, remedy);
    refused("libstale_operations.so", DP_VERSION, "the table of operations has 8 bytes there");
    refused("libstale_error.so", DP_VERSION, "an error has 12 bytes there");
    refused("libstale_closed.so", DP_VERSION, "no dp_cuda_open");
    refused("libstale_lacks.so", DP_VERSION, "lacks an operation");
}

static void rubbish(const char *path)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs("this is no library, and longer than the header of one would be: 64 bytes and more",
                      file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* A library that it needs, a symbol, itself: whatever is wrong, the driver decides. */
static void what_cannot_be_loaded_is_an_error_where_there_is_a_driver(void **state)
{
    static const char path[] = DP_PLUGINS "/librubbish.so";
    static const char *const cases[][2] = {{"libstale_runtime.so", "libno-such-runtime.so.1"},
                                           {"libstale_symbol.so", "dp_no_such_symbol"},
                                           {"librubbish.so", "cannot be loaded"}};
    rubbish(path);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        driver = false;
        refused(cases[i][0], DP_NOT_FOUND, "this machine has no NVIDIA driver (libcuda.so.1)");
        refused(cases[i][0], DP_NOT_FOUND, cases[i][1]);
        driver = true;
        refused(cases[i][0], DP_IO, "this machine has an NVIDIA driver");
        refused(cases[i][0], DP_IO, cases[i][1]);
        refused(cases[i][0], DP_IO, "install CUDA's libraries (cudart, cublas)");
    }
    assert_int_equal(remove(path), 0);
}

/* CUDA's libraries are missing beside the program's own plugin: the CPU is taken only where no driver says that there is a GPU. */
static void auto_does_not_pass_by_a_driver_without_its_libraries(void **state)
{
    static const char beside[] = DP_PLUGINS "/libdownpour-cuda.so";
    const struct dp_device_options options = {.device = "auto", .precision = "f32", .threads = 1};
    struct dp_backend backend;
    struct dp_error err = {0};
    char used[64];
    (void)unlink(beside);
    assert_int_equal(symlink("libstale_runtime.so", beside), 0);
    driver = true;
    assert_int_equal(dp_device_open(&options, &backend, used, &err), DP_IO);
    assert_null(backend.ops);
    assert_non_null(strstr(err.text, "libno-such-runtime.so.1"));
    assert_non_null(strstr(err.text, "or choose the CPU (cpu)"));
    driver = false;
    assert_int_equal(dp_device_open(&options, &backend, used, &err), DP_OK);
    assert_string_equal(used, "cpu, 1 thread");
    dp_backend_close(&backend);
    assert_int_equal(unlink(beside), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_build_is_refused),
        cmocka_unit_test(what_cannot_be_loaded_is_an_error_where_there_is_a_driver),
        cmocka_unit_test(auto_does_not_pass_by_a_driver_without_its_libraries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
