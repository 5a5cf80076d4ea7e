/* A plugin of another build is refused by name, before anything of it is called (stale_plugin.c); one that is there and cannot be loaded
 * is told from CUDA's libraries that are not there. */
#include "tests/lib/test.h"

#include "worker/compute/plugin.h"

#include <stdio.h>
#include <string.h>

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
    (void)state;
    static const char remedy[] = "install both from one build";
    refused("libstale_none.so", DP_VERSION, "does not say its layout");
    refused("libstale_none.so", DP_VERSION, remedy);
    refused("libstale_version.so", DP_VERSION, "its interface is number 4711, this program's is 1");
    refused("libstale_version.so", DP_VERSION, remedy);
    refused("libstale_operations.so", DP_VERSION, "the table of operations has 8 bytes there");
    refused("libstale_error.so", DP_VERSION, "an error has 12 bytes there");
    refused("libstale_closed.so", DP_VERSION, "no dp_cuda_open");
    refused("libstale_lacks.so", DP_VERSION, "lacks an operation");
}

static void what_is_not_there_is_said(void **state)
{
    (void)state;
    refused("libnowhere.so", DP_NOT_FOUND, "cannot be loaded");
    refused("libstale_runtime.so", DP_NOT_FOUND, "libno-such-runtime.so.1");
    refused("libstale_runtime.so", DP_NOT_FOUND, "is the CUDA runtime installed?");
}

static void what_is_there_and_cannot_be_loaded_is_said(void **state)
{
    (void)state;
    static const char rubbish[] = DP_PLUGINS "/librubbish.so";
    FILE *file = fopen(rubbish, "we");
    assert_non_null(file);
    assert_true(fputs("this is no library, and longer than the header of one would be: 64 bytes and more",
                      file) >= 0);
    assert_int_equal(fclose(file), 0);
    refused("librubbish.so", DP_IO, "is there and cannot be loaded");
    assert_int_equal(remove(rubbish), 0);
    refused("libstale_symbol.so", DP_IO, "dp_no_such_symbol");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_build_is_refused),
        cmocka_unit_test(what_is_not_there_is_said),
        cmocka_unit_test(what_is_there_and_cannot_be_loaded_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
