/* Deadline: CLOCK_MONOTONIC in milliseconds, and a point on it for the waits of pthread_cond_timedwait. */
#ifndef DP_BASE_DEADLINE_H
#define DP_BASE_DEADLINE_H

#include <stdint.h>
#include <time.h>

static inline struct timespec dp_deadline_in_ms(uint32_t timeout_ms)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += timeout_ms / 1000;
    t.tv_nsec += (long)(timeout_ms % 1000) * 1000000L;
    if (t.tv_nsec >= 1000000000L) {
        t.tv_nsec -= 1000000000L;
        t.tv_sec++;
    }
    return t;
}

static inline uint64_t dp_now_ms(void)
{
    struct timespec now = dp_deadline_in_ms(0);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

#endif
