/* Goal: several shards' counters become one as their kinds say, and each counter explains itself. Method: the table itself, and reports of
 * two shards. */
#include "common/wire/counters.h"
#include "tests/lib/test.h"

#include <string.h>

#define NAME(counter, kind, help)       #counter,
#define STORE_NAME(counter, kind, help) "store_" #counter,
static const char *const names[] = {DP_COUNTER_MAP(NAME) DP_STORE_COUNTER_MAP(STORE_NAME)};
#define NAMES (sizeof names / sizeof names[0])

static void each_has_one_name_and_a_help(void **state)
{
    for (size_t i = 0; i < NAMES; i++) {
        const struct dp_counter_text *text = dp_counter_text(names[i]);
        assert_non_null(text);
        assert_string_equal(text->name, names[i]);
        assert_true(strlen(text->name) <= DP_COUNTER_NAME_MAX && text->help[0]);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(names[i], names[j]);
    }
    assert_null(dp_counter_text("no_such_counter"));
}

static void shards_become_one(void **state)
{
    struct dp_counter one[] = {{"pulls", 3}, {"cache_rows", 10}, {"turn_ns_max", 7},
                               {"up_ms", 5}, {"of_later", 1},    {"alone", 2}};
    const struct dp_counter two[] = {
        {"of_later", 2}, {"up_ms", 9}, {"turn_ns_max", 6}, {"cache_rows", 4}, {"pulls", 2}};
    dp_counter_merge(one, 6, two, 5);
    assert_int_equal(dp_counter_value(one, 6, "pulls"), 5);
    assert_int_equal(dp_counter_value(one, 6, "cache_rows"), 14);
    assert_int_equal(dp_counter_value(one, 6, "turn_ns_max"), 7);
    assert_int_equal(dp_counter_value(one, 6, "up_ms"), 9);
    assert_int_equal(dp_counter_value(one, 6, "of_later"), 3); /* not in the table: added */
    assert_int_equal(dp_counter_value(one, 6, "alone"), 2);
    assert_int_equal(dp_counter_value(one, 6, "no_such_counter"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_has_one_name_and_a_help),
        cmocka_unit_test(shards_become_one),
    };
    return cmocka_run_group_tests_name("counters", tests, NULL, NULL);
}
