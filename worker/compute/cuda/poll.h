/* Poll: waiting for what can only be asked, with a deadline. CUDA's own waits have none: a device that hangs would hold its
 * worker for ever. At first the question is repeated without a pause, then with pauses of an eighth of the time that was waited
 * (at most 1 ms): what is found late is late by little of what it took.
 * Thread    The caller's. Plain C, so that it is tested where there is no GPU. Inside this folder only. */
#ifndef DP_COMPUTE_CUDA_POLL_H
#define DP_COMPUTE_CUDA_POLL_H

#include <stdbool.h>
#include <stdint.h>

#define DP_POLL_BUSY_NS  50000u
#define DP_POLL_PAUSE_NS 1000000u

struct dp_poll {
    bool (*done)(void *arg);
    uint64_t (*now_ns)(void *arg); /* monotonic */
    void (*sleep_ns)(void *arg, uint64_t ns);
    void *arg;
};

/* false: it was not done when the deadline had passed. It is asked at least once. */
static inline bool dp_poll_until(const struct dp_poll *poll, uint64_t deadline_ns)
{
    for (uint64_t begun = poll->now_ns(poll->arg);;) {
        if (poll->done(poll->arg))
            return true;
        uint64_t now = poll->now_ns(poll->arg), waited = now - begun;
        if (now >= deadline_ns)
            return false;
        if (waited < DP_POLL_BUSY_NS)
            continue;
        uint64_t pause = waited / 8 < DP_POLL_PAUSE_NS ? waited / 8 : DP_POLL_PAUSE_NS;
        poll->sleep_ns(poll->arg, pause < deadline_ns - now ? pause : deadline_ns - now);
    }
}

#endif
