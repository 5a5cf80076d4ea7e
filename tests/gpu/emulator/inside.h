// What the emulator's files share: the queues, which hold all work until something forces it, and the device's answers.
#ifndef DP_TESTS_GPU_EMULATOR_INSIDE_H
#define DP_TESTS_GPU_EMULATOR_INSIDE_H

#include "cuda_runtime.h"

extern "C" struct emulator emulator;

namespace emulated
{
// emulator.cpp: a mistake of the program under test, which ends it.
[[noreturn]] void broken(const char *what);
// An illegal address once the device is faulty.
cudaError_t answer();
// Keeps a failure for cudaGetLastError, and returns it.
cudaError_t say(cudaError_t code);
// The answer of a call that may wait for the device.
cudaError_t waiting();

// streams.cpp. `names`: the words of the work's arguments, pointers among them.
void issue(cudaStream_t stream, std::function<void()> work, const words &names);
// Runs all that was issued to the stream, and what that waits for.
void settle(cudaStream_t stream);
// Whether queued work names memory in this range.
bool is_queued(const void *block, size_t bytes);

inline uintptr_t word(const void *at)
{
    return reinterpret_cast<uintptr_t>(at);
}
} // namespace emulated

#endif
