#include "worker/compute/cpu/blas.h"

#include <cblas.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Exported by builds that choose kernels at run time, though in no header; hence weak. */
void gotoblas_dynamic_quit(void) __attribute__((weak));
void gotoblas_dynamic_init(void) __attribute__((weak));

/* The best kernels for this processor, by OpenBLAS's name; NULL: its own choice is right. */
static const char *kernels_for_processor(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        return "SKYLAKEX";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return "HASWELL";
#endif
    return NULL;
}

static void choose_kernels(void)
{
    const char *better = kernels_for_processor();
    if (!better || !gotoblas_dynamic_quit || !gotoblas_dynamic_init)
        return;
    /* The user's setting wins. */
    if (getenv("OPENBLAS_CORETYPE") || strcmp(openblas_get_corename(), "Prescott") != 0)
        return;
    if (setenv("OPENBLAS_CORETYPE", better, 1) != 0)
        return;
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
    (void)unsetenv("OPENBLAS_CORETYPE");
}

void dp_blas_init(int threads)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, choose_kernels);
    openblas_set_num_threads(threads);
}
