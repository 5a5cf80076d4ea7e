/* Modes: each form comes back as it was written, and nothing else is one. */
#include "tests/lib/test.h"

#include "common/model/mode.h"

#include <string.h>

static void each_form_comes_back(void **state)
{
    static const char *const forms[] = {"async", "ssp:0",  "ssp:4",    "ssp:1000000",
                                        "sync",  "sync:1", "sync:1023"};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        enum dp_consistency mode;
        uint32_t slack;
        char text[DP_MODE_TEXT_BYTES];
        assert_true(dp_mode_parse(forms[i], &mode, &slack));
        assert_string_equal(dp_mode_text(mode, slack, text), forms[i]);
    }
}

static void nothing_else_is_a_mode(void **state)
{
    static const char *const texts[] = {"",        "a",      "asyncs",    "async:0", "async:",
                                        "ssp",     "ssp:",   "ssp:x",     "ssp:-1",  "ssp:1000001",
                                        "sync:",   "sync:0", "sync:1024", "SYNC",    "syn",
                                        "sync:1x", ":",      ":1",        "sync 1"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        enum dp_consistency mode;
        uint32_t slack;
        if (dp_mode_parse(texts[i], &mode, &slack))
            fail_msg("'%s' is taken for a mode", texts[i]);
    }
}

static void any_slack_has_a_text(void **state)
{
    char text[DP_MODE_TEXT_BYTES];
    assert_string_equal(dp_mode_text(DP_SSP, UINT32_MAX, text), "ssp:4294967295");
}

static void what_a_number_says_is_the_modes(void **state)
{
    struct dp_error err = {0};
    assert_true(dp_mode_ahead(DP_ASYNC, 0) == UINT64_MAX && dp_mode_backups(DP_ASYNC, 0) == 0);
    assert_true(dp_mode_ahead(DP_SSP, 3) == 3 && dp_mode_backups(DP_SSP, 3) == 0);
    assert_true(dp_mode_ahead(DP_SYNC, 2) == 0 && dp_mode_backups(DP_SYNC, 2) == 2);
    assert_int_equal(dp_mode_check(DP_ASYNC, 1, 2, &err), DP_INVALID);
    assert_int_equal(dp_mode_check(DP_SSP, UINT32_MAX, 2, &err), DP_OK);
    assert_int_equal(dp_mode_check(DP_SYNC, 1, 2, &err), DP_OK);
    assert_int_equal(dp_mode_check(DP_SYNC, 2, 2, &err), DP_INVALID);
}

/* The lists that people read name each mode. */
static void each_mode_is_in_the_lists(void **state)
{
    for (size_t m = 0; m < DP_MODE_COUNT; m++) {
        const struct dp_mode *mode = &dp_mode_table[m];
        char promise[400];
        assert_non_null(strstr(DP_MODE_FORMS, mode->name));
        assert_non_null(strstr(DP_MODE_HELP, mode->name));
        assert_non_null(strstr(mode->form, mode->name));
        mode->promise(mode->least, promise, sizeof promise);
        assert_true(promise[0] && mode->how[0] && mode->usual[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_form_comes_back),      cmocka_unit_test(nothing_else_is_a_mode),
        cmocka_unit_test(any_slack_has_a_text),      cmocka_unit_test(what_a_number_says_is_the_modes),
        cmocka_unit_test(each_mode_is_in_the_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
