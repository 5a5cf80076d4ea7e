/* Hash: the hash of bytes and the mixer of numbers for all of the tree, where no adversary chooses them.
 * Keys of rows have a mixer with an inverse of their own (common/model/mix.h).
 * Promise   Pinned: table ids, initial rows, keys of words and categories, and sums in files depend on these values.
 * Source    FNV-1a, 64 bits (Fowler, Noll, Vo); the finalizer of SplitMix64 (Steele et al. 2014) with Stafford's constants. */
#ifndef DP_BASE_HASH_H
#define DP_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DP_HASH_BEGIN  UINT64_C(0xcbf29ce484222325) /* of no bytes */
#define DP_HASH_GOLDEN UINT64_C(0x9e3779b97f4a7c15) /* 2^64 / golden ratio: SplitMix64's increment */

/* The hash of what `hash` is of, and of these bytes behind it. */
static inline uint64_t dp_hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static inline uint64_t dp_hash_text(const char *text)
{
    return dp_hash_bytes(DP_HASH_BEGIN, text, strlen(text));
}

static inline uint64_t dp_hash_mix(uint64_t v)
{
    v = (v ^ v >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    v = (v ^ v >> 27) * UINT64_C(0x94d049bb133111eb);
    return v ^ v >> 31;
}

#endif
