/* Patience: how much slower the sanitizers of a build make it, for the deadlines of tests; and how much of their sweeps they run: all with
 * DP_LONG=1 in the environment, as the campaign has it, else the short forms. */
#ifndef DP_TESTS_LIB_PATIENCE_H
#define DP_TESTS_LIB_PATIENCE_H

#include <stdlib.h>

#if defined(__SANITIZE_THREAD__)
#define DP_PATIENCE 6u
#elif defined(__SANITIZE_ADDRESS__)
#define DP_PATIENCE 3u
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define DP_PATIENCE 6u
#endif
#endif
#ifndef DP_PATIENCE
#define DP_PATIENCE 1u
#endif

/* Of so many seeds those that run: a third; a tenth with sanitizers, which look at the code, as the other build does at what it does. */
static inline unsigned dp_seeds(unsigned all)
{
    return getenv("DP_LONG") ? all : DP_PATIENCE > 1 ? all / 10 : all / 3;
}
#define DP_SEEDS(all) dp_seeds(all)

/* From one place of an exhaustive sweep to the next one: so many, or 1. */
static inline unsigned dp_stride(unsigned places)
{
    return getenv("DP_LONG") ? 1 : places;
}

#endif
