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

/* Eight lanes, in whatever registers the build has. */
typedef uint32_t dp_bf16_wide __attribute__((vector_size(32)));
typedef int32_t dp_bf16_signed __attribute__((vector_size(32)));
typedef uint16_t dp_bf16_half __attribute__((vector_size(16)));

/* n values each way; `bytes` are bf16, little endian, of any alignment. What they give is what the functions
 * above give; lanes, because a loop over those is six times slower as compilers translate it. */
static inline void dp_bf16_put(const float *from, void *bytes, size_t n)
{
    unsigned char *to = (unsigned char *)bytes;
    const size_t whole = n / 8 * 8;
    for (size_t i = 0; i < whole; i += 8) {
        dp_bf16_wide bits;
        memcpy(&bits, from + i, sizeof bits);
        dp_bf16_wide nan = (dp_bf16_wide)((dp_bf16_signed)(bits & 0x7fffffffu) > 0x7f800000);
        dp_bf16_wide rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
        dp_bf16_wide out = (nan & (bits >> 16 | 0x40u)) | (~nan & rounded);
        dp_bf16_half half = __builtin_convertvector(out, dp_bf16_half);
        memcpy(to + 2 * i, &half, sizeof half);
    }
    for (size_t i = whole; i < n; i++) {
        uint16_t half = dp_f32_to_bf16(from[i]);
        memcpy(to + 2 * i, &half, sizeof half);
    }
}

static inline void dp_bf16_get(const void *bytes, float *to, size_t n)
{
    const unsigned char *from = (const unsigned char *)bytes;
    const size_t whole = n / 8 * 8;
    for (size_t i = 0; i < whole; i += 8) {
        dp_bf16_half half;
        memcpy(&half, from + 2 * i, sizeof half);
        dp_bf16_wide bits = __builtin_convertvector(half, dp_bf16_wide) << 16;
        memcpy(to + i, &bits, sizeof bits);
    }
    for (size_t i = whole; i < n; i++) {
        uint16_t half;
        memcpy(&half, from + 2 * i, sizeof half);
        to[i] = dp_bf16_to_f32(half);
    }
}

#endif
