/* What a test brings about in the emulated device; the plugin's symbol `emulator` (dlsym). */
#ifndef DP_TESTS_GPU_EMULATOR_EMULATOR_H
#define DP_TESTS_GPU_EMULATOR_EMULATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct emulator {
    bool stuck;          /* nothing is ever done */
    bool faulty;         /* every call answers with fault_code, as after a fault of a kernel */
    int blas_open;       /* what cuBLAS says when it is opened: its number */
    int blas_product;    /* and to products */
    size_t memory, used; /* bytes */
    unsigned asked;      /* calls that would wait for a stuck device for ever: none is to be made */
    int devices;         /* how many there are */
    int count_code;      /* what is said instead when they are counted (errors.h); 0: nothing */
    int driver;          /* CUDA's version that the driver is for, 12040 for 12.4; 0: there is no driver */
    int capability;      /* 90 for 9.0 */
    uint64_t launches;   /* of kernels, so far */
    uint64_t fault_at;   /* the launch with this number (from 1) makes the device faulty; 0: none does */
    int fault_code;      /* what a faulty device answers with (errors.h); 0: an illegal address */
    /* The launch with this number fails with this code and is not carried out; the device stays as it is. 0: none does. */
    uint64_t refused_at;
    int refused_code;
    int device;     /* the one that was set last */
    uint64_t order; /* what chance is drawn from, as to when the streams' work runs: any number */
};

/* The device as it is found. In the environment of a program that a test starts, DP_EMULATOR_FAULT_AT is its fault_at,
 * DP_EMULATOR_DEVICES its devices and DP_EMULATOR_ORDER its order. */
#define EMULATOR_SOUND                                                                                       \
    {                                                                                                        \
        false, false, 0, 0, (size_t)1 << 30, 0, 0, 1, 0, 13000, 90, 0, 0, 0, 0, 0, 0, 1                      \
    }

#endif
