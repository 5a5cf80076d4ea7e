/* Patience: how much slower the sanitizers of a build make it, for the deadlines and the sweeps of tests. */
#ifndef DP_TESTS_LIB_PATIENCE_H
#define DP_TESTS_LIB_PATIENCE_H

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

/* Of so many seeds those that a build with sanitizers runs: they look at the code, the other build at what it does. */
#define DP_SEEDS(usual) (DP_PATIENCE > 1 ? (usual) / 5 : (usual))

#endif
