/* Row cache against a naive model: random inserts, states and finds; what bytes and cost promise. */
#include "tests/lib/test.h"

#include "server/shard/row_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS 20000u
#define SALT 0x9d3c5b17aa01f6e5u

static const struct dp_range whole = {0, UINT64_MAX};

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 20;
}

/* The kinds of keys that a request may bring: those of honest clients are like the first. */
static uint64_t key_of(uint32_t kind, uint64_t i)
{
    switch (kind) {
    case 0:
        return (i + 1) * 0x9e3779b97f4a7c15u;
    case 1:
        return i; /* the low bits only */
    case 2:
        return i << 44; /* the high bits only */
    default:
        return i << 24;
    }
}

/* What the cache must say about key i of a test. An ABSENT or FORGOTTEN key may be forgotten altogether. */
struct naive {
    uint32_t state[KEYS];
    uint32_t rows;
    uint8_t dirty[KEYS];
};

static bool agrees(uint32_t said, uint32_t known)
{
    return said == known || (said == DP_ROW_UNKNOWN && (known == DP_ROW_ABSENT || known == DP_ROW_FORGOTTEN));
}

struct listing {
    const struct naive *naive;
    uint32_t kind;
    uint64_t seen;
    uint8_t *by_row;
};

static void note_dirty(void *context, uint64_t mixed, uint32_t row)
{
    struct listing *listing = context;
    listing->seen++;
    assert_int_equal(listing->by_row[row], 1);
    listing->by_row[row] = 2; /* once each */
    (void)mixed;
}

/* A whole cycle: what was dirty is given once, and is clean then. In pieces, to see that a piece ends where it should. */
static uint64_t take_all(struct dp_row_cache *cache, uint32_t most,
                         void (*visit)(void *context, uint64_t mixed, uint32_t row), void *context)
{
    uint64_t taken = 0;
    dp_row_cache_begin_cycle(cache);
    for (uint32_t p = 0; p < DP_ROW_PARTITIONS; p++)
        for (uint32_t n = most; n == most;) {
            n = dp_row_cache_take_due(cache, p, most, visit, context);
            assert_true(n <= most);
            taken += n;
        }
    return taken;
}

static void ignore(void *context, uint64_t mixed, uint32_t row)
{
    (void)context;
    (void)mixed;
    (void)row;
}

static void check_all(struct dp_row_cache *cache, struct naive *naive, uint32_t kind)
{
    uint64_t *keys = malloc(KEYS * 8 + 1), dirty = 0;
    uint32_t *rows = malloc(KEYS * sizeof *rows);
    char *unaligned = (char *)keys + 1;
    uint8_t *by_row = calloc(KEYS, 1);
    assert_true(keys && rows && by_row);
    for (uint64_t i = 0; i < KEYS; i++) {
        uint64_t key = key_of(kind, i);
        memcpy(unaligned + i * 8, &key, 8);
    }
    dp_row_cache_find_many(cache, unaligned, KEYS, rows);
    for (uint32_t i = 0; i < KEYS; i++) {
        assert_int_equal(rows[i], dp_row_cache_find(cache, key_of(kind, i)));
        assert_true(agrees(rows[i], naive->state[i]));
        if (dp_row_is_number(rows[i])) {
            uint64_t in_row;
            memcpy(&in_row, dp_row_cache_row(cache, rows[i]), 8);
            assert_int_equal(in_row, i + 1); /* the row that was written for this key, where it was */
            by_row[rows[i]] = naive->dirty[i];
            dirty += naive->dirty[i];
        }
    }
    struct listing listing = {naive, kind, 0, by_row};
    assert_int_equal(take_all(cache, 100, note_dirty, &listing), dirty);
    assert_int_equal(listing.seen, dirty);
    assert_int_equal(take_all(cache, 100, note_dirty, &listing), 0);
    memset(naive->dirty, 0, sizeof naive->dirty);
    free(keys);
    free(rows);
    free(by_row);
}

static bool is_zero(const void *row, size_t bytes)
{
    const char *at = row;
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != 0)
            return false;
    return true;
}

static void do_one(struct dp_row_cache *cache, struct naive *naive, uint32_t kind, uint64_t random)
{
    static const uint32_t states[] = {DP_ROW_ABSENT, DP_ROW_READING, DP_ROW_FORGOTTEN};
    uint32_t i = (uint32_t)(random % KEYS), what = (uint32_t)(random / KEYS % 8), row;
    uint64_t key = key_of(kind, i), before = cache->bytes, most = dp_row_cache_cost(cache, 1);
    assert_true(agrees(dp_row_cache_find(cache, key), naive->state[i]));
    if (dp_row_is_number(naive->state[i])) {
        if (what < 2) {
            dp_row_cache_set_dirty(cache, naive->state[i]);
            naive->dirty[i] = 1;
        }
        return;
    }
    if (what < 3) {
        assert_int_equal(dp_row_cache_insert(cache, key, &row), DP_OK);
        assert_int_equal(row, naive->rows);
        naive->rows++;
        naive->state[i] = row;
        uint64_t mark = i + 1;
        assert_true(is_zero(dp_row_cache_row(cache, row), cache->row_bytes));
        memcpy(dp_row_cache_row(cache, row), &mark, 8);
        assert_true(cache->bytes >= before + cache->row_bytes);
    } else if (what < 6) {
        assert_int_equal(dp_row_cache_set_state(cache, key, states[what - 3]), DP_OK);
        naive->state[i] = states[what - 3];
    }
    assert_true(cache->bytes - before <= most);
}

static void it_agrees_with_a_naive_one(void **state)
{
    (void)state;
    struct naive *naive = malloc(sizeof *naive);
    assert_non_null(naive);
    for (uint32_t kind = 0; kind < 4; kind++) {
        uint64_t seed = 77 + kind;
        struct dp_row_cache *cache = NULL;
        for (uint32_t i = 0; i < KEYS; i++)
            naive->state[i] = DP_ROW_UNKNOWN;
        memset(naive->dirty, 0, sizeof naive->dirty);
        naive->rows = 0;
        assert_int_equal(dp_row_cache_new(24 + 4 * kind, SALT, whole, &cache), DP_OK);
        for (uint32_t op = 0; op < 200000; op++) {
            do_one(cache, naive, kind, next_random(&seed));
            if (op == 1000 || op == 20000)
                check_all(cache, naive, kind);
        }
        check_all(cache, naive, kind);
        dp_row_cache_free(&cache);
        assert_null(cache);
    }
    free(naive);
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
            assert_true(at[i][0] == 0 && at[i][widths[w] - 1] == 0);
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
        assert_int_equal(dp_row_cache_cost(cache, 0), 0);
        uint64_t made = 0;
        for (uint32_t step = 0; step < 40; step++) {
            uint64_t n = 1 + next_random(&seed) % (step % 4 == 0 ? 3000 : 40), before = cache->bytes;
            uint64_t most = dp_row_cache_cost(cache, n);
            for (uint64_t i = 0; i < n; i++) {
                uint32_t row;
                assert_int_equal(dp_row_cache_insert(cache, key_of(round % 4, made++), &row), DP_OK);
            }
            assert_true(cache->bytes - before <= most);
            assert_true(cache->bytes - before >= n * row_bytes);
        }
        /* From empty, all together: 43 bytes of index a row, a partition's least, dirty bits. */
        assert_true(cache->bytes <= made * (row_bytes + 44) + 65536);
        struct dp_row_cache *empty = NULL;
        assert_int_equal(dp_row_cache_new(row_bytes, SALT, whole, &empty), DP_OK);
        assert_true(dp_row_cache_cost(empty, 1000000) <= 1000000 * (row_bytes + 44) + 65536);
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
    for (uint64_t i = 2000; i < 500000; i++) {
        assert_int_equal(dp_row_cache_set_state(cache, key_of(0, i), DP_ROW_READING), DP_OK);
        assert_int_equal(
            dp_row_cache_set_state(cache, key_of(0, i), i % 5 ? DP_ROW_ABSENT : DP_ROW_FORGOTTEN), DP_OK);
    }
    assert_true(cache->bytes < 400000);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cycle_and_what_changes_meanwhile),
        cmocka_unit_test(it_agrees_with_a_naive_one),
        cmocka_unit_test(rows_do_not_move_and_lie_apart),
        cmocka_unit_test(cost_is_never_below_what_is_taken),
        cmocka_unit_test(keys_that_are_nowhere_do_not_pile_up),
        cmocka_unit_test(picked_keys_do_not_meet_in_one_place),
    };
    return cmocka_run_group_tests_name("row_cache", tests, NULL, NULL);
}
