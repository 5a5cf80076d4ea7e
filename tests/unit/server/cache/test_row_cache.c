/* Row cache against a naive model: random inserts, states and finds; what bytes and cost promise. */
#include "tests/unit/server/cache/row_cache_keys.h"

static void ignore(void *context, uint64_t mixed, uint32_t row)
{
    (void)context;
    (void)mixed;
    (void)row;
}

static void rows_do_not_move_and_lie_apart(void **state)
{
    (void)state;
    static const size_t widths[] = {20, 16 + 4 * 1000, (1u << 20) + 16, (4u << 20) + 16};
    static const uint32_t rows[] = {500000, 5000, 11, 5}; /* several chunks each */
    for (size_t w = 0; w < 4; w++) {
        struct dp_row_cache *cache = NULL;
        assert_int_equal(dp_row_cache_new(widths[w], SALT, whole, &cache), DP_OK);
        char **at = malloc(rows[w] * sizeof *at);
        for (uint32_t i = 0; i < rows[w]; i++) {
            uint32_t row;
            assert_int_equal(dp_row_cache_insert(cache, key_of(0, i), &row), DP_OK);
            at[i] = dp_row_cache_row(cache, row);
            assert_int_equal((uintptr_t)at[i] % 4, 0);
            memcpy(at[i], &i, 4);
            memcpy(at[i] + widths[w] - 4, &i, 4);
            if (i % 3 == 0)
                dp_row_cache_set_dirty(cache, row);
            dp_row_cache_prefetch(cache, row);
        }
        assert_true(cache->chunks > 1);
        for (uint32_t i = 0; i < rows[w]; i++) {
            assert_ptr_equal(dp_row_cache_row(cache, dp_row_cache_find(cache, key_of(0, i))), at[i]);
            assert_memory_equal(at[i], &i, 4);
            assert_memory_equal(at[i] + widths[w] - 4, &i, 4);
        }
        assert_int_equal(take_all(cache, 1000, ignore, NULL), (rows[w] + 2) / 3);
        free(at);
        dp_row_cache_free(&cache);
    }
}

/* Bytes grow by what cost said before, at any fill and for any number; and the estimate is of use. */
static void cost_is_never_below_what_is_taken(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (uint32_t round = 0; round < 60; round++) {
        struct dp_row_cache *cache = NULL;
        size_t row_bytes = 16 + 4 * (1 + next_random(&seed) % 300);
        assert_int_equal(dp_row_cache_new(row_bytes, SALT, whole, &cache), DP_OK);
        assert_int_equal(dp_row_cache_cost_of(cache, 0, 0), 0);
        uint64_t made = 0;
        for (uint32_t step = 0; step < 40; step++) {
            uint64_t n = 1 + next_random(&seed) % (step % 4 == 0 ? 3000 : 40),
                     before = dp_row_cache_charge(cache);
            uint64_t most = dp_row_cache_cost_of(cache, n, n);
            for (uint64_t i = 0; i < n; i++) {
                uint32_t row;
                assert_int_equal(dp_row_cache_insert(cache, key_of(round % 4, made++), &row), DP_OK);
            }
            assert_true(dp_row_cache_charge(cache) - before <= most);
            assert_true(cache->bytes <= dp_row_cache_charge(cache));
        }
        /* From empty, all together: 43 bytes of index a row, a partition's least, bits of a chunk, a page. */
        assert_true(cache->bytes <= made * (row_bytes + 45) + 100000 + (2u << 20));
        struct dp_row_cache *empty = NULL;
        assert_int_equal(dp_row_cache_new(row_bytes, SALT, whole, &empty), DP_OK);
        assert_true(dp_row_cache_cost_of(empty, 1000000, 1000000) <=
                    1000000 * (row_bytes + row_bytes / 16 + 45) + 100000 + (2u << 20));
        dp_row_cache_free(&empty);
        dp_row_cache_free(&cache);
    }
}

static void keys_that_are_nowhere_do_not_pile_up(void **state)
{
    (void)state;
    struct dp_row_cache *cache = NULL;
    assert_int_equal(dp_row_cache_new(24, SALT, whole, &cache), DP_OK);
    uint32_t row;
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(dp_row_cache_insert(cache, key_of(0, i), &row), DP_OK);
    for (uint64_t i = 1000; i < 1100; i++)
        assert_int_equal(dp_row_cache_set_state(cache, key_of(0, i), DP_ROW_READING), DP_OK);
    uint64_t settled = 0;
    for (uint64_t i = 2000; i < 500000; i++) {
        settled = i == 100000 ? cache->bytes : settled;
        assert_int_equal(dp_row_cache_set_state(cache, key_of(0, i), DP_ROW_READING), DP_OK);
        assert_int_equal(
            dp_row_cache_set_state(cache, key_of(0, i), i % 5 ? DP_ROW_ABSENT : DP_ROW_FORGOTTEN), DP_OK);
    }
    assert_true(cache->bytes < 250000);
    assert_true(cache->bytes <= settled + settled / 20); /* and grows no more */
    for (uint64_t i = 0; i < 1000; i++)
        assert_true(dp_row_is_number(dp_row_cache_find(cache, key_of(0, i))));
    for (uint64_t i = 1000; i < 1100; i++) /* a read comes back for these */
        assert_int_equal(dp_row_cache_find(cache, key_of(0, i)), DP_ROW_READING);
    dp_row_cache_free(&cache);
}

/* Keys picked so that they met in one place if the places were bits of the key: the time would be quadratic.
 */
static void picked_keys_do_not_meet_in_one_place(void **state)
{
    (void)state;
    for (uint32_t kind = 1; kind < 4; kind++) {
        struct dp_row_cache *cache = NULL;
        uint64_t probes = 0;
        uint32_t row;
        assert_int_equal(dp_row_cache_new(20, SALT, whole, &cache), DP_OK);
        for (uint64_t i = 0; i < 300000; i++)
            assert_int_equal(dp_row_cache_insert(cache, key_of(kind, i), &row), DP_OK);
        /* Runs of taken slots: what a probe may have to walk. */
        for (uint32_t p = 0; p < 256; p++) {
            uint64_t run = 0;
            for (uint32_t i = 0; i < cache->partition[p].capacity; i++) {
                run = cache->partition[p].slots[i].row == DP_ROW_UNKNOWN ? 0 : run + 1;
                probes += run;
            }
        }
        assert_true(probes / 300000 < 100);
        dp_row_cache_free(&cache);
    }
}

/* A row that changes while its cycle is under way is dirty again, but what is taken later in the cycle is clean. */
static void a_cycle_and_what_changes_meanwhile(void **state)
{
    (void)state;
    struct dp_row_cache *cache = NULL;
    uint32_t row[4];
    assert_int_equal(dp_row_cache_new(24, SALT, whole, &cache), DP_OK);
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(dp_row_cache_insert(cache, i << 62, &row[i]),
                         DP_OK); /* partitions 0, 64, 128, 192 */
        dp_row_cache_set_dirty(cache, row[i]);
    }
    dp_row_cache_begin_cycle(cache);
    assert_int_equal(dp_row_cache_take_due(cache, 0, 10, ignore, NULL), 1);
    dp_row_cache_set_dirty(cache, row[0]); /* after it was taken */
    dp_row_cache_set_dirty(cache, row[1]); /* before */
    assert_int_equal(dp_row_cache_take_due(cache, 64, 10, ignore, NULL), 1);
    assert_int_equal(dp_row_cache_take_due(cache, 128, 10, ignore, NULL), 1);
    dp_row_cache_set_due(cache, row[2]); /* it could not be written */
    assert_int_equal(dp_row_cache_take_due(cache, 128, 10, ignore, NULL), 1);
    assert_int_equal(dp_row_cache_take_due(cache, 192, 10, ignore, NULL), 1);
    dp_row_cache_begin_cycle(cache);
    for (uint32_t p = 0; p < DP_ROW_PARTITIONS; p++)
        assert_int_equal(dp_row_cache_take_due(cache, p, 10, ignore, NULL), p == 0);
    dp_row_cache_free(&cache);
}

static void nobody(void *context, const void *row)
{
    (void)context;
    (void)row;
}

/* Rows that go give back what they cost, at any fill: a budget once reached can be kept. */
static void an_evicted_row_gives_its_charge_back(void **state)
{
    (void)state;
    struct dp_row_cache *cache = NULL;
    struct dp_row_leaving leaving = {.evicted = nobody};
    uint32_t row;
    assert_int_equal(dp_row_cache_new(208, SALT, whole, &cache), DP_OK);
    for (uint64_t i = 0; i < 40000; i++)
        assert_int_equal(dp_row_cache_insert(cache, key_of(0, i), &row), DP_OK);
    uint64_t full = dp_row_cache_charge(cache), bytes = cache->bytes;
    for (uint64_t i = 40000; i < 400000; i += 100) {
        uint32_t steps = 100000;
        assert_int_equal(dp_row_cache_evict(cache, 100, &steps, &leaving), 100);
        assert_true(dp_row_cache_charge(cache) + dp_row_cache_cost_of(cache, 100, 100) <= full);
        for (uint64_t k = i; k < i + 100; k++)
            assert_int_equal(dp_row_cache_insert(cache, key_of(0, k), &row), DP_OK);
    }
    assert_int_equal(cache->rows, 40000);
    assert_true(cache->bytes <= bytes + bytes / 20); /* some partition may have doubled */
    assert_int_equal(dp_row_cache_charge(cache), full);
    /* And shrunk to a tenth it has a tenth, index and all. */
    dp_row_cache_shrink(cache, 4000);
    for (uint32_t i = 0; dp_row_cache_is_shrinking(cache); i++) {
        uint32_t steps = 1000;
        assert_true(i < 1000);
        (void)dp_row_cache_shrink_step(cache, &steps, &leaving);
    }
    for (uint32_t lap = 0; lap < 4; lap++) {
        uint32_t steps = (uint32_t)cache->slots + DP_ROW_PARTITIONS;
        (void)dp_row_cache_evict(cache, 1, &steps, &leaving);
        steps = (uint32_t)cache->slots + DP_ROW_PARTITIONS;
        for (uint32_t i = 0; i < cache->rows; i++)
            dp_row_cache_touch(cache, i);
    }
    assert_int_equal(cache->rows, 4000);
    assert_true(dp_row_cache_charge(cache) < full / 6);
    dp_row_cache_free(&cache);
}

/* The hand stops where it has found enough: what it has emptied there is given back as well. */
static void an_emptied_partition_gives_its_room_back_at_once(void **state)
{
    (void)state;
    struct dp_row_cache *cache = NULL;
    struct dp_row_leaving leaving = {.evicted = nobody};
    uint32_t row, steps = 1u << 20;
    assert_int_equal(dp_row_cache_new(64, 1, (struct dp_range){0, UINT64_MAX}, &cache), DP_OK);
    uint64_t before = cache->index_charge;
    assert_int_equal(dp_row_cache_insert(cache, 77, &row), DP_OK);
    assert_true(cache->index_charge > before);
    assert_int_equal(dp_row_cache_evict(cache, 1, &steps, &leaving), 1);
    assert_int_equal(cache->index_charge, before);
    assert_int_equal(cache->empty, DP_ROW_PARTITIONS);
    assert_int_equal(dp_row_cache_insert(cache, 78, &row), DP_OK); /* it is made anew */
    assert_int_equal(dp_row_cache_find(cache, 78), row);
    dp_row_cache_free(&cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cycle_and_what_changes_meanwhile),
        cmocka_unit_test(rows_do_not_move_and_lie_apart),
        cmocka_unit_test(cost_is_never_below_what_is_taken),
        cmocka_unit_test(keys_that_are_nowhere_do_not_pile_up),
        cmocka_unit_test(an_evicted_row_gives_its_charge_back),
        cmocka_unit_test(an_emptied_partition_gives_its_room_back_at_once),
        cmocka_unit_test(picked_keys_do_not_meet_in_one_place),
    };
    return cmocka_run_group_tests_name("row_cache", tests, NULL, NULL);
}
