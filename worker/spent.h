/* Spent: where the time of a worker's steps went. A stopwatch gives what passed since its last lap to one kind, so the
 * host's kinds together are all of the time, with nothing counted twice.
 *     read        for the reader's minibatch
 *     pull        keys, and requests sent            waiting_pull     for the rows of a minibatch
 *     compute     operations, on the host            waiting_device   for a device that has not finished
 *     push        gradients gathered, checked, sent  waiting_push     for room among those that are not answered
 *     other       evaluation's orders, progress, what is between
 * Beside them, as a device's own clock tells: what it spent on copy_in, compute and copy_out. They overlap one another and the
 * host's, so they are no part of its sum; without a device they are 0, as nothing is copied.
 * Costs     A reading of the clock a lap: 25 ns.
 * Thread    The loop's. */
#ifndef DP_WORKER_SPENT_H
#define DP_WORKER_SPENT_H

#include "common/env/clock.h"

#include <stdbool.h>
#include <stddef.h>

enum dp_spent_on {
    DP_SPENT_READ,
    DP_SPENT_PULL,
    DP_SPENT_COMPUTE,
    DP_SPENT_PUSH,
    DP_SPENT_WAITING_PULL,
    DP_SPENT_WAITING_PUSH,
    DP_SPENT_WAITING_DEVICE,
    DP_SPENT_OTHER,
    DP_SPENT_HOST, /* how many are the host's */
    DP_SPENT_DEVICE_COPY_IN = DP_SPENT_HOST,
    DP_SPENT_DEVICE_COMPUTE,
    DP_SPENT_DEVICE_COPY_OUT,
    DP_SPENT_KINDS
};

struct dp_spent {
    double seconds[DP_SPENT_KINDS];
};

/* "read", "waiting_pull", "device_copy_in", ... */
const char *dp_spent_name(enum dp_spent_on on);
/* Of the host's. */
double dp_spent_sum(const struct dp_spent *spent);
void dp_spent_merge(struct dp_spent *into, const struct dp_spent *from);
/* "read 1%, pull 4%, compute 80%, ..." of what is 0.5% and more; cut where size ends. */
void dp_spent_text(const struct dp_spent *spent, char *text, size_t size);

struct dp_stopwatch {
    const struct dp_clock *clock;
    struct dp_spent *spent;
    uint64_t at_ns;
};

static inline struct dp_stopwatch dp_stopwatch_start(const struct dp_clock *clock, struct dp_spent *spent)
{
    return (struct dp_stopwatch){.clock = clock, .spent = spent, .at_ns = dp_clock_ns(clock)};
}

/* What passed since the last lap, or since the start, was spent on `on`. */
static inline void dp_stopwatch_lap(struct dp_stopwatch *watch, enum dp_spent_on on)
{
    uint64_t now = dp_clock_ns(watch->clock);
    watch->spent->seconds[on] += (double)(now - watch->at_ns) / 1e9;
    watch->at_ns = now;
}

#endif
