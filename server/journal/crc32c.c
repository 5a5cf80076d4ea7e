/* A CRC is a remainder modulo a polynomial P over GF(2), so the CRC of a|b is crc(a) * x^(8 len b) + crc(b).
 * Both forms stand on that: the tables hold bytes times x^(8 k), and the lanes are joined by one product
 * each. */
#include "server/journal/crc32c.h"

#include "common/base/bytes.h"

#define POLYNOMIAL 0x82F63B78u /* reflected */

/* tables[k][byte]: what the byte leaves, k bytes further on. */
static uint32_t tables[8][256];

__attribute__((constructor)) static void fill_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (uint32_t bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (POLYNOMIAL & (0u - (crc & 1)));
        tables[0][byte] = crc;
    }
    for (uint32_t k = 1; k < 8; k++)
        for (uint32_t byte = 0; byte < 256; byte++)
            tables[k][byte] = tables[k - 1][byte] >> 8 ^ tables[0][tables[k - 1][byte] & 255];
}

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
