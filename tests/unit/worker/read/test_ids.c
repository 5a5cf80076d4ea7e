/* Goal: an id's key depends on its text alone, numbers are their own, and each name is found again by its key. */
#include "tests/lib/test.h"
#include "worker/read/ids.h"

#include <stdio.h>
#include <string.h>

static uint64_t take(struct dp_ids *ids, const char *text)
{
    uint64_t key = 0;
    struct dp_error err = {0};
    assert_int_equal(dp_ids_take(ids, text, strlen(text), &key, &err), DP_OK);
    return key;
}

static void numbers_are_their_own_keys(void **state)
{
    (void)state;
    struct dp_ids ids = {0};
    assert_true(take(&ids, "0") == 0);
    assert_true(take(&ids, "12") == 12);
    assert_true(take(&ids, "9223372036854775807") == INT64_MAX);
    assert_int_equal(ids.count, 0);
    assert_null(dp_ids_name(&ids, 12));
    dp_ids_clear(&ids);
}

/* Written with a leading zero, too long for a number, or with anything else in it. */
static void other_texts_are_names(void **state)
{
    (void)state;
    static const char *const names[] = {
        "012", "00",  "9223372036854775808", "12a", "a",  "A",
        "1e5", "1 2", "B000FA64PK",          "é",   "-x", "The Matrix (1999)"};
    enum { N = sizeof names / sizeof names[0] };
    struct dp_ids ids = {0}, other = {0};
    for (int i = 0; i < N; i++) {
        uint64_t key = take(&ids, names[i]);
        assert_true(key < (uint64_t)1 << 63);
        assert_true(take(&ids, names[i]) == key);
        assert_true(take(&other, names[N - 1 - i]) != 0);
        assert_string_equal(dp_ids_name(&ids, key), names[i]);
    }
    assert_int_equal(ids.count, N);
    for (int i = 0; i < N; i++) /* taken in another order */
        assert_string_equal(dp_ids_name(&other, take(&ids, names[i])), names[i]);
    dp_ids_clear(&ids);
    dp_ids_clear(&other);
}

static void many_names_are_found(void **state)
{
    (void)state;
    enum { N = 20000 };
    struct dp_ids ids = {0};
    char name[32];
    static uint64_t keys[N];
    for (int i = 0; i < N; i++) {
        (void)snprintf(name, sizeof name, "user-%d", i);
        keys[i] = take(&ids, name);
    }
    for (int i = 0; i < N; i++) {
        (void)snprintf(name, sizeof name, "user-%d", i);
        assert_string_equal(dp_ids_name(&ids, keys[i]), name);
    }
    assert_int_equal(ids.count, N);
    dp_ids_clear(&ids);
}

/* As if a second name had the first one's hash. */
static void one_key_of_two_names_is_refused(void **state)
{
    (void)state;
    struct dp_ids ids = {0};
    struct dp_error err = {0};
    uint64_t key = take(&ids, "alice");
    ids.text[0] = 'A';
    assert_int_equal(dp_ids_take(&ids, "alice", 5, &key, &err), DP_DATA);
    assert_non_null(strstr(err.text, "the names 'Alice' and 'alice' have the same hash"));
    dp_ids_clear(&ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_their_own_keys),
        cmocka_unit_test(other_texts_are_names),
        cmocka_unit_test(many_names_are_found),
        cmocka_unit_test(one_key_of_two_names_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
