/* What "auto" does with each answer of the plugin beside it (refusing_plugin.c): it takes the CPU where there is no GPU for this build,
 * and never where there is one that fails. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* of what the linker puts in place of others */
#include "tests/lib/test.h"

#include "worker/compute/device.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

ssize_t __real_readlink(const char *path, char *to, size_t size);

static bool hidden;      /* /proc */
static int access_errno; /* what looking for the plugin gives; 0: the truth */

int __real_access(const char *path, int mode);

int __wrap_access(const char *path, int mode)
{
    if (access_errno == 0)
        return __real_access(path, mode);
    errno = access_errno;
    return -1;
}

ssize_t __wrap_readlink(const char *path, char *to, size_t size)
{
    if (!hidden)
        return __real_readlink(path, to, size);
    errno = ENOENT;
    return -1;
}

static enum dp_status answer(const char *device, const char *precision, enum dp_status plugin_says,
                             char *used, struct dp_error *err)
{
    const struct dp_device_options options = {
        .device = device, .precision = precision, .threads = 1, .wait_ms = (uint32_t)plugin_says};
    struct dp_backend backend;
    *err = (struct dp_error){0};
    enum dp_status st = dp_device_open(&options, &backend, used, err);
    assert_true((st == DP_OK) == (backend.ops != NULL));
    dp_backend_close(&backend);
    return st;
}

static void only_what_is_not_there_is_passed_by(void **state)
{
    static const enum dp_status passed[] = {DP_NOT_FOUND, DP_UNSUPPORTED};
    static const enum dp_status kept[] = {DP_NOMEM, DP_IO, DP_VERSION, DP_ARGUMENT, DP_INTERNAL};
    struct dp_error err;
    char used[64];
    assert_int_equal(answer("auto", "tf32", DP_OK, used, &err), DP_OK);
    assert_string_equal(used, "cuda:0, tf32");
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++) {
        assert_int_equal(answer("auto", "tf32", passed[i], used, &err), DP_OK);
        assert_string_equal(used, "cpu, 1 thread");
        assert_int_equal(answer("cuda:1", "tf32", passed[i], used, &err), passed[i]);
        assert_string_equal(err.text, "device cuda:1: the plugin says so");
    }
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        assert_int_equal(answer("auto", "f32", kept[i], used, &err), kept[i]);
        assert_string_equal(err.text, "device auto: the plugin says so; or choose the CPU (cpu)");
    }
}

/* On the CPU there is no tf32: the log says that it is not had. */
static void the_log_says_what_was_taken(void **state)
{
    struct dp_error err;
    char line[512] = "";
    FILE *file = tmpfile();
    int kept = dup(STDERR_FILENO);
    assert_true(file && kept >= 0);
    assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
    enum dp_status st = answer("auto", "tf32", DP_NOT_FOUND, NULL, &err);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    (void)close(kept);
    assert_int_equal(st, DP_OK);
    rewind(file);
    assert_true(fread(line, 1, sizeof line - 1, file) > 0);
    (void)fclose(file);
    assert_non_null(strstr(line, "using the CPU, in f32 instead of tf32: the plugin says so"));
}

static void where_the_program_lies_cannot_be_told(void **state)
{
    struct dp_error err;
    char used[64];
    hidden = true;
    assert_int_equal(answer("auto", "f32", DP_OK, used, &err), DP_IO);
    assert_non_null(strstr(err.text, "cannot find this program's directory"));
    hidden = false;
    assert_int_equal(answer("auto", "f32", DP_OK, used, &err), DP_OK);
}

/* What is there without the right to read it would fail when it is loaded: here it does not. */
static void only_a_plugin_that_is_not_there_is_none(void **state)
{
    struct dp_error err;
    char used[64];
    access_errno = ENOENT;
    assert_int_equal(answer("auto", "f32", DP_OK, used, &err), DP_OK);
    assert_string_equal(used, "cpu, 1 thread");
    access_errno = EACCES;
    assert_int_equal(answer("auto", "f32", DP_OK, used, &err), DP_OK);
    assert_string_equal(used, "cuda:0, f32");
    access_errno = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_the_program_lies_cannot_be_told),
        cmocka_unit_test(only_what_is_not_there_is_passed_by),
        cmocka_unit_test(the_log_says_what_was_taken),
        cmocka_unit_test(only_a_plugin_that_is_not_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
