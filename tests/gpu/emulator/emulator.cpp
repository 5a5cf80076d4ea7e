// The device: what there is, what a test brings about in it, and what it answers.
#include "inside.h"

#include <cstdio>
#include <cstdlib>

extern "C" {
struct emulator emulator = EMULATOR_SOUND;

__attribute__((constructor)) static void look_into_environment()
{
    const char *fault_at = std::getenv("DP_EMULATOR_FAULT_AT"), *order = std::getenv("DP_EMULATOR_ORDER"),
               *devices = std::getenv("DP_EMULATOR_DEVICES");
    if (fault_at)
        emulator.fault_at = std::strtoull(fault_at, nullptr, 10);
    if (devices)
        emulator.devices = std::atoi(devices);
    if (order)
        emulator.order = std::strtoull(order, nullptr, 10);
}
}

namespace emulated
{
static cudaError_t last;

void broken(const char *what)
{
    (void)std::fflush(stdout);
    (void)std::fprintf(stderr, "emulator: %s\n", what);
    std::abort();
}

cudaError_t answer()
{
    if (!emulator.faulty)
        return cudaSuccess;
    return emulator.fault_code ? static_cast<cudaError_t>(emulator.fault_code) : cudaErrorIllegalAddress;
}

cudaError_t say(cudaError_t code)
{
    last = code != cudaSuccess ? code : last;
    return code;
}

cudaError_t waiting()
{
    emulator.asked += emulator.stuck;
    return answer();
}
} // namespace emulated

using namespace emulated;

const char *cudaGetErrorString(cudaError_t code)
{
    return code == cudaErrorIllegalAddress ? "an illegal memory access was encountered" : "emulated";
}

const char *cudaGetErrorName(cudaError_t code)
{
#define EMULATOR_NAME(name, number)                                                                          \
    case name:                                                                                               \
        return #name;
    switch (code) {
        EMULATOR_ERRORS(EMULATOR_NAME)
    }
#undef EMULATOR_NAME
    return "unrecognized error code";
}

cudaError_t cudaGetLastError()
{
    cudaError_t code = cudaPeekAtLastError();
    last = cudaSuccess;
    return code;
}

cudaError_t cudaPeekAtLastError()
{
    return emulator.faulty ? answer() : last;
}

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= emulator.devices)
        return cudaErrorInvalidDevice;
    emulator.device = device;
    return answer();
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = emulator.devices;
    return static_cast<cudaError_t>(emulator.count_code);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = emulator.driver;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int)
{
    *value = which == cudaDevAttrComputeCapabilityMajor ? emulator.capability / 10 : emulator.capability % 10;
    return cudaSuccess;
}
