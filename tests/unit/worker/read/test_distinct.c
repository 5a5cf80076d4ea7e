/* Goal: keys ascend strictly, and every entry's slot is the row of its key. Method: key sets of many kinds,
 * the clustered ones that fill a run of the table, or its end, among them. */
#include "worker/read/distinct.h"

#include "common/model/mix.h"
#include "tests/lib/test.h"

#include <stdlib.h>
#include <string.h>

enum kind { UNIFORM, FEW, ONE, LOW_BITS, TOP_BITS, POPULAR, ASCENDING, AT_END, KINDS };

static uint64_t key_of(enum kind kind, uint64_t i)
{
    switch (kind) {
    case UNIFORM:
        return dp_mix(i);
    case FEW:
        return dp_mix(dp_mix(i) % 7);
    case ONE:
        return UINT64_MAX;
    case LOW_BITS:
        return dp_mix(i) % 1000;
    case TOP_BITS:
        return dp_mix(i) << 60;
    case POPULAR:
        return i % 3 == 0 ? dp_mix(1) : dp_mix(1) + dp_mix(i) % 50;
    case AT_END:
        return UINT64_MAX - dp_mix(i) % 1000;
    case ASCENDING:
    default:
        return i;
    }
}

static void check(enum kind kind, uint32_t n)
{
    struct dp_distinct_scratch *scratch = calloc(1, sizeof *scratch);
    uint64_t *keys = calloc(n, sizeof *keys);
    uint32_t *slots = malloc(n * sizeof *slots);
    assert_true(scratch && keys && slots);
    scratch->entries = calloc(n, sizeof *scratch->entries);
    scratch->sorted = calloc(n, sizeof *scratch->sorted);
    scratch->table = calloc(dp_distinct_table_len(n), sizeof *scratch->table);
    assert_true(scratch->entries && scratch->sorted && scratch->table);
    memset(slots, 0xff, n * sizeof *slots);
    for (uint32_t i = 0; i < n; i++)
        scratch->entries[i] = (struct dp_distinct_entry){.key = key_of(kind, i), .at = i};
    uint32_t distinct = dp_distinct(scratch, n, keys, slots);
    assert_in_range(distinct, 1, n);
    for (uint32_t d = 1; d < distinct; d++)
        assert_true(keys[d - 1] < keys[d]);
    char *used = calloc(distinct, 1);
    assert_non_null(used);
    for (uint32_t i = 0; i < n; i++) {
        if (slots[i] >= distinct || keys[slots[i]] != key_of(kind, i))
            fail_msg("kind %d, %u entries: entry %u has slot %u", (int)kind, n, i, slots[i]);
        used[slots[i]] = 1;
    }
    for (uint32_t d = 0; d < distinct; d++)
        assert_true(used[d]);
    free(used);
    free(scratch->entries);
    free(scratch->sorted);
    free(scratch->table);
    free(scratch);
    free(keys);
    free(slots);
}

static void every_kind(void **state)
{
    static const uint32_t ns[] = {1, 2, 3, 31, 32, 33, 34, 100, 1000, 9000, 100000};
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < sizeof ns / sizeof ns[0]; i++)
            check((enum kind)kind, ns[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kind)};
    return cmocka_run_group_tests_name("distinct", tests, NULL, NULL);
}
