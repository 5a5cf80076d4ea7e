/* Patience: how much slower the sanitizers of a build make it, for the deadlines of tests; and how much of their sweeps they run: all with
 * DP_LONG=1 in the environment, as the campaign has it, else the short forms. */
#ifndef DP_TESTS_LIB_TIMEOUTS_H
#define DP_TESTS_LIB_TIMEOUTS_H

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

/* The number of seeds that run: a third of all; a tenth with sanitizers, which check the code, while the plain build checks its results. */
static inline unsigned dp_seeds(unsigned all)
{
    return getenv("DP_LONG") ? all : DP_PATIENCE > 1 ? all / 10 : all / 3;
}
#define DP_SEEDS(all) dp_seeds(all)

/* The distance between two places of an exhaustive sweep: `places`, or 1 in the long form. */
static inline unsigned dp_stride(unsigned places)
{
    return getenv("DP_LONG") ? 1 : places;
}

#endif
