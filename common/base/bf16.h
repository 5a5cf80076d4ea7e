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

/* n values each way; `bytes` are bf16, little endian, of any alignment. Blocks of a fixed size without a
 * branch, so that compilers make vectors of them. The values are those of the functions above. */
static inline void dp_bf16_block(const float *from, unsigned char *bytes, int n)
{
    uint32_t bits[8];
    uint16_t out[8];
    memcpy(bits, from, (size_t)n * sizeof *from);
    for (int i = 0; i < n; i++) {
        uint32_t nan = (int32_t)(bits[i] & 0x7fffffffu) > 0x7f800000 ? 0xffffffffu : 0;
        uint32_t rounded = (bits[i] + 0x7fffu + (bits[i] >> 16 & 1u)) >> 16;
        out[i] = (uint16_t)((nan & (bits[i] >> 16 | 0x40u)) | (~nan & rounded));
    }
    memcpy(bytes, out, (size_t)n * sizeof out[0]);
}

static inline void dp_bf16_put(const float *from, void *bytes, size_t n)
{
    unsigned char *to = (unsigned char *)bytes;
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        dp_bf16_block(from + i, to + 2 * i, 8);
    for (; i < n; i++)
        dp_bf16_block(from + i, to + 2 * i, 1);
}

static inline void dp_f32_block(const unsigned char *bytes, float *to, int n)
{
    uint16_t half[8];
    uint32_t bits[8];
    memcpy(half, bytes, (size_t)n * sizeof half[0]);
    for (int i = 0; i < n; i++)
        bits[i] = (uint32_t)half[i] << 16;
    memcpy(to, bits, (size_t)n * sizeof *to);
}

static inline void dp_bf16_get(const void *bytes, float *to, size_t n)
{
    const unsigned char *from = (const unsigned char *)bytes;
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        dp_f32_block(from + 2 * i, to + i, 8);
    for (; i < n; i++)
        dp_f32_block(from + 2 * i, to + i, 1);
}

#endif
