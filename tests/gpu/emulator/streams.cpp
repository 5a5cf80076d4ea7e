/* Queues: each stream's work, in its order; nothing runs when it is issued unless chance says so.
 *     issue -> queue -> (a query, a synchronize, a copy that blocks: forced; or chance: early) -> run
 * Why   A device runs what no event orders in any order. What is forced runs with what it waits for and no more, so that a
 *       missing order leaves its data unwritten; the streams that run early find what is overwritten too soon.
 * Holds An operation runs after those before it in its stream, and after the records that its stream waits for.
 *       A sequence of calls and emulator.order decide all of it. */
#include "inside.h"

#include <deque>
#include <memory>
#include <vector>

namespace emulated
{
struct record { // of an event, once
    cudaStream_t on;
    bool done, asked;
    uint64_t at; // which operation of the device it was
};

struct operation {
    std::function<void()> work;
    words names;
    std::shared_ptr<record> awaited, recorded;
};

enum pace { LATE, EARLY, MIXED };
} // namespace emulated

using namespace emulated;

struct emulated_stream {
    std::deque<operation> queue;
    pace is;
    bool asked;
};

struct emulated_event {
    std::shared_ptr<record> last;
};

static uint64_t ran;

static std::vector<cudaStream_t> &streams()
{
    static emulated_stream legacy;
    static std::vector<cudaStream_t> all = {&legacy};
    return all;
}

static cudaStream_t of(cudaStream_t stream)
{
    return stream ? stream : streams()[0];
}

static uint64_t draw(uint64_t below)
{
    uint64_t z = emulator.order += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % below;
}

static void draw_paces()
{
    for (cudaStream_t stream : streams())
        stream->is = static_cast<pace>(draw(3));
}

// What a device that hangs or has failed was to do is never done, even after the test has a sound one again.
static void drop_what_is_lost()
{
    if (emulator.stuck || emulator.faulty)
        for (cudaStream_t stream : streams())
            stream->queue.clear();
}

static void run_first(cudaStream_t stream)
{
    operation first = std::move(stream->queue.front());
    stream->queue.pop_front();
    ran++;
    if (first.work && !emulator.faulty)
        first.work();
    if (first.recorded) {
        first.recorded->done = true;
        first.recorded->at = ran;
    }
}

static bool is_ready(cudaStream_t stream)
{
    if (stream->queue.empty())
        return false;
    const std::shared_ptr<record> &awaited = stream->queue.front().awaited;
    return !awaited || awaited->done;
}

static void run_early()
{
    for (cudaStream_t stream : streams()) {
        uint64_t most = stream->is == EARLY ? UINT64_MAX : stream->is == MIXED ? draw(4) : 0;
        while (most-- > 0 && is_ready(stream))
            run_first(stream);
    }
}

// Runs the stream's first operation, and what that waits for. A record's stream has had all of it queued before.
static void force_first(cudaStream_t stream)
{
    if (stream->queue.empty())
        broken("a wait for an event whose work was lost with its device");
    std::shared_ptr<record> awaited = stream->queue.front().awaited;
    while (awaited && !awaited->done)
        force_first(awaited->on);
    run_first(stream);
}

static void add(cudaStream_t stream, operation what)
{
    if (!emulator.stuck && !emulator.faulty)
        of(stream)->queue.push_back(std::move(what));
    drop_what_is_lost();
    run_early();
}

void emulated::issue(cudaStream_t stream, std::function<void()> work, const words &names)
{
    add(stream, {std::move(work), names, nullptr, nullptr});
}

void emulated::settle(cudaStream_t stream)
{
    drop_what_is_lost();
    while (!of(stream)->queue.empty())
        force_first(of(stream));
    draw_paces();
}

bool emulated::is_queued(const void *block, size_t bytes)
{
    drop_what_is_lost();
    for (cudaStream_t stream : streams())
        for (const operation &each : stream->queue)
            for (uintptr_t name : each.names)
                if (name - word(block) < bytes)
                    return true;
    return false;
}

static bool is_done(const std::shared_ptr<record> &record)
{
    return !record || record->done;
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    *out = new emulated_event{};
    return answer();
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return answer();
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    event->last = std::make_shared<record>(record{of(stream), false, false, 0});
    add(stream, {nullptr, {}, nullptr, event->last});
    return answer();
}

// For the record that is the last now; one that comes later is not waited for.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    add(stream, {nullptr, {}, event->last, nullptr});
    return answer();
}

static void reach(const std::shared_ptr<record> &record)
{
    while (!is_done(record))
        force_first(record->on);
    draw_paces();
}

// The first question is answered by "not yet", so that callers must ask again; the second forces what it asks for.
cudaError_t cudaEventQuery(cudaEvent_t event)
{
    drop_what_is_lost();
    if (emulator.stuck)
        return say(cudaErrorNotReady);
    if (emulator.faulty)
        return answer();
    run_early();
    if (!is_done(event->last) && !event->last->asked) {
        event->last->asked = true;
        return say(cudaErrorNotReady);
    }
    reach(event->last);
    return answer();
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    drop_what_is_lost();
    if (!emulator.stuck && !emulator.faulty)
        reach(event->last);
    return waiting();
}

// By a clock that counts operations, 10 us each.
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    if (emulator.faulty)
        return answer();
    if (!from->last || !to->last)
        broken("the time of an event that was not recorded");
    if (!from->last->done || !to->last->done)
        return say(cudaErrorNotReady);
    *ms = 0.01f * static_cast<float>(static_cast<int64_t>(to->last->at - from->last->at));
    return answer();
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    if (flags != cudaStreamNonBlocking)
        broken("only streams that the legacy stream does not order are emulated");
    *out = new emulated_stream{};
    (*out)->is = static_cast<pace>(draw(3));
    streams().push_back(*out);
    return answer();
}

// Stricter than CUDA, which would finish the work first.
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    drop_what_is_lost();
    if (!stream->queue.empty())
        broken("a stream is destroyed with work in its queue");
    for (size_t i = 1; i < streams().size(); i++)
        if (streams()[i] == stream)
            streams().erase(streams().begin() + static_cast<long>(i));
    delete stream;
    return answer();
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    drop_what_is_lost();
    if (emulator.stuck)
        return say(cudaErrorNotReady);
    run_early();
    if (!of(stream)->queue.empty() && !of(stream)->asked) {
        of(stream)->asked = true;
        return say(cudaErrorNotReady);
    }
    of(stream)->asked = false;
    settle(stream);
    return answer();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    settle(stream);
    return waiting();
}

cudaError_t cudaDeviceSynchronize()
{
    for (cudaStream_t stream : streams())
        settle(stream);
    return waiting();
}
