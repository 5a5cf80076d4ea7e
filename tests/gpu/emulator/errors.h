/* CUDA's errors that the emulated device can answer with, by CUDA's own numbers (13.0's driver_types.h), for the emulator (C++) and for
 * tests (C). */
#ifndef DP_TESTS_GPU_EMULATOR_ERRORS_H
#define DP_TESTS_GPU_EMULATOR_ERRORS_H

#define EMULATOR_ERRORS(X)                                                                                   \
    X(cudaSuccess, 0)                                                                                        \
    X(cudaErrorMemoryAllocation, 2)                                                                          \
    X(cudaErrorInsufficientDriver, 35)                                                                       \
    X(cudaErrorNoDevice, 100)                                                                                \
    X(cudaErrorInvalidDevice, 101)                                                                           \
    X(cudaErrorNoKernelImageForDevice, 209)                                                                  \
    X(cudaErrorECCUncorrectable, 214)                                                                        \
    X(cudaErrorNvlinkUncorrectable, 220)                                                                     \
    X(cudaErrorContained, 226)                                                                               \
    X(cudaErrorNotReady, 600)                                                                                \
    X(cudaErrorIllegalAddress, 700)                                                                          \
    X(cudaErrorLaunchTimeout, 702)                                                                           \
    X(cudaErrorAssert, 710)                                                                                  \
    X(cudaErrorHostMemoryAlreadyRegistered, 712)                                                             \
    X(cudaErrorHardwareStackError, 714)                                                                      \
    X(cudaErrorIllegalInstruction, 715)                                                                      \
    X(cudaErrorMisalignedAddress, 716)                                                                       \
    X(cudaErrorInvalidAddressSpace, 717)                                                                     \
    X(cudaErrorInvalidPc, 718)                                                                               \
    X(cudaErrorLaunchFailure, 719)                                                                           \
    X(cudaErrorTensorMemoryLeak, 721)                                                                        \
    X(cudaErrorSystemDriverMismatch, 803)                                                                    \
    X(cudaErrorMpsClientTerminated, 810)                                                                     \
    X(cudaErrorExternalDevice, 911)                                                                          \
    X(cudaErrorUnknown, 999)

#define EMULATOR_ERROR(name, number) name = number,
typedef enum cudaError { EMULATOR_ERRORS(EMULATOR_ERROR) } cudaError_t;
#undef EMULATOR_ERROR

#endif
