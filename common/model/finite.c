/* Finite: a float is NaN or infinite where all bits of its exponent are 1. Sign and mantissa are masked off
 * first. Adding 1 to such an exponent then carries into the sign bit of its own lane only. So and, add and
 * or test 16 bytes. Every x86-64 and arm64 processor has integer lanes of 16 bytes, so one form is enough.
 */
#include "common/model/optimizer.h"

#include <stdint.h>
#include <string.h>

#define BLOCK 64u

struct finite_lanes {
    uint64_t exponent, one, sign;
};

static const struct finite_lanes F32 = {0x7f8000007f800000u, 0x0080000000800000u, 0x8000000080000000u};
static const struct finite_lanes BF16 = {0x7f807f807f807f80u, 0x0080008000800080u, 0x8000800080008000u};

typedef uint64_t pair __attribute__((vector_size(16)));

static _Bool all_finite(const char *at, size_t bytes, struct finite_lanes lanes)
{
    const pair exponent = {lanes.exponent, lanes.exponent}, one = {lanes.one, lanes.one};
    pair found[4] = {{0}};
    pair values[4];
    for (; bytes >= BLOCK; at += BLOCK, bytes -= BLOCK) {
        memcpy(values, at, BLOCK);
        for (int i = 0; i < 4; i++)
            found[i] |= (values[i] & exponent) + one;
    }
    memset(values, 0, sizeof values);
    if (bytes)
        memcpy(values, at, bytes);
    for (int i = 0; i < 4; i++)
        found[i] |= (values[i] & exponent) + one;
    pair any = found[0] | found[1] | found[2] | found[3];
    return ((any[0] | any[1]) & lanes.sign) == 0;
}

_Bool dp_all_finite_f32(const void *values, size_t n)
{
    return all_finite(values, n * 4, F32);
}

_Bool dp_all_finite_bf16(const void *values, size_t n)
{
    return all_finite(values, n * 2, BF16);
}
