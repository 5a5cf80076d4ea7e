/* Goal: each name is found at its place, and finding it does not cost more the more there are.
 * Method: as many names as a header may have; slots that were looked at are counted, not the time. */
#include "tests/lib/test.h"
#include "worker/read/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void each_has_its_place(void **state)
{
    (void)state;
    struct dp_names names = {0};
    assert_int_equal(dp_names_find(&names, "a", 1), DP_NAMES_NONE);
    assert_int_equal(dp_names_init(&names, 4, NULL), DP_OK);
    assert_int_equal(dp_names_find(&names, "a", 1), DP_NAMES_NONE);
    assert_int_equal(dp_names_add(&names, "a", 1, 0), 0);
    assert_int_equal(dp_names_add(&names, "ab", 2, 1), 1);
    assert_int_equal(dp_names_add(&names, "a\0b", 3, 2), 2);
    assert_int_equal(dp_names_add(&names, "ab", 2, 7), 1); /* there already */
    assert_int_equal(dp_names_add(&names, "", 0, 3), 3);
    assert_int_equal(dp_names_find(&names, "abc", 2), 1);
    assert_int_equal(dp_names_find(&names, "abc", 3), DP_NAMES_NONE);
    assert_int_equal(dp_names_find(&names, "a\0b", 3), 2);
    assert_int_equal(dp_names_find(&names, "a", 0), 3);
    dp_names_clear(&names);
    assert_int_equal(dp_names_find(&names, "a", 1), DP_NAMES_NONE);
}

static void many_cost_no_more_each(void **state)
{
    (void)state;
    enum { MANY = 65536, BYTES = 16 };
    struct dp_names names;
    char(*text)[BYTES] = calloc(MANY, sizeof *text);
    assert_non_null(text);
    assert_int_equal(dp_names_init(&names, MANY, NULL), DP_OK);
    for (uint32_t i = 0; i < MANY; i++) {
        (void)snprintf(text[i], BYTES, "column %u", i);
        assert_int_equal(dp_names_add(&names, text[i], strlen(text[i]), i), i);
    }
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(dp_names_find(&names, text[i], strlen(text[i])), i);
    assert_in_range(names.looked_at, 2 * MANY, 8 * MANY);
    dp_names_clear(&names);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_has_its_place),
                                       cmocka_unit_test(many_cost_no_more_each)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
