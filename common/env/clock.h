/* Clock: time as a struct of functions, so that a test or the simulator can set it. */
#ifndef DP_ENV_CLOCK_H
#define DP_ENV_CLOCK_H

#include <stdint.h>

struct dp_clock {
    uint64_t (*now_ns)(void *self); /* monotonic */
    void *self;
};

/* CLOCK_MONOTONIC. */
struct dp_clock dp_clock_real(void);
/* CLOCK_REALTIME: since 1970, and not monotonic. */
struct dp_clock dp_clock_wall(void);

static inline uint64_t dp_clock_ns(const struct dp_clock *clock)
{
    return clock->now_ns(clock->self);
}

#endif
