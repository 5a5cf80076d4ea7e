/* JSON: what is set is what is read; what JSON or jansson does not have is a text, null, or left out. */
#include "common/base/json.h"
#include "tests/lib/test.h"

#include <math.h>
#include <stdlib.h>

static void assert_text(json_t *value, const char *want)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    assert_non_null(text);
    assert_string_equal(text, want);
    free(text);
    json_decref(value);
}

/* Planted: a cast to jansson's signed integers, which made large seeds negative. */
static void large_numbers_are_texts(void **state)
{
    assert_text(dp_json_u64(0), "0");
    assert_text(dp_json_u64(INT64_MAX), "9223372036854775807");
    assert_text(dp_json_u64(UINT64_C(1) << 63), "\"9223372036854775808\"");
    assert_text(dp_json_u64(UINT64_MAX), "\"18446744073709551615\"");
}

static void what_is_not_finite(void **state)
{
    json_t *object = json_object();
    assert_text(dp_json_real(0.5), "0.5");
    assert_text(dp_json_real((double)NAN), "null");
    assert_text(dp_json_real((double)INFINITY), "null");
    dp_json_set_real(object, "a", (double)NAN);
    dp_json_set_real(object, "b", 0.5);
    dp_json_set_u64(object, "c", 7);
    assert_text(object, "{\"b\":0.5,\"c\":7}");
}

static void what_is_read(void **state)
{
    json_t *object = json_loads("{\"a\":7,\"b\":-7,\"c\":0.5,\"d\":\"x\"}", 0, NULL);
    assert_non_null(object);
    assert_true(dp_json_get_u64(object, "a") == 7);
    assert_true(dp_json_get_u64(object, "b") == 0 && dp_json_get_u64(object, "d") == 0);
    assert_true(dp_json_get_u64(object, "none") == 0 && dp_json_get_u64(NULL, "a") == 0);
    assert_true(dp_json_get_real(object, "c") == 0.5 && dp_json_get_real(object, "a") == 7);
    assert_true(isnan(dp_json_get_real(object, "d")) && isnan(dp_json_get_real(object, "none")));
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_numbers_are_texts),
        cmocka_unit_test(what_is_not_finite),
        cmocka_unit_test(what_is_read),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
