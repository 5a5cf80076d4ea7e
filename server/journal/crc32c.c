/* A CRC is a remainder modulo a polynomial P over GF(2), so the CRC of a|b is crc(a) * x^(8 len b) + crc(b).
 * Both forms stand on that: the tables hold bytes times x^(8 k), and the lanes are joined by one product
 * each. */
#include "server/journal/crc32c.h"

#include "common/base/bytes.h"

#define POLYNOMIAL 0x82F63B78u /* reflected */

/* What bit b of a byte leaves, k bytes further on; a table entry is the sum over the bits of its index. */
#define SUM(i, a, b, c, d, e, f, g, h)                                                                       \
    (((i)&1 ? a : 0) ^ ((i)&2 ? b : 0) ^ ((i)&4 ? c : 0) ^ ((i)&8 ? d : 0) ^ ((i)&16 ? e : 0) ^              \
     ((i)&32 ? f : 0) ^ ((i)&64 ? g : 0) ^ ((i)&128 ? h : 0))
#define T0(i)                                                                                                \
    SUM(i, 0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc, 0x82f63b78)
#define T1(i)                                                                                                \
    SUM(i, 0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604, 0xfbc3faf9)
#define T2(i)                                                                                                \
    SUM(i, 0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9, 0x8b277743)
#define T3(i)                                                                                                \
    SUM(i, 0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7, 0x52a0c93f)
#define T4(i)                                                                                                \
    SUM(i, 0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae, 0x6ea2d55c)
#define T5(i)                                                                                                \
    SUM(i, 0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb, 0x1c08b7d6)
#define T6(i)                                                                                                \
    SUM(i, 0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a, 0xf56e0ef4)
#define T7(i)                                                                                                \
    SUM(i, 0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32, 0x34019664)
#define FOUR(t, i)    t(i), t((i) + 1), t((i) + 2), t((i) + 3)
#define SIXTEEN(t, i) FOUR(t, i), FOUR(t, (i) + 4), FOUR(t, (i) + 8), FOUR(t, (i) + 12)
#define QUARTER(t, i) SIXTEEN(t, i), SIXTEEN(t, (i) + 16), SIXTEEN(t, (i) + 32), SIXTEEN(t, (i) + 48)
#define TABLE(t)                                                                                             \
    {                                                                                                        \
        QUARTER(t, 0), QUARTER(t, 64), QUARTER(t, 128), QUARTER(t, 192)                                      \
    }
static const uint32_t tables[8][256] = {TABLE(T0), TABLE(T1), TABLE(T2), TABLE(T3),
                                        TABLE(T4), TABLE(T5), TABLE(T6), TABLE(T7)};

uint32_t dp_crc32c_portable(uint32_t before, const void *data, size_t bytes)
{
    const uint8_t *at = data;
    uint32_t crc = ~before;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        uint64_t x = dp_load_u64le(at) ^ crc;
        crc = tables[7][x & 255] ^ tables[6][x >> 8 & 255] ^ tables[5][x >> 16 & 255] ^
              tables[4][x >> 24 & 255] ^ tables[3][x >> 32 & 255] ^ tables[2][x >> 40 & 255] ^
              tables[1][x >> 48 & 255] ^ tables[0][x >> 56];
    }
    for (; bytes > 0; bytes--, at++)
        crc = tables[0][(crc ^ *at) & 255] ^ crc >> 8;
    return ~crc;
}

#ifdef __x86_64__
#include <nmmintrin.h>

/* a * b modulo P; the highest coefficient is bit 0. */
static uint32_t product(uint32_t a, uint32_t b)
{
    uint32_t sum = 0;
    for (uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
        sum ^= b & (0u - (uint32_t)((a & bit) != 0));
        b = b >> 1 ^ (POLYNOMIAL & (0u - (b & 1)));
    }
    return sum;
}

/* One instruction takes 3 cycles, but one can start in each: three lanes hide the wait. `shift`: x^(8
 * lane). */
__attribute__((target("sse4.2"))) static const uint8_t *lanes(uint64_t *crc, const uint8_t *at, size_t *bytes,
                                                              size_t lane, uint32_t shift)
{
    while (*bytes >= 3 * lane) {
        uint64_t a = *crc, b = 0, c = 0;
        for (size_t i = 0; i < lane; i += 8) {
            a = _mm_crc32_u64(a, dp_load_u64le(at + i));
            b = _mm_crc32_u64(b, dp_load_u64le(at + lane + i));
            c = _mm_crc32_u64(c, dp_load_u64le(at + 2 * lane + i));
        }
        b ^= product(shift, (uint32_t)a);
        *crc = c ^ product(shift, (uint32_t)b);
        at += 3 * lane;
        *bytes -= 3 * lane;
    }
    return at;
}

__attribute__((target("sse4.2"))) static uint32_t hardware(uint32_t before, const uint8_t *at, size_t bytes)
{
    uint64_t crc = (uint32_t)~before;
    at = lanes(&crc, at, &bytes, 8192, 0x28461564u);
    at = lanes(&crc, at, &bytes, 1024, 0xe4172b16u);
    for (; bytes >= 8; bytes -= 8, at += 8)
        crc = _mm_crc32_u64(crc, dp_load_u64le(at));
    for (; bytes > 0; bytes--, at++)
        crc = _mm_crc32_u8((uint32_t)crc, *at);
    return ~(uint32_t)crc;
}
#endif

uint32_t dp_crc32c(uint32_t before, const void *data, size_t bytes)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2"))
        return hardware(before, data, bytes);
#endif
    return dp_crc32c_portable(before, data, bytes);
}
