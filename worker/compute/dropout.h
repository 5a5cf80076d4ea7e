/* Dropout: which elements stay, a function of (seed, element) alone, the same on every backend.
 * Source    splitmix64's output function (Steele, Lea, Flood 2014). */
#ifndef DP_COMPUTE_DROPOUT_H
#define DP_COMPUTE_DROPOUT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define DP_DROPOUT_FUNCTION __host__ __device__ static inline
#else
#define DP_DROPOUT_FUNCTION static inline
#endif

/* rate of 2^24 */
DP_DROPOUT_FUNCTION uint32_t dp_dropout_threshold(float rate)
{
    return (uint32_t)(rate * 16777216.0f);
}

DP_DROPOUT_FUNCTION bool dp_dropout_keeps(uint64_t seed, uint64_t element, uint32_t threshold)
{
    uint64_t z = seed + (element + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 40) >= threshold;
}

#endif
