#include "server/checkpoint/pace.h"

#include <time.h>

#define SECOND_NS UINT64_C(1000000000)
#define BURST_NS  (SECOND_NS / 10)
#define SLICE_NS  (SECOND_NS / 50) /* a cancel is seen so soon */

static void wait_real(void *context, uint64_t ns)
{
    const struct timespec time = {.tv_sec = (time_t)(ns / SECOND_NS), .tv_nsec = (long)(ns % SECOND_NS)};
    (void)context;
    (void)nanosleep(&time, NULL);
}

struct dp_pace dp_pace_real(void)
{
    return (struct dp_pace){.clock = dp_clock_real(), .wait = wait_real};
}

static bool is_cancelled(const struct dp_pace *pace)
{
    return pace->cancelled && atomic_load(pace->cancelled);
}

static void do_between(const struct dp_pace *pace)
{
    if (pace->between && !is_cancelled(pace))
        pace->between(pace->between_context);
}

enum dp_status dp_pace_step(struct dp_pace *pace, uint64_t bytes, struct dp_error *err)
{
    if (!pace)
        return DP_OK;
    if (pace->done_bytes)
        atomic_fetch_add(pace->done_bytes, bytes);
    do_between(pace);
    if (pace->rate_bytes > 0 && !is_cancelled(pace)) {
        uint64_t now_ns = dp_clock_ns(&pace->clock), least = now_ns > BURST_NS ? now_ns - BURST_NS : 0;
        pace->due_ns = pace->due_ns > least ? pace->due_ns : least; /* time that was not used is gone */
        pace->due_ns += (uint64_t)((unsigned __int128)bytes * SECOND_NS / pace->rate_bytes);
        while (now_ns < pace->due_ns && !is_cancelled(pace)) {
            uint64_t left = pace->due_ns - now_ns;
            pace->wait(pace->wait_context, left < SLICE_NS ? left : SLICE_NS);
            do_between(pace);
            now_ns = dp_clock_ns(&pace->clock);
        }
    }
    return is_cancelled(pace) ? dp_fail(err, DP_STOPPING, "the copy was cancelled") : DP_OK;
}
