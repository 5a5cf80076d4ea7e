/* Amounts: bytes and progress as text, and times from it. */
#include "tests/lib/test.h"

#include "deploy/cli/amounts.h"

#include <string.h>

static void bytes_have_their_unit(void **state)
{
    char text[32];
    assert_string_equal(dp_amount_bytes(0, text), "0 bytes");
    assert_string_equal(dp_amount_bytes(999, text), "999 bytes");
    assert_string_equal(dp_amount_bytes(1234, text), "1.2 kB");
    assert_string_equal(dp_amount_bytes(999960, text), "1.0 MB");
    assert_string_equal(dp_amount_bytes(UINT64_MAX, text), "18446744.1 TB");
}

static void times_are_read(void **state)
{
    static const struct {
        const char *text;
        uint64_t s;
    } good[] = {{"90s", 90}, {"10min", 600}, {"2h", 7200}, {"7", 7}, {"1000h", 3600000}};
    static const char *const bad[] = {"",     "s",  "min",   "0s",     "-1s",
                                      "1.5h", "5x", "1001h", "10 min", "99999999999999999999s"};
    struct dp_error err = {0};
    uint64_t s;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(dp_amount_time(good[i].text, "--every", &s, &err), DP_OK);
        assert_int_equal(s, good[i].s);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(dp_amount_time(bad[i], "--every", &s, &err), DP_ARGUMENT);
        assert_non_null(strstr(err.text, "--every"));
    }
}

static void progress_tells_what_is_known(void **state)
{
    struct dp_cli_pace pace = {0};
    char text[160];
    dp_amount_progress("cutting", 0, 0, &pace, text, sizeof text);
    assert_string_equal(text, "cutting");
    dp_amount_progress("copying", 1200000, 3400000, &pace, text, sizeof text);
    assert_string_equal(text, "copying: 1.2 MB of 3.4 MB");
    dp_amount_progress("copying", 5000000, 3400000, &pace, text, sizeof text);
    assert_string_equal(text, "copying: 5.0 MB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_have_their_unit),
        cmocka_unit_test(times_are_read),
        cmocka_unit_test(progress_tells_what_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
