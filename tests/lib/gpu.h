/* What a GPU test does where it lacks something (a GPU, a tool, a data set): it says what, and skips. With DP_GPU=required in the environment,
 * as on a machine that is there for these tests, that is a failure. */
#ifndef DP_TESTS_LIB_GPU_H
#define DP_TESTS_LIB_GPU_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DP_TEST_SKIPPED 77 /* ctest's SKIP_RETURN_CODE (tests/CMakeLists.txt) */
#define DP_TEST_FAILED  1

/* The exit code of the test program. */
static inline int dp_gpu_test_lacks(const char *what)
{
    const char *gpu = getenv("DP_GPU");
    if (!gpu || gpu[0] == '\0') {
        (void)printf("skipped: %s\n", what);
        return DP_TEST_SKIPPED;
    }
    if (strcmp(gpu, "required") == 0)
        (void)printf("failed: DP_GPU=required, and this test would be skipped: %s\n", what);
    else
        (void)printf("failed: DP_GPU is '%s'; only 'required' is known\n", gpu);
    return DP_TEST_FAILED;
}

#endif
