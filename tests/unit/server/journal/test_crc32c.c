/* CRC32C against its published values (RFC 3720, B.4), and the two forms against each other. */
#include "server/journal/crc32c.h"
#include "tests/lib/test.h"

#include <string.h>

static void published_values(void **state)
{
    uint8_t bytes[32];
    assert_int_equal(dp_crc32c(0, "123456789", 9), 0xE3069283);
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(dp_crc32c(0, bytes, 32), 0x8A9136AA);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(dp_crc32c(0, bytes, 32), 0x62A8AB43);
    for (uint32_t i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    assert_int_equal(dp_crc32c(0, bytes, 32), 0x46DD794E);
    assert_int_equal(dp_crc32c_portable(0, bytes, 32), 0x46DD794E);
}

static void both_forms_agree(void **state)
{
    static uint8_t bytes[90000];
    uint64_t x = 1;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)((x = x * 6364136223846793005u + 1442695040888963407u) >> 56);
    static const size_t lengths[] = {0,    1,    7,    8,     9,     63,    1023,  3071,  3072, 3073,
                                     4096, 6144, 9999, 24575, 24576, 24577, 27648, 49152, 80001};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        for (size_t from = 0; from < 9; from++) {
            uint32_t before = (uint32_t)(x = x * 6364136223846793005u + 1);
            assert_int_equal(dp_crc32c(before, bytes + from, lengths[i]),
                             dp_crc32c_portable(before, bytes + from, lengths[i]));
        }
    /* In parts. */
    uint32_t whole = dp_crc32c(0, bytes, sizeof bytes);
    assert_int_equal(dp_crc32c(dp_crc32c(0, bytes, 30001), bytes + 30001, sizeof bytes - 30001), whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(published_values),
                                       cmocka_unit_test(both_forms_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
