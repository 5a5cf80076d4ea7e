/* Row cache: random requests against a naive cache, and what eviction leaves. */
#include "tests/unit/server/cache/row_cache_keys.h"

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

static void do_one(struct dp_row_cache *cache, struct naive *naive, uint32_t kind, uint64_t random)
{
    static const uint32_t states[] = {DP_ROW_ABSENT, DP_ROW_READING, DP_ROW_FORGOTTEN};
    uint32_t i = (uint32_t)(random % KEYS), what = (uint32_t)(random / KEYS % 8), row;
    uint64_t key = key_of(kind, i), before = dp_row_cache_charge(cache),
             most = dp_row_cache_cost_of(cache, 1, 1);
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
        memcpy(dp_row_cache_row(cache, row), &mark, 8);
    } else if (what < 6) {
        assert_int_equal(dp_row_cache_set_state(cache, key, states[what - 3]), DP_OK);
        naive->state[i] = states[what - 3];
    }
    assert_true(dp_row_cache_charge(cache) <= before + most);
    assert_true(cache->bytes <= dp_row_cache_charge(cache));
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

/* ---- eviction: everything that may happen to a cache, against a naive map of what each row holds */

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

/* As the first of these tests, with rows that go, memory that is used again, and a cache that shrinks in the middle of it. */
static void what_is_evicted_is_clean_and_all_else_stays(void **state)
{
    (void)state;
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
        cmocka_unit_test(it_agrees_with_a_naive_one),
        cmocka_unit_test(what_is_evicted_is_clean_and_all_else_stays),
    };
    return cmocka_run_group_tests_name("row_cache_random", tests, NULL, NULL);
}
