// Steps under way: their marks, and waiting for them. No wait is CUDA's own, which have no deadline (poll.h).
#include "worker/compute/cuda/device.h"
#include "worker/compute/cuda/poll.h"

#include <inttypes.h>
#include <time.h>

// Polls the event, or the stream if there is none.
struct question {
    cudaEvent_t event;
    cudaStream_t stream;
    cudaError_t answer;
};

static bool answered(void *arg)
{
    struct question *question = static_cast<struct question *>(arg);
    question->answer = question->event ? cudaEventQuery(question->event) : cudaStreamQuery(question->stream);
    if (question->answer != cudaErrorNotReady)
        return true;
    (void)cudaGetLastError(); // it would be taken for the next kernel's
    return false;
}

static uint64_t now_ns(void *arg)
{
    struct timespec t;
    (void)arg;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

static void sleep_ns(void *arg, uint64_t ns)
{
    const struct timespec t = {static_cast<time_t>(ns / 1000000000u), static_cast<long>(ns % 1000000000u)};
    (void)arg;
    (void)nanosleep(&t, NULL); // woken early by a signal, it is asked early
}

static uint64_t ns_of(uint32_t ms)
{
    return static_cast<uint64_t>(ms) * 1000000u;
}

static void await(struct dp_cuda *cuda, struct question question, uint64_t since_ns, uint32_t ms,
                  const char *what)
{
    const struct dp_poll poll = {answered, now_ns, sleep_ns, &question};
    if (cuda->lost)
        return;
    if (dp_poll_until(&poll, since_ns + ns_of(ms))) {
        dp_cuda_note(cuda, question.answer, what);
        return;
    }
    cuda->lost = true;
    if (cuda->failed.status == DP_OK)
        (void)dp_fail(&cuda->failed, DP_IO,
                      "CUDA, %s: device %d is not done within %" PRIu32
                      " ms: it hangs, or other programs use it (nvidia-smi, dmesg | grep Xid); restart this "
                      "process, on another device if this repeats",
                      what, cuda->device, ms);
}

void dp_cuda_wait_all(struct dp_cuda *cuda, uint32_t ms)
{
    uint64_t since = now_ns(NULL);
    await(cuda, {NULL, cuda->in, cudaSuccess}, since, ms, "a copy to the device");
    await(cuda, {NULL, cuda->stream, cudaSuccess}, since, ms, "a kernel");
    await(cuda, {NULL, cuda->out, cudaSuccess}, since, ms, "a copy from the device");
}

static enum dp_status finish(void *self, struct dp_error *err)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    dp_cuda_wait_all(cuda, cuda->wait_ms);
    return dp_cuda_failed(cuda, err);
}

// Records `after` on `from`; what is issued to `to` from here on waits for it, and `begun` records its begin.
static void then(struct dp_cuda *cuda, cudaStream_t from, cudaEvent_t after, cudaStream_t to,
                 cudaEvent_t begun)
{
    dp_cuda_note(cuda, cudaEventRecord(after, from), "marking a step");
    dp_cuda_note(cuda, cudaStreamWaitEvent(to, after, 0), "ordering a step");
    dp_cuda_note(cuda, cudaEventRecord(begun, to), "marking a step");
}

static void mark(void *self, enum dp_stage stage, uint32_t number)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    struct dp_cuda_slot *slot = &cuda->slot[number];
    slot->issued_ns = now_ns(NULL);
    if (cuda->lost)
        return;
    if (stage == DP_STAGE_IN)
        dp_cuda_note(cuda, cudaEventRecord(slot->in_begun, cuda->in), "marking a step");
    else if (stage == DP_STAGE_COMPUTE)
        then(cuda, cuda->in, slot->in_done, cuda->stream, slot->compute_begun);
    else if (stage == DP_STAGE_OUT)
        then(cuda, cuda->stream, slot->compute_done, cuda->out, slot->out_begun);
    else
        dp_cuda_note(cuda, cudaEventRecord(slot->out_done, cuda->out), "marking a step");
}

// After the deadline, too: wait then says so at once.
static bool done(void *self, uint32_t number)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    struct dp_cuda_slot *slot = &cuda->slot[number];
    struct question question = {slot->out_done, NULL, cudaSuccess};
    return cuda->failed.status != DP_OK || answered(&question) ||
           now_ns(NULL) >= slot->issued_ns + ns_of(cuda->wait_ms);
}

static double seconds(struct dp_cuda *cuda, cudaEvent_t from, cudaEvent_t to)
{
    float ms = 0;
    dp_cuda_note(cuda, cudaEventElapsedTime(&ms, from, to), "timing a step");
    return static_cast<double>(ms) / 1e3;
}

static enum dp_status wait(void *self, uint32_t number, struct dp_device_times *times, struct dp_error *err)
{
    struct dp_cuda *cuda = dp_cuda_of(self);
    struct dp_cuda_slot *slot = &cuda->slot[number];
    await(cuda, {slot->out_done, NULL, cudaSuccess}, slot->issued_ns, cuda->wait_ms, "a kernel or copy");
    if (cuda->failed.status == DP_OK) {
        times->copy_in = seconds(cuda, slot->in_begun, slot->in_done);
        times->compute = seconds(cuda, slot->compute_begun, slot->compute_done);
        times->copy_out = seconds(cuda, slot->out_begun, slot->out_done);
    }
    return dp_cuda_failed(cuda, err);
}

void dp_cuda_set_steps(struct dp_backend_ops *ops)
{
    ops->finish = finish;
    ops->mark = mark;
    ops->done = done;
    ops->wait = wait;
}
