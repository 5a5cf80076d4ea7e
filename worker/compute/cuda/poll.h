/* Poll: waiting with a deadline by polling. CUDA's own waits have none: a device that hangs would block its
 * worker for ever. At first it polls without a pause, then with pauses of an eighth of the time waited so
 * far (at most 1 ms). So a wait ends late by at most an eighth of its length.
 * Thread    The caller's. Plain C, so that it is tested without a GPU. Private to this folder. */
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

/* Polls at least once. False when it was not done at the deadline. */
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
