/* Mix: a bijective 64-bit mixer. Users' keys are often 0, 1, 2, ...; mixed keys spread evenly over the key
 * space, so that equal intervals of it hold about equally many rows. Everything past the client library (the
 * wire, shards, RocksDB) speaks of mixed keys; dp_unmix gives the user's key back.
 * Source    the finaliser of MurmurHash3 (Appleby), with its inverse; dp_mix(0) == 0.                  */
#ifndef DP_MODEL_MIX_H
#define DP_MODEL_MIX_H

#include <stdint.h>

static inline uint64_t dp_mix(uint64_t key)
{
    key ^= key >> 33;
    key *= 0xff51afd7ed558ccdu;
    key ^= key >> 33;
    key *= 0xc4ceb9fe1a85ec53u;
    return key ^ key >> 33;
}

static inline uint64_t dp_unmix(uint64_t mixed)
{
    mixed ^= mixed >> 33;
    mixed *= 0x9cb4b2f8129337dbu; /* inverse of 0xc4ceb9fe1a85ec53 modulo 2^64 */
    mixed ^= mixed >> 33;
    mixed *= 0x4f74430c22a54005u; /* inverse of 0xff51afd7ed558ccd modulo 2^64 */
    return mixed ^ mixed >> 33;
}

#endif
