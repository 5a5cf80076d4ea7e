#include "worker/read/number.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A decimal as written: +-mantissa * 10^exponent, if whole. */
struct decimal {
    uint64_t mantissa;
    int64_t exponent;
    bool negative;
    bool whole; /* mantissa holds all digits */
};

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *read_exponent(const char *at, const char *end, int64_t *exponent)
{
    const char *p = at + 1;
    bool negative = p < end && *p == '-';
    int e = 0;
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    if (p == end || !is_digit(*p))
        return NULL;
    for (; p < end && is_digit(*p); p++)
        if (e < 100000)
            e = e * 10 + (*p - '0');
    *exponent += negative ? -e : e;
    return p;
}

static const char *read_decimal(const char *at, const char *end, struct decimal *d)
{
    const char *p = at;
    *d = (struct decimal){.negative = p < end && *p == '-', .whole = true};
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    bool digits = false, point = false;
    for (; p < end; p++) {
        if (is_digit(*p)) {
            digits = true;
            if (d->mantissa > (UINT64_MAX - 9) / 10) {
                d->whole = false;
                continue;
            }
            d->mantissa = d->mantissa * 10 + (uint64_t)(*p - '0');
            d->exponent -= point;
        } else if (*p == '.' && !point) {
            point = true;
        } else {
            break;
        }
    }
    if (!digits)
        return NULL;
    if (p < end && (*p == 'e' || *p == 'E'))
        p = read_exponent(p, end, &d->exponent);
    return p;
}

/* The f64 quotient or product of two exact f64 is correctly rounded (Clinger, "How to Read Floating Point
 * Numbers Accurately", 1990). Without its sign. */
static bool fast_f64(const struct decimal *d, double *out)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (!d->whole || d->mantissa > (uint64_t)1 << 53 || d->exponent < -22 || d->exponent > 22)
        return false;
    double m = (double)d->mantissa;
    *out = d->exponent < 0 ? m / powers[-d->exponent] : m * powers[d->exponent];
    return true;
}

/* Rounding an f64 again to f32 is wrong only for a value half way between two f32, one with exactly the top
 * bit set of the 29 bits that f32 lacks; strtof parses those. */
static bool fast_f32(const struct decimal *d, float *out)
{
    double m;
    uint64_t bits;
    if (!fast_f64(d, &m))
        return false;
    memcpy(&bits, &m, sizeof bits);
    bool subnormal = m != 0 && m < 0x1p-126;
    if ((bits & 0x1fffffff) == 0x10000000 || subnormal || m > 0x1.fffffep127)
        return false;
    *out = d->negative ? -(float)m : (float)m;
    return true;
}

const char *dp_number_end(const char *at, const char *end)
{
    struct decimal d;
    return read_decimal(at, end, &d);
}

static const char *slow_number(const char *at, const char *after, bool is_f32, double *out)
{
    char copy[DP_NUMBER_LEN_MAX + 1], *stop = NULL;
    size_t len = (size_t)(after - at);
    if (len > DP_NUMBER_LEN_MAX)
        return NULL;
    memcpy(copy, at, len);
    copy[len] = '\0';
    *out = is_f32 ? (double)strtof(copy, &stop) : strtod(copy, &stop);
    return stop == copy + len && isfinite(*out) ? after : NULL;
}

const char *dp_number_f32(const char *at, const char *end, float *out)
{
    struct decimal d;
    const char *after = read_decimal(at, end, &d);
    double wide = 0;
    if (!after || fast_f32(&d, out))
        return after;
    after = slow_number(at, after, true, &wide);
    *out = (float)wide;
    return after;
}

const char *dp_number_f64(const char *at, const char *end, double *out)
{
    struct decimal d;
    const char *after = read_decimal(at, end, &d);
    if (!after)
        return NULL;
    if (!fast_f64(&d, out))
        return slow_number(at, after, false, out);
    *out = d.negative ? -*out : *out;
    return after;
}

const char *dp_number_index(const char *at, const char *end, uint64_t *out)
{
    const uint64_t limit = (uint64_t)1 << 63;
    const char *p = at;
    uint64_t v = 0;
    for (; p < end && is_digit(*p); p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (v > (limit - 1 - digit) / 10)
            return NULL;
        v = v * 10 + digit;
    }
    *out = v;
    return p > at ? p : NULL;
}
