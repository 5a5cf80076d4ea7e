/* Blas: sets OpenBLAS's threads, and kernels that fit this processor. Private to this room.
 * Why   OpenBLAS before 0.3.25 (Debian 12 has 0.3.21) takes Intel processors newer than itself for a Prescott
 *       of 2004 and runs SSE3 kernels, at a quarter of the speed (its issue 4267, fixed by pull 4268). If
 *       that happened on a processor with AVX2 or AVX-512, this sets the kernels by name and makes it choose
 *       again.
 * Thread    Any; the first call chooses. It sets an environment variable for a moment: call it before
 *           starting threads that use the environment. */
#ifndef DP_COMPUTE_CPU_BLAS_H
#define DP_COMPUTE_CPU_BLAS_H

void dp_blas_init(int threads);

#endif
