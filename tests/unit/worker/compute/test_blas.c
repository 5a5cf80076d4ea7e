/* Blas: a processor with AVX2 or more does not run kernels of 2004, whatever OpenBLAS took it for. */
#include "tests/lib/test.h"

#include "worker/compute/backend.h"

#include <stdlib.h>
#include <string.h>

char *openblas_get_corename(void);
int openblas_get_num_threads(void);

static void kernels_fit_the_processor(void **state)
{
    struct dp_backend backend;
    bool chosen_by_user = getenv("OPENBLAS_CORETYPE") != NULL;
    for (int again = 0; again < 2; again++) {
        assert_int_equal(dp_backend_cpu(1, &backend, NULL), DP_OK);
        assert_int_equal(openblas_get_num_threads(), 1);
#if defined(__x86_64__)
        if (!chosen_by_user && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
            assert_string_not_equal(openblas_get_corename(), "Prescott");
#endif
        assert_true(chosen_by_user || !getenv("OPENBLAS_CORETYPE"));
        dp_backend_close(&backend);
    }
    print_message("OpenBLAS kernels: %s\n", openblas_get_corename());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_fit_the_processor)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
