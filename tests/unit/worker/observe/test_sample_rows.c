/* Goal    Every row that is asked for is noted once, in order; a sample of these rows answers with its own, and names a table of which it
 *         lacks one.
 * Method  Keys in any order, many of them repeated, over several growths of the record. */
#include "tests/unit/worker/context/graph_fixture.h"
#include "worker/observe/sample_rows.h"

#include <stdlib.h>

#define ASKED 20000u

static uint64_t key_of(uint64_t i)
{
    return i * UINT64_C(2654435761) % 7001; /* 7001 is prime: all of 0 .. 7000, several times */
}

static void test_distinct_keys_in_order(void **state)
{
    struct dp_graph *graph = fixture_graph();
    struct dp_sample_record record = {.graph = graph};
    struct dp_sample_keys keys;
    struct dp_error err = {0};
    const struct dp_row_source source = dp_sample_record_source(&record);
    for (uint64_t i = 0; i < ASKED; i += 4) {
        const uint64_t mixed[] = {key_of(i), key_of(i + 1), key_of(i + 2), key_of(i + 3)};
        float rows[4 * 3] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
        assert_int_equal(source.pull(source.of, FIX_WIDE, mixed, 4, rows, &err), DP_OK);
        for (uint32_t f = 0; f < 12; f++)
            assert_true(rows[f] == 0);
    }
    float dense[3];
    const uint64_t block = UINT64_MAX;
    assert_int_equal(source.pull(source.of, FIX_DENSE, &block, 1, dense, &err), DP_OK);
    dp_sample_record_take(&record, &keys);
    assert_int_equal(dp_sample_keys_fit(&keys, graph, "keys", &err), DP_OK);
    assert_int_equal(keys.table[FIX_THIN].count, 0);
    assert_int_equal(keys.table[FIX_WIDE].count, 7001);
    for (uint64_t k = 0; k < 7001; k++)
        assert_int_equal(keys.table[FIX_WIDE].keys[k], k);
    assert_int_equal(keys.table[FIX_DENSE].count, 1);
    assert_true(keys.table[FIX_DENSE].keys[0] == UINT64_MAX);
    dp_sample_keys_clear(&keys);
    dp_graph_free(&graph);
}

static void test_rows_of_a_sample(void **state)
{
    uint64_t thin[] = {3}, wide[] = {2, 5, 9};
    const struct dp_sample_keys keys = {.tables = 2,
                                        .table = {{.name = "thin", .dim = 1, .count = 1, .keys = thin},
                                                  {.name = "wide", .dim = 2, .count = 3, .keys = wide}}};
    const float rows[] = {30, 20, 21, 50, 51, 90, 91};
    const struct dp_sample_rows sample = {.keys = &keys, .rows = rows};
    const struct dp_row_source source = dp_sample_rows_source(&sample);
    const uint64_t order[] = {9, 2, 9, 5};
    float got[8];
    struct dp_error err = {0};
    assert_int_equal(source.pull(source.of, 1, order, 4, got, &err), DP_OK);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(got[2 * i] == (float)order[i] * 10 && got[2 * i + 1] == (float)order[i] * 10 + 1);
    assert_int_equal(source.pull(source.of, 0, thin, 1, got, &err), DP_OK);
    assert_true(got[0] == 30);
    const uint64_t missing[] = {0, 4, 10};
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(source.pull(source.of, 1, &missing[i], 1, got, &err), DP_DATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_distinct_keys_in_order),
                                       cmocka_unit_test(test_rows_of_a_sample)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
