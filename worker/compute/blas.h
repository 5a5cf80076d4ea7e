/* Blas: OpenBLAS made ready: its threads, and kernels that fit this processor. Inside this room only.
 * Why   OpenBLAS before 0.3.25 (Debian 12 has 0.3.21) takes Intel processors newer than itself for a Prescott
 *       of 2004 and runs SSE3 kernels, a quarter of the speed (its issue 4267, mended by pull 4268). Where
 *       that happened on a processor with AVX2 or AVX-512, it is told the kernels by name and chooses anew.
 * Thread    Any; the choice is made once, by the first caller. It sets an environment variable for a moment:
 *           call it before threads that use the environment.                                          */
#ifndef DP_COMPUTE_BLAS_H
#define DP_COMPUTE_BLAS_H

void dp_blas_init(int threads);

#endif
