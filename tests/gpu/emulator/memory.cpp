// The device's memory, pinned memory, and copies, which happen when their turn in the queue comes.
#include "inside.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

using namespace emulated;

typedef std::map<const char *, size_t> ranges; // address to bytes

static ranges &blocks()
{
    static ranges all;
    return all;
}

static ranges &pinned()
{
    static ranges all;
    return all;
}

static bool lies_in(const ranges &all, const void *from, size_t bytes)
{
    const char *at = static_cast<const char *>(from);
    auto after = all.upper_bound(at);
    return after != all.begin() && (--after, at + bytes <= after->first + after->second);
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    if (emulator.faulty)
        return answer();
    if (bytes > emulator.memory - emulator.used)
        return say(cudaErrorMemoryAllocation);
    *out = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!*out)
        return say(cudaErrorMemoryAllocation);
    std::memset(*out, 0x7f, bytes);
    blocks()[static_cast<char *>(*out)] = bytes;
    emulator.used += bytes;
    return cudaSuccess;
}

// CUDA happens to wait for the device here. That is not to be leaned on: freed while work is queued for it, memory is freed too early.
cudaError_t cudaFree(void *block)
{
    auto found = blocks().find(static_cast<char *>(block));
    if (!block)
        return answer();
    if (found == blocks().end())
        broken("memory is freed that was not allocated");
    if (is_queued(block, found->second))
        broken("memory is freed while queued work names it");
    emulator.used -= found->second;
    blocks().erase(found);
    std::free(block);
    return waiting();
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
    *left = emulator.memory - emulator.used;
    *all = emulator.memory;
    return answer();
}

static void check_device(const void *at, size_t bytes)
{
    if (!lies_in(blocks(), at, bytes))
        broken("a copy or memset goes beside the device's memory");
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream)
{
    if (emulator.faulty)
        return answer();
    check_device(at, bytes);
    issue(stream, [=] { std::memset(at, value, bytes); }, {word(at)});
    return answer();
}

/* Pinned host memory is read or written when the copy's turn comes. Other memory, as CUDA's "API synchronization behavior" says:
 * copies to the device read it before the call returns, but may reach the device later; copies from the device are done when the
 * call returns. Both may wait for the stream. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    bool in = kind == cudaMemcpyHostToDevice, is_pinned = lies_in(pinned(), in ? from : to, bytes);
    if (!is_pinned)
        (void)waiting();
    if (emulator.faulty)
        return answer();
    check_device(in ? to : from, bytes);
    if (in && !is_pinned) {
        const char *first = static_cast<const char *>(from);
        std::vector<char> staged(first, first + bytes);
        issue(stream, [=] { std::memcpy(to, staged.data(), bytes); }, {word(to)});
    } else {
        issue(stream, [=] { std::memcpy(to, from, bytes); }, {word(to), word(from)});
        if (!is_pinned)
            settle(stream);
    }
    return answer();
}

cudaError_t cudaHostRegister(void *host, size_t bytes, unsigned)
{
    if (!emulator.faulty)
        pinned()[static_cast<char *>(host)] = bytes;
    return answer();
}

cudaError_t cudaHostUnregister(void *host)
{
    auto found = pinned().find(static_cast<char *>(host));
    if (found != pinned().end() && is_queued(host, found->second))
        broken("host memory is unpinned while a queued copy names it");
    if (found != pinned().end())
        pinned().erase(found);
    return waiting();
}
