/* keys: whatever is given, the distinct keys ascend by mixed key and each given key finds its place among
 * them. */
#include "tests/lib/test.h"

#include "common/client/keys_inner.h"
#include "common/model/mix.h"

#include <stdlib.h>
#include <string.h>

static uint64_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return dp_mix(*state);
}

static void check(const struct dp_keys *keys, const uint64_t *given, size_t n)
{
    const uint64_t *mixed = dp_keys_mixed(keys);
    const uint32_t *slots = dp_keys_slots(keys);
    size_t distinct = dp_keys_distinct(keys);
    assert_int_equal(dp_keys_count(keys), n);
    assert_true(distinct <= n);
    for (size_t d = 1; d < distinct; d++)
        assert_true(mixed[d - 1] < mixed[d]);
    for (size_t i = 0; i < n; i++) {
        assert_true(slots[i] < distinct);
        assert_true(mixed[slots[i]] == dp_mix(given[i]));
    }
    size_t seen = 0;
    for (size_t d = 0; d < distinct; d++) {
        assert_true(keys->starts[d] < keys->starts[d + 1]);
        for (size_t j = keys->starts[d]; j < keys->starts[d + 1]; j++, seen++) {
            assert_int_equal(slots[keys->order[j]], d);
            assert_true(j == keys->starts[d] || keys->order[j - 1] < keys->order[j]); /* in the order given */
        }
    }
    assert_int_equal(seen, n);
}

static void any_keys_are_sorted_and_merged(void **state)
{
    static const size_t sizes[] = {0, 1, 2, 3, 47, 48, 49, 100, 1000, 5000, 70000, 48, 0, 1};
    /* few distinct, all alike, dense, wide, and such as share the upper bits of their mixed keys */
    struct dp_keys *keys = NULL;
    struct dp_error err = {0};
    uint64_t random = 11, *given = malloc(70000 * sizeof *given);
    assert_non_null(given);
    assert_int_equal(dp_keys_new(&keys, &err), DP_OK);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (int kind = 0; kind < 7; kind++) {
            size_t n = sizes[s];
            for (size_t i = 0; i < n; i++) {
                uint64_t r = next(&random);
                given[i] = kind == 0   ? r % 7
                           : kind == 1 ? 42
                           : kind == 2 ? n - i
                           : kind == 3 ? r
                           : kind == 4 ? dp_unmix(r % (4 * n)) /* all upper bits 0: not by the short sort */
                           : kind == 5
                               ? dp_unmix(UINT64_MAX - i)
                               : dp_unmix((r & 0xf) << 60 | (r >> 33)); /* 16 groups, each of any order */
            }
            assert_int_equal(dp_keys_set(keys, given, n, &err), DP_OK);
            check(keys, given, n);
        }
    }
    free(given);
    dp_keys_free(&keys);
    assert_null(keys);
}

static void lent_keys_are_used_where_they_lie(void **state)
{
    struct dp_keys *keys = NULL;
    struct dp_error err = {0};
    const uint64_t good[] = {0, 5, UINT64_MAX}, twice[] = {1, 5, 5}, down[] = {3, 2};
    assert_int_equal(dp_keys_new(&keys, &err), DP_OK);
    assert_int_equal(dp_keys_lend(keys, good, 3, &err), DP_OK);
    assert_ptr_equal(dp_keys_mixed(keys), good);
    assert_null(dp_keys_slots(keys));
    assert_int_equal(dp_keys_distinct(keys), 3);
    assert_int_equal(dp_keys_lend(keys, twice, 3, &err), DP_ARGUMENT);
    assert_non_null(strstr(err.text, "at 2"));
    assert_int_equal(dp_keys_lend(keys, down, 2, &err), DP_ARGUMENT);
    assert_ptr_equal(dp_keys_mixed(keys), good); /* a refused one changes nothing */
    const uint64_t own[] = {9, 9};
    assert_int_equal(dp_keys_set(keys, own, 2, &err), DP_OK);
    check(keys, own, 2);
    dp_keys_free(&keys);
}

static void ends_of_slices_are_found(void **state)
{
    struct dp_keys *keys = NULL;
    struct dp_error err = {0};
    const uint64_t mixed[] = {0, 1, 9, 10, UINT64_MAX};
    assert_int_equal(dp_keys_new(&keys, &err), DP_OK);
    assert_int_equal(dp_keys_lend(keys, mixed, 5, &err), DP_OK);
    assert_int_equal(dp_keys_end(keys, 0, 0), 1);
    assert_int_equal(dp_keys_end(keys, 0, 8), 2);
    assert_int_equal(dp_keys_end(keys, 2, 9), 3);
    assert_int_equal(dp_keys_end(keys, 3, 9), 3);
    assert_int_equal(dp_keys_end(keys, 3, UINT64_MAX), 5);
    assert_int_equal(dp_keys_end(keys, 5, UINT64_MAX), 5);
    dp_keys_free(&keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_keys_are_sorted_and_merged),
        cmocka_unit_test(lent_keys_are_used_where_they_lie),
        cmocka_unit_test(ends_of_slices_are_found),
    };
    return cmocka_run_group_tests_name("keys", tests, NULL, NULL);
}
