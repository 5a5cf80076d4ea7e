/* Bytes: explicit-width little-endian loads and stores (for disk and wire), and big-endian u32/u64 for keys
 * whose byte order must be their numeric order. No alignment is needed. */
#ifndef DP_BASE_BYTES_H
#define DP_BASE_BYTES_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "frames are lent to tables as they came: little endian");

static inline uint32_t dp_load_u32le(const void *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof v);
    return v;
}
static inline uint64_t dp_load_u64le(const void *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof v);
    return v;
}
static inline void dp_store_u32le(void *at, uint32_t v)
{
    memcpy(at, &v, sizeof v);
}
static inline void dp_store_u64le(void *at, uint64_t v)
{
    memcpy(at, &v, sizeof v);
}
static inline uint32_t dp_load_u32be(const void *at)
{
    return __builtin_bswap32(dp_load_u32le(at));
}
static inline uint64_t dp_load_u64be(const void *at)
{
    return __builtin_bswap64(dp_load_u64le(at));
}
static inline void dp_store_u32be(void *at, uint32_t v)
{
    dp_store_u32le(at, __builtin_bswap32(v));
}
static inline void dp_store_u64be(void *at, uint64_t v)
{
    dp_store_u64le(at, __builtin_bswap64(v));
}

#endif
