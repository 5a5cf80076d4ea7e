/* Random: a seeded stream for the tests of this room (SplitMix64), so that a failure repeats. */
#ifndef DP_TESTS_UNIT_MODEL_RANDOM_H
#define DP_TESTS_UNIT_MODEL_RANDOM_H

#include <math.h>
#include <stdint.h>

static inline uint64_t random_u64(uint64_t *state)
{
    uint64_t v = *state += 0x9e3779b97f4a7c15u;
    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
    v = (v ^ v >> 27) * 0x94d049bb133111ebu;
    return v ^ v >> 31;
}

/* [0, 1) */
static inline double random_unit(uint64_t *state)
{
    return (double)(random_u64(state) >> 11) * 0x1p-53;
}

/* Of either sign; its size is spread evenly over the powers of two from about 10^low to 10^high. */
static inline float random_log(uint64_t *state, double low, double high)
{
    int exponent = (int)floor((low + (high - low) * random_unit(state)) * 3.3219280948873623);
    double size = ldexp(1.0 + random_unit(state), exponent);
    return (float)(random_u64(state) & 1 ? size : -size);
}

#endif
