/* finite: one NaN or infinity anywhere is found, at any alignment and length; nothing finite is taken for
 * one. */
#include "tests/lib/test.h"

#include "common/model/optimizer.h"
#include "tests/unit/model/random.h"

#include <string.h>

enum { LEN = 200 };

static const uint32_t FINITE32[] = {0,          0x80000000, 1,          0x807fffff, 0x7f7fffff,
                                    0xff7fffff, 0x3f800000, 0x00800000, 0xff000000};
static const uint32_t WILD32[] = {0x7f800000, 0xff800000, 0x7f800001, 0x7fc00000, 0xffc00000, 0xffffffff};

/* A value of `bytes` bytes at each place of each length at each alignment. */
static void sweep(size_t bytes, const void *calm, const void *wild, _Bool (*all_finite)(const void *, size_t))
{
    char room[LEN * 4 + 8];
    for (size_t shift = 0; shift < 5; shift++) {
        char *at = room + shift;
        for (size_t n = 0; n <= LEN; n += n < 70 ? 1 : 13) {
            /* What lies around is wild, and must not be looked at. */
            for (size_t i = 0; i + bytes <= sizeof room; i += bytes)
                memcpy(room + i, wild, bytes);
            for (size_t i = 0; i < n; i++)
                memcpy(at + i * bytes, calm, bytes);
            assert_true(all_finite(at, n));
            for (size_t i = 0; i < n; i++) {
                memcpy(at + i * bytes, wild, bytes);
                assert_false(all_finite(at, n));
                memcpy(at + i * bytes, calm, bytes);
            }
        }
    }
}

static void one_wild_f32_is_found_anywhere(void **state)
{
    for (size_t c = 0; c < sizeof FINITE32 / sizeof FINITE32[0]; c++) {
        for (size_t w = 0; w < sizeof WILD32 / sizeof WILD32[0]; w++)
            sweep(4, &FINITE32[c], &WILD32[w], dp_all_finite_f32);
    }
}

static void one_wild_bf16_is_found_anywhere(void **state)
{
    for (size_t c = 0; c < sizeof FINITE32 / sizeof FINITE32[0]; c++) {
        uint16_t calm = (uint16_t)(FINITE32[c] >> 16);
        static const uint16_t wild[] = {0x7f80, 0xff80, 0x7f81, 0x7fc0, 0xffff};
        for (size_t w = 0; w < sizeof wild / sizeof wild[0]; w++)
            sweep(2, &calm, &wild[w], dp_all_finite_bf16);
    }
}

static void every_bf16_and_many_f32_agree_with_libm(void **state)
{
    for (uint32_t v = 0; v < 65536; v++) {
        uint16_t half = (uint16_t)v;
        uint32_t bits = v << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        assert_true(dp_all_finite_bf16(&half, 1) == (isfinite(value) != 0));
    }
    uint64_t seed = 3;
    for (int i = 0; i < 1000000; i++) {
        uint32_t bits = (uint32_t)random_u64(&seed);
        float value;
        memcpy(&value, &bits, sizeof value);
        assert_true(dp_all_finite_f32(&value, 1) == (isfinite(value) != 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_wild_f32_is_found_anywhere),
        cmocka_unit_test(one_wild_bf16_is_found_anywhere),
        cmocka_unit_test(every_bf16_and_many_f32_agree_with_libm),
    };
    return cmocka_run_group_tests_name("finite", tests, NULL, NULL);
}
