/* Step timer: where the time of a worker's steps went. A lap adds the time since the previous lap to one
 * phase, so the host's phases add up to all of the time, with nothing counted twice.
 *     read        for the reader's minibatch
 *     pull        keys, and requests sent            waiting_pull     for the rows of a minibatch
 *     compute     operations, on the host            waiting_rule     for another worker (ssp, sync), by the
 *     injected    delays that the user asked for,                     rule that holds the rows back
 *                 as if computing took longer        waiting_push     for an answer, with pushes_max unanswered
 *     push        gradients gathered, checked, sent  waiting_device   for a device that has not finished
 *     other       progress, and what is between
 * The device's own clock also measures copy_in, compute and copy_out. They overlap each other and the host's
 * phases, so they are not part of the sum; without a device they are 0, as nothing is copied.
 * Costs     A reading of the clock a lap: 25 ns.
 * Thread    The loop's. */
#ifndef DP_TELEMETRY_STEP_TIMER_H
#define DP_TELEMETRY_STEP_TIMER_H

#include "common/env/clock.h"

#include <stdbool.h>
#include <stddef.h>

enum dp_step_phase {
    DP_PHASE_READ,
    DP_PHASE_PULL,
    DP_PHASE_COMPUTE,
    DP_PHASE_INJECTED,
    DP_PHASE_PUSH,
    DP_PHASE_WAITING_PULL,
    DP_PHASE_WAITING_RULE,
    DP_PHASE_WAITING_PUSH,
    DP_PHASE_WAITING_DEVICE,
    DP_PHASE_OTHER,
    DP_PHASE_HOST, /* number of the host's phases */
    DP_PHASE_DEVICE_COPY_IN = DP_PHASE_HOST,
    DP_PHASE_DEVICE_COMPUTE,
    DP_PHASE_DEVICE_COPY_OUT,
    DP_PHASE_KINDS
};

struct dp_step_times {
    double seconds[DP_PHASE_KINDS];
};

/* "read", "waiting_pull", "device_copy_in", ... */
const char *dp_step_phase_name(enum dp_step_phase on);
/* The sum of the host's phases. */
double dp_step_times_sum(const struct dp_step_times *times);
void dp_step_times_merge(struct dp_step_times *into, const struct dp_step_times *from);
/* "read 1%, pull 4%, compute 80%, ...": the phases of 0.5% and more, truncated to `size`. */
void dp_step_times_text(const struct dp_step_times *times, char *text, size_t size);

struct dp_step_timer {
    const struct dp_clock *clock;
    struct dp_step_times *times;
    uint64_t at_ns;
};

static inline struct dp_step_timer dp_step_timer_start(const struct dp_clock *clock,
                                                       struct dp_step_times *times)
{
    return (struct dp_step_timer){.clock = clock, .times = times, .at_ns = dp_clock_ns(clock)};
}

/* Adds the time since the last lap, or since the start, to `on`. */
static inline void dp_step_timer_lap(struct dp_step_timer *watch, enum dp_step_phase on)
{
    uint64_t now = dp_clock_ns(watch->clock);
    watch->times->seconds[on] += (double)(now - watch->at_ns) / 1e9;
    watch->at_ns = now;
}

/* Of what laps have added to `from`, ns was `to`. */
static inline void dp_step_timer_move(struct dp_step_timer *watch, uint64_t ns, enum dp_step_phase from,
                                      enum dp_step_phase to)
{
    watch->times->seconds[from] -= (double)ns / 1e9;
    watch->times->seconds[to] += (double)ns / 1e9;
}

#endif
