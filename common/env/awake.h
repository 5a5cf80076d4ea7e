/* Awake clock: the time in which this process ran. A suspension (Ctrl-Z, a debugger, a virtual machine that
 * is paused) takes time on the clock below, and hardly any here.
 * Promise   Between two looks it follows the clock below, by at most most_ns: a suspension counts for no
 *           more, wherever it begins. It starts at the time of the clock below, and never goes back.
 * Why       A deadline in this time needs no care after a suspension. A long gap is cut short and not left
 *           out: deadlines come, though late, also where every look is late (a machine with too much to do).
 * Use       A caller that waits looks every most_ns.
 * Thread    One. */
#ifndef DP_ENV_AWAKE_H
#define DP_ENV_AWAKE_H

#include "common/env/clock.h"

struct dp_awake {
    struct dp_clock clock;
    uint64_t most_ns;   /* that a gap between two looks counts */
    uint64_t looked_ns; /* the clock's time at the last look */
    uint64_t now_ns;
};

static inline struct dp_awake dp_awake_over(const struct dp_clock *clock, uint64_t most_ns)
{
    uint64_t now_ns = dp_clock_ns(clock);
    return (struct dp_awake){.clock = *clock, .most_ns = most_ns, .looked_ns = now_ns, .now_ns = now_ns};
}

static inline uint64_t dp_awake_ns(struct dp_awake *awake)
{
    uint64_t clock_ns = dp_clock_ns(&awake->clock);
    uint64_t gap_ns = clock_ns > awake->looked_ns ? clock_ns - awake->looked_ns : 0;
    awake->looked_ns = clock_ns;
    awake->now_ns += gap_ns < awake->most_ns ? gap_ns : awake->most_ns;
    return awake->now_ns;
}

#endif
