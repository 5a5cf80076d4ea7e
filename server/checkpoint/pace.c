#include "server/checkpoint/pace.h"

#include <time.h>

#define SECOND_NS UINT64_C(1000000000)
#define BURST_NS  (SECOND_NS / 10)
#define SLICE_NS  (SECOND_NS / 50)  /* a cancel is seen so soon */
#define LOOK_NS   (SECOND_NS / 500) /* of the copy's own time, between two looks at other threads' load */
#define BUSY_PART 4u                /* others are, when they take this part of a processor */

static void wait_real(void *context, uint64_t ns)
{
    const struct timespec time = {.tv_sec = (time_t)(ns / SECOND_NS), .tv_nsec = (long)(ns % SECOND_NS)};
    (void)context;
    (void)nanosleep(&time, NULL);
}

static uint64_t cpu_ns(clockid_t clock)
{
    struct timespec time = {0};
    (void)clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * SECOND_NS + (uint64_t)time.tv_nsec;
}

static struct dp_pace_cpu cpu_real(void *context)
{
    (void)context;
    struct dp_pace_cpu cpu = {.thread_ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID)};
    cpu.process_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    return cpu;
}

struct dp_pace dp_pace_real(void)
{
    return (struct dp_pace){.clock = dp_clock_real(), .wait = wait_real, .cpu = cpu_real};
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

static void wait_until(struct dp_pace *pace, uint64_t due_ns)
{
    uint64_t now_ns = dp_clock_ns(&pace->clock);
    while (now_ns < due_ns && !is_cancelled(pace)) {
        uint64_t left = due_ns - now_ns;
        pace->wait(pace->wait_context, left < SLICE_NS ? left : SLICE_NS);
        do_between(pace);
        now_ns = dp_clock_ns(&pace->clock);
    }
}

static void keep_rate(struct dp_pace *pace, uint64_t bytes)
{
    uint64_t now_ns = dp_clock_ns(&pace->clock), least = now_ns > BURST_NS ? now_ns - BURST_NS : 0;
    pace->due_ns = pace->due_ns > least ? pace->due_ns : least; /* unused time does not count */
    pace->due_ns += (uint64_t)((unsigned __int128)bytes * SECOND_NS / pace->rate_bytes);
    wait_until(pace, pace->due_ns);
}

static void look(struct dp_pace *pace)
{
    pace->last.cpu = pace->cpu(pace->cpu_context);
    pace->last.wall_ns = dp_clock_ns(&pace->clock);
}

/* What the copy took since the last look is share_percent of the time until it goes on. */
static void keep_share(struct dp_pace *pace)
{
    if (pace->last.wall_ns == 0) {
        look(pace);
        return;
    }
    struct dp_pace_cpu cpu = pace->cpu(pace->cpu_context);
    uint64_t own = cpu.thread_ns - pace->last.cpu.thread_ns;
    if (own < LOOK_NS)
        return;
    uint64_t all = cpu.process_ns - pace->last.cpu.process_ns, others = all > own ? all - own : 0;
    uint64_t wall = dp_clock_ns(&pace->clock) - pace->last.wall_ns;
    if (others > wall / BUSY_PART)
        wait_until(pace, pace->last.wall_ns + own * 100 / pace->share_percent);
    look(pace);
}

enum dp_status dp_pace_step(struct dp_pace *pace, uint64_t bytes, struct dp_error *err)
{
    if (!pace)
        return DP_OK;
    if (pace->done_bytes)
        atomic_fetch_add(pace->done_bytes, bytes);
    do_between(pace);
    if (pace->rate_bytes > 0 && !is_cancelled(pace))
        keep_rate(pace, bytes);
    if (pace->share_percent > 0 && !is_cancelled(pace))
        keep_share(pace);
    return is_cancelled(pace) ? dp_fail(err, DP_STOPPING, "the copy was cancelled") : DP_OK;
}
