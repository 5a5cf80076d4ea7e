/* address: what is encoded decodes equal; a value that is cut short, damaged or absurd is refused. */
#include "common/wire/address.h"

#include "tests/lib/test.h"

#include "common/base/bytes.h"

#include <string.h>

static const struct dp_address some = {.host = "fd00::7", .ports = 3, .port = {5700, 40001, 65535}};

static void address_reads_back(void **state)
{
    char bytes[DP_ADDRESS_BYTES_MAX], text[DP_ADDRESS_HOST_MAX + 32];
    struct dp_address back, large = {.ports = DP_ADDRESS_PORTS_MAX};
    struct dp_error err = {0};
    size_t size = dp_address_encode(&some, bytes);
    assert_int_equal(dp_address_decode(bytes, size, &back, &err), DP_OK);
    assert_memory_equal(&back, &some, sizeof some);
    dp_address_endpoint(&back, 0, text, sizeof text);
    assert_string_equal(text, "tcp://[fd00::7]:5700");
    (void)strcpy(back.host, "h1");
    dp_address_endpoint(&back, 2, text, sizeof text);
    assert_string_equal(text, "tcp://h1:65535");
    memset(large.host, 'h', DP_ADDRESS_HOST_MAX);
    for (uint32_t i = 0; i < large.ports; i++)
        large.port[i] = (uint16_t)(i + 1);
    size = dp_address_encode(&large, bytes);
    assert_int_equal(size, sizeof bytes);
    assert_int_equal(dp_address_decode(bytes, size, &back, &err), DP_OK);
    assert_memory_equal(&back, &large, sizeof large);
    dp_address_name(12, text);
    assert_string_equal(text, "address/12");
}

static void damage_is_refused(void **state)
{
    char bytes[DP_ADDRESS_BYTES_MAX + 1], copy[DP_ADDRESS_BYTES_MAX];
    struct dp_address back;
    struct dp_error err = {0};
    size_t size = dp_address_encode(&some, bytes), host_at = size - strlen(some.host);
    for (size_t cut = 0; cut <= host_at; cut++)
        assert_int_equal(dp_address_decode(bytes, cut, &back, &err), DP_INVALID);
    for (size_t at = 0; at < 8; at++) { /* its head: each bit of it is checked */
        for (int bit = 0; bit < 8; bit++) {
            memcpy(copy, bytes, size);
            copy[at] = (char)(copy[at] ^ 1 << bit);
            if (dp_address_decode(copy, size, &back, &err) == DP_OK)
                assert_true(back.ports != some.ports); /* its reader knows how many there are */
        }
    }
    static const char never[] = {'\0', ' ', '\n', '/', '\x7f', '\x80'};
    for (size_t i = 0; i < sizeof never; i++) {
        memcpy(copy, bytes, size);
        copy[size - 1] = never[i];
        assert_int_equal(dp_address_decode(copy, size, &back, &err), DP_INVALID);
    }
    memcpy(copy, bytes, size);
    memset(copy + 8, 0, 2);
    assert_int_equal(dp_address_decode(copy, size, &back, &err), DP_INVALID);
    memset(bytes + host_at, 'h', sizeof bytes - host_at);
    assert_int_equal(dp_address_decode(bytes, host_at + DP_ADDRESS_HOST_MAX + 1, &back, &err), DP_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(address_reads_back),
                                       cmocka_unit_test(damage_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
