/* What a test brings about in the emulated device; the plugin's symbol `emulator` (dlsym). */
#ifndef DP_TESTS_EMULATOR_H
#define DP_TESTS_EMULATOR_H

#include <stdbool.h>
#include <stddef.h>

struct emulator {
    bool stuck;          /* nothing is ever done */
    bool faulty;         /* every call answers with an illegal address, as after a fault of a kernel */
    int blas_open;       /* what cuBLAS says when it is opened: its number */
    int blas_product;    /* and to products */
    size_t memory, used; /* bytes */
    unsigned asked;      /* calls that would wait for a stuck device for ever: none is to be made */
};

#endif
