/* Goal: each name is found with its key, and finding it does not cost more the more there are; an id's key
 * depends on its text alone, integers are their own. Method: as many names as a header may have; slots
 * that were looked at are counted, not the time. */
#include "tests/lib/test.h"
#include "worker/read/pairs.h"

#include <stdio.h>
#include <string.h>

static uint64_t take(struct dp_name_set *names, const char *text)
{
    uint64_t key = 0;
    struct dp_error err = {0};
    assert_int_equal(dp_pairs_key(names, text, strlen(text), &key, &err), DP_OK);
    return key;
}

static void integers_are_their_own_keys(void **state)
{
    struct dp_name_set names = {0};
    assert_true(take(&names, "0") == 0);
    assert_true(take(&names, "12") == 12);
    assert_true(take(&names, "9223372036854775807") == INT64_MAX);
    assert_int_equal(names.count, 0);
    assert_null(dp_name_set_text(&names, 0, 12));
}

/* Written with a leading zero, too long for a number, or with anything else in it. */
static void other_texts_are_names(void **state)
{
    static const char *const texts[] = {
        "012", "00",  "9223372036854775808", "12a", "a",  "A",
        "1e5", "1 2", "B000FA64PK",          "é",   "-x", "The Matrix (1999)"};
    enum { N = sizeof texts / sizeof texts[0] };
    struct dp_name_set names = {0}, other = {0};
    for (int i = 0; i < N; i++) {
        uint64_t key = take(&names, texts[i]);
        assert_true(key < (uint64_t)1 << 63);
        assert_true(take(&names, texts[i]) == key);
        assert_true(take(&other, texts[N - 1 - i]) != 0);
        assert_string_equal(dp_name_set_text(&names, 0, key), texts[i]);
        assert_null(dp_name_set_text(&names, 1, key)); /* of another group */
    }
    assert_int_equal(names.count, N);
    for (int i = 0; i < N; i++) /* taken in another order */
        assert_string_equal(dp_name_set_text(&other, 0, take(&names, texts[i])), texts[i]);
    dp_name_set_clear(&names);
    dp_name_set_clear(&other);
}

static void many_cost_no_more_each(void **state)
{
    enum { MANY = 65536 };
    struct dp_name_set names = {0};
    static uint64_t keys[MANY];
    char text[32];
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(text, sizeof text, "user-%d", i);
        keys[i] = take(&names, text);
    }
    names.probes = 0;
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(text, sizeof text, "user-%d", i);
        assert_string_equal(dp_name_set_text(&names, 0, keys[i]), text);
    }
    assert_in_range(names.probes, MANY, 4 * MANY);
    assert_int_equal(names.count, MANY);
    dp_name_set_clear(&names);
}

/* As if a second name had the first one's hash. */
static void one_key_of_two_names_is_refused(void **state)
{
    struct dp_name_set names = {0};
    struct dp_error err = {0};
    uint64_t key = take(&names, "alice");
    names.texts[0] = 'A';
    assert_int_equal(dp_pairs_key(&names, "alice", 5, &key, &err), DP_DATA);
    assert_non_null(strstr(err.text, "the names 'Alice' and 'alice' have the same hash"));
    dp_name_set_clear(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_their_own_keys), cmocka_unit_test(other_texts_are_names),
        cmocka_unit_test(many_cost_no_more_each), cmocka_unit_test(one_key_of_two_names_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
