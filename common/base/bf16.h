/* bf16: the upper half of an f32 (8 exponent bits, 7 mantissa bits), rounded to nearest, ties to even.
 * NaN stays NaN; an f32 beyond the largest bf16 becomes infinite.                                     */
#ifndef DP_BASE_BF16_H
#define DP_BASE_BF16_H

#include <stdint.h>
#include <string.h>

static inline float dp_bf16_to_f32(uint16_t v)
{
    uint32_t bits = (uint32_t)v << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint16_t dp_f32_to_bf16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((bits >> 16) | 0x40u); /* NaN: keep it one when its payload is cut */
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/* n values each way; `bytes` are bf16, little endian, of any alignment. */
static inline void dp_bf16_put(const float *from, void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t half = dp_f32_to_bf16(from[i]);
        memcpy((unsigned char *)bytes + 2 * i, &half, sizeof half);
    }
}

static inline void dp_bf16_get(const void *bytes, float *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, (const unsigned char *)bytes + 2 * i, sizeof half);
        to[i] = dp_bf16_to_f32(half);
    }
}

#endif
