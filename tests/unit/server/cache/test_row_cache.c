/* Row cache: what bytes and cost promise; everything that may happen to it, against a naive map: what is evicted is clean, and all else
 * stays. */
#include "tests/lib/test.h"

#include "server/cache/row_cache.h"

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

static void ignore(void *context, uint64_t mixed, uint32_t row) {}

static void rows_do_not_move_and_lie_apart(void **state)
{
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

static void nobody(void *context, const void *row) {}

/* Rows that go give back what they cost, at any fill: a budget once reached can be kept. */
static void an_evicted_row_gives_its_charge_back(void **state)
{
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

/* ---- eviction */

/* What the cache must say about key i of a test. An ABSENT or FORGOTTEN key may be forgotten altogether. */
static bool agrees(uint32_t said, uint32_t known)
{
    return said == known || (said == DP_ROW_UNKNOWN && (known == DP_ROW_ABSENT || known == DP_ROW_FORGOTTEN));
}

#define LIVE 3000u

struct mirror {
    struct dp_row_cache *cache;
    uint64_t random, evicted;
    uint32_t kind;
    struct {
        uint32_t state, version;           /* DP_ROW_MAX: a row; what it holds */
        bool dirty, due, kept, was_absent; /* kept: does not leave now; and was known to be nowhere */
    } key[LIVE];
};

#define KEPT 20u

static uint32_t draw(struct mirror *m, uint32_t below)
{
    return (uint32_t)(next_random(&m->random) % below);
}

static void put_content(struct mirror *m, uint32_t row, uint32_t i)
{
    uint32_t content[2] = {i, ++m->key[i].version};
    memcpy((char *)dp_row_cache_row(m->cache, row) + 4, content, sizeof content);
    char *last = (char *)dp_row_cache_row(m->cache, row) + m->cache->row_bytes - 4;
    memcpy(last, &content[1], 4);
}

static uint32_t partition_of_key(const struct mirror *m, uint32_t i)
{
    return (uint32_t)(key_of(m->kind, i) >> 56);
}

static void note_evicted(void *context, const void *row)
{
    struct mirror *m = context;
    uint32_t content[2];
    memcpy(content, (const char *)row + 4, sizeof content);
    uint32_t i = content[0];
    assert_int_equal(m->key[i].state, DP_ROW_MAX);
    assert_int_equal(m->key[i].version, content[1]);
    assert_false(m->key[i].dirty || m->key[i].due || m->key[i].kept);
    assert_int_equal(m->cache->writing[partition_of_key(m, i)], 0);
    m->key[i].state = DP_ROW_UNKNOWN;
    m->evicted++;
}

static void note_taken(void *context, uint64_t mixed, uint32_t row)
{
    struct mirror *m = context;
    uint32_t content[2];
    memcpy(content, (const char *)dp_row_cache_row(m->cache, row) + 4, sizeof content);
    assert_int_equal(key_of(m->kind, content[0]), mixed);
    assert_true(m->key[content[0]].due);
    m->key[content[0]].due = m->key[content[0]].dirty = false;
}

static void use_key(struct mirror *m, uint32_t i)
{
    uint64_t key = key_of(m->kind, i), before = dp_row_cache_charge(m->cache);
    uint64_t most = dp_row_cache_cost_of(m->cache, 1, 1);
    uint32_t row = dp_row_cache_find(m->cache, key), what = draw(m, 8);
    if (m->key[i].state == DP_ROW_MAX) {
        if (what < 2) {
            put_content(m, row, i);
            dp_row_cache_set_dirty(m->cache, row);
            m->key[i].dirty = true;
        } else if (what < 5) {
            dp_row_cache_touch(m->cache, row);
        }
    } else if (what < 5) {
        assert_int_equal(dp_row_cache_insert(m->cache, key, &row), DP_OK);
        m->key[i].state = DP_ROW_MAX;
        put_content(m, row, i);
    } else {
        static const uint32_t states[] = {DP_ROW_ABSENT, DP_ROW_READING, DP_ROW_FORGOTTEN};
        assert_int_equal(dp_row_cache_set_state(m->cache, key, states[what - 5]), DP_OK);
        m->key[i].state = states[what - 5];
    }
    assert_true(dp_row_cache_charge(m->cache) <= before + most);
}

static void compare_all(struct mirror *m)
{
    uint64_t rows = 0, dirty = 0, due = 0;
    for (uint32_t i = 0; i < LIVE; i++) {
        uint32_t row = dp_row_cache_find(m->cache, key_of(m->kind, i)), content[2], last;
        if (m->key[i].state != DP_ROW_MAX) {
            assert_true(agrees(row, m->key[i].state));
            continue;
        }
        assert_true(dp_row_is_number(row) && row < m->cache->rows);
        memcpy(content, (char *)dp_row_cache_row(m->cache, row) + 4, sizeof content);
        memcpy(&last, (char *)dp_row_cache_row(m->cache, row) + m->cache->row_bytes - 4, 4);
        assert_int_equal(content[0], i);
        assert_int_equal(content[1], m->key[i].version);
        assert_int_equal(last, m->key[i].version);
        rows++;
        dirty += m->key[i].dirty;
        due += m->key[i].due;
    }
    assert_int_equal(m->cache->rows - dp_row_cache_free_rows(m->cache), rows);
    assert_int_equal(m->cache->dirty_rows, dirty);
    assert_int_equal(m->cache->due_rows, due);
    assert_true(m->cache->bytes <= dp_row_cache_charge(m->cache) + m->cache->index_charge);
}

static void cycle(struct mirror *m)
{
    if (m->cache->due_rows == 0) {
        dp_row_cache_begin_cycle(m->cache);
        for (uint32_t i = 0; i < LIVE; i++) {
            m->key[i].due = m->key[i].dirty;
            m->key[i].dirty = false;
        }
    }
    for (uint32_t n = draw(m, 200); n > 0; n--)
        (void)dp_row_cache_take_due(m->cache, draw(m, DP_ROW_PARTITIONS), 1 + draw(m, 5), note_taken, m);
    uint32_t partition = draw(m, DP_ROW_PARTITIONS);
    m->cache->writing[partition] = !m->cache->writing[partition];
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Some keys, wherever they are, stay. */
static struct dp_row_leaving keep_some(struct mirror *m, uint32_t some[KEPT], uint64_t keys[KEPT])
{
    uint32_t n = draw(m, 2) * KEPT;
    for (uint32_t k = 0; k < KEPT; k++) {
        some[k] = draw(m, LIVE);
        keys[k] = key_of(m->kind, some[k]);
        m->key[some[k]].kept = n > 0;
        m->key[some[k]].was_absent = dp_row_cache_find(m->cache, keys[k]) == DP_ROW_ABSENT;
    }
    qsort(keys, KEPT, sizeof keys[0], ascending);
    return (struct dp_row_leaving){.evicted = note_evicted, .context = m, .kept = keys, .kept_count = n};
}

static void keep_no_more(struct mirror *m, const uint32_t some[KEPT])
{
    for (uint32_t k = 0; k < KEPT; k++) {
        if (m->key[some[k]].kept && m->key[some[k]].was_absent)
            assert_int_equal(dp_row_cache_find(m->cache, key_of(m->kind, some[k])), DP_ROW_ABSENT);
        m->key[some[k]].kept = false;
    }
}

static void make_smaller(struct mirror *m)
{
    uint32_t steps = draw(m, 3000), before = m->cache->rows;
    uint64_t bytes = m->cache->bytes;
    if (!dp_row_cache_is_shrinking(m->cache))
        dp_row_cache_shrink(m->cache, draw(m, m->cache->rows + 1));
    uint32_t target = m->cache->target, some[KEPT];
    uint64_t keys[KEPT];
    struct dp_row_leaving leaving = keep_some(m, some, keys);
    if (dp_row_cache_shrink_step(m->cache, &steps, &leaving) && target < before) {
        assert_int_equal(m->cache->rows, target);
        assert_true(m->cache->bytes <= bytes);
    }
    keep_no_more(m, some);
}

/* Rows go, memory is used again, and the cache shrinks in the middle of it. */
static void what_is_evicted_is_clean_and_all_else_stays(void **state)
{
    static const size_t widths[] = {20, 272, 16 + 4 * 4096};
    struct mirror *m = malloc(sizeof *m);
    assert_non_null(m);
    for (uint32_t round = 0; round < 12; round++) {
        memset(m, 0, sizeof *m);
        m->random = 1000 + round;
        m->kind = round % 4;
        for (uint32_t i = 0; i < LIVE; i++)
            m->key[i].state = DP_ROW_UNKNOWN;
        assert_int_equal(dp_row_cache_new(widths[round % 3], SALT, whole, &m->cache), DP_OK);
        for (uint32_t op = 0; op < 60000; op++) {
            uint32_t what = draw(m, 100);
            if (what < 94) {
                use_key(m, draw(m, LIVE));
            } else if (what < 97) {
                uint32_t steps = draw(m, 400), want = draw(m, 100), before = steps;
                uint32_t some[KEPT];
                uint64_t gone = m->evicted, keys[KEPT];
                struct dp_row_leaving leaving = keep_some(m, some, keys);
                uint32_t count = dp_row_cache_evict(m->cache, want, &steps, &leaving);
                assert_int_equal(count, m->evicted - gone);
                assert_true(m->evicted - gone <= want && steps <= before);
                keep_no_more(m, some);
            } else if (what < 98) {
                cycle(m);
            } else if (op % 3 == 0) {
                make_smaller(m);
            }
            if (op % 5000 == 0)
                compare_all(m);
        }
        compare_all(m);
        assert_true(m->evicted > 1000);
        dp_row_cache_free(&m->cache);
    }
    free(m);
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
        cmocka_unit_test(what_is_evicted_is_clean_and_all_else_stays),
    };
    return cmocka_run_group_tests_name("row_cache", tests, NULL, NULL);
}
