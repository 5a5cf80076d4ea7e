#include "common/env/clock.h"

#include <stddef.h>
#include <time.h>

static uint64_t ns_of(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t monotonic_ns(void *self)
{
    (void)self;
    return ns_of(CLOCK_MONOTONIC);
}

static uint64_t wall_ns(void *self)
{
    (void)self;
    return ns_of(CLOCK_REALTIME);
}

struct dp_clock dp_clock_real(void)
{
    return (struct dp_clock){.now_ns = monotonic_ns, .self = NULL};
}

struct dp_clock dp_clock_wall(void)
{
    return (struct dp_clock){.now_ns = wall_ns, .self = NULL};
}
