/* Goal: every decimal gives strtof's f32 and strtod's f64, bit for bit. Method: decimals around the hard places (half way
 * between two f32, the ends of the range) and random ones of many shapes, against the C library. */
#include "worker/read/number.h"

#include "common/model/mix.h"
#include "tests/lib/test.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(const char *text)
{
    /* A copy of just this size: a read past the end is then seen by the sanitizer. */
    size_t len = strlen(text);
    char *exact = malloc(len + 1);
    assert_non_null(exact);
    memcpy(exact, text, len);
    float got = 0, want = strtof(text, NULL);
    const char *behind = dp_number_f32(exact, exact + len, &got);
    if (isfinite(want)) {
        if (behind != exact + len || memcmp(&got, &want, sizeof got) != 0)
            fail_msg("'%s': %a, expected %a", text, (double)got, (double)want);
    } else {
        assert_null(behind);
    }
    double got64 = 0, want64 = strtod(text, NULL);
    behind = dp_number_f64(exact, exact + len, &got64);
    if (isfinite(want64) ? behind != exact + len || memcmp(&got64, &want64, sizeof got64) != 0
                         : behind != NULL)
        fail_msg("'%s': %a, expected %a", text, got64, want64);
    free(exact);
}

static void named_numbers(void **state)
{
    static const char *const texts[] = {"0",
                                        "-0",
                                        "+1",
                                        "1.",
                                        ".5",
                                        "1e5",
                                        "1E+5",
                                        "1e-5",
                                        "16777217",
                                        "16777219",
                                        "9007199791611905",
                                        "1.00000005960464477539",
                                        "1.000000059604644775390625",
                                        "1.000000178813934326171875",
                                        "1.0000001788139343261718750000000000000000001",
                                        "3.4028234663852886e38",
                                        "3.4028235677973366e38",
                                        "3.4028235677973365e38",
                                        "1e39",
                                        "-1e39",
                                        "1e400",
                                        "1e-400",
                                        "1.401298464324817e-45",
                                        "7e-46",
                                        "7.1e-46",
                                        "1.17549435e-38",
                                        "1.1754943e-38",
                                        "1.17549429e-38",
                                        "123456789012345678901234567890",
                                        "0.1",
                                        "0.2",
                                        "0.30000001192092896",
                                        "00000000000000000000000000000000001.5",
                                        "1e22",
                                        "1e23",
                                        "1e99999999999999999",
                                        "0e99999999999999999999"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        check(texts[i]);
}

static void random_numbers(void **state)
{
    char text[96];
    for (uint64_t i = 1; i <= 300000; i++) {
        uint64_t a = dp_mix(i), b = dp_mix(a + 1), c = dp_mix(b + 1);
        uint32_t bits = (uint32_t)a;
        float f;
        memcpy(&f, &bits, sizeof f);
        if (!isfinite(f))
            f = 1;
        float next = nextafterf(f, INFINITY);
        switch (c % 5) {
        case 0:
            (void)snprintf(text, sizeof text, "%.9g", (double)f);
            break;
        case 1: /* half way between two f32, or just beside it */
            (void)snprintf(text, sizeof text, "%.*g", (int)(b % 24 + 1), ((double)f + (double)next) / 2);
            break;
        case 2:
            (void)snprintf(text, sizeof text, "%" PRIu64 "e%d", a >> (b % 64), (int)(b >> 8 & 63) - 40);
            break;
        case 3:
            (void)snprintf(text, sizeof text, "-%" PRIu64 ".%" PRIu64, (a & 0xffff), b >> (c >> 8 & 63));
            break;
        default:
            (void)snprintf(text, sizeof text, "%.*f", (int)(b % 8), (double)(a % 2000000) / 1000 - 1000);
        }
        check(text);
    }
}

static void what_is_no_number(void **state)
{
    static const char *const texts[] = {"",    "-",   "+",    ".",        "-.", "e5",  "1e", "1e+",
                                        "nan", "inf", "-inf", "infinity", "x",  "--1", "+-1"};
    float f;
    uint64_t u;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_null(dp_number_f32(texts[i], texts[i] + strlen(texts[i]), &f));
    const char *hex = "0x10";
    assert_ptr_equal(dp_number_f32(hex, hex + 4, &f), hex + 1);
    const char *minus = "-1";
    assert_null(dp_number_index(minus, minus + 2, &u));
    assert_null(dp_number_index(minus, minus, &u));
    char zeros[200];
    memset(zeros, '0', sizeof zeros);
    zeros[0] = '.';
    zeros[199] = '1';
    assert_null(dp_number_f32(zeros, zeros + 200, &f)); /* too long for the copy, and said so */
    const char *max = "9223372036854775807", *over = "9223372036854775808", *far = "18446744073709551617";
    assert_ptr_equal(dp_number_index(max, max + 19, &u), max + 19);
    assert_true(u == INT64_MAX);
    assert_null(dp_number_index(over, over + 19, &u));
    assert_null(dp_number_index(far, far + 20, &u));
}

/* Its end is found whatever its range, and where none is. */
static void ends(void **state)
{
    static const struct {
        const char *text;
        int end; /* -1: no number */
    } cases[] = {{"1e39", 4},  {"-1e-999999999999", 16},
                 {"12.5x", 4}, {"1-2", 1},
                 {"1e", -1},   {"nan", -1},
                 {"", -1},     {".", -1},
                 {"+", -1},    {"0x1", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *text = cases[i].text, *behind = dp_number_end(text, text + strlen(text));
        if (cases[i].end < 0 ? behind != NULL : behind != text + cases[i].end)
            fail_msg("'%s'", text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(named_numbers), cmocka_unit_test(random_numbers),
                                       cmocka_unit_test(what_is_no_number), cmocka_unit_test(ends)};
    return cmocka_run_group_tests_name("number", tests, NULL, NULL);
}
