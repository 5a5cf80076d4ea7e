#include "common/env/clock.h"

#include <stddef.h>
#include <time.h>

static uint64_t monotonic_ns(void *self)
{
    (void)self;
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct dp_clock dp_clock_real(void)
{
    return (struct dp_clock){.now_ns = monotonic_ns, .self = NULL};
}
