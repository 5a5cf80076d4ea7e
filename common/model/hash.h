/* Hash: what table ids and initial weights are drawn from; inside this room only. Pinned by known-value
 * tests: another function here is another table id and other initial rows, so a store of before would be
 * misread.
 * Source    FNV-1a (Fowler, Noll, Vo) for names; the finaliser of SplitMix64 (Steele et al. 2014), with
 *           Stafford's constants, for numbers. */
#ifndef DP_MODEL_HASH_H
#define DP_MODEL_HASH_H

#include <stdint.h>

#define DP_HASH_GOLDEN 0x9e3779b97f4a7c15u /* 2^64 / golden ratio: SplitMix64's increment */

static inline uint64_t dp_hash_mix(uint64_t v)
{
    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
    v = (v ^ v >> 27) * 0x94d049bb133111ebu;
    return v ^ v >> 31;
}

static inline uint64_t dp_hash_name(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    return dp_hash_mix(hash);
}

#endif
