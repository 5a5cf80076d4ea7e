/* Recovery: a store that lags behind its journal, opened with room for all rows or for a few; a row ahead of the journal, and a record
 * that changes nothing; the count of rows. Stops and crashes on the way are the simulator's (tests/sim). */
#include "tests/unit/server/shard/recovery_bed.h"

/* Where all rows fit and the journal touches many, they are read in one visit; where they do not, by their keys. */
static void large_shares_are_loaded_small_ones_asked_for(void **state)
{
    struct dp_error err;
    uint64_t seed = 1;
    struct recovery *r = new_of(seed);
    while (r->stored_lsn > PUSHES / 3) { /* else the journal has little to say */
        free_all(r);
        r = new_of(++seed);
    }
    r->bed.host.options.cache_bytes = 64u << 20;
    assert_int_equal(try_to_open(r, &err), DP_OK);
    assert_int_equal(counter(r, "tables_uncounted"), 0);
    assert_int_equal(dp_fake_store_jobs(r->bed.fake, DP_STORE_COUNT), 0);
    assert_int_equal(dp_fake_store_jobs(r->bed.fake, DP_STORE_READ), 0);
    close_shard(r);
    r->bed.host.options.cache_bytes = 250u << 10;
    r->hold = true;
    assert_int_equal(try_to_open(r, &err), DP_OK);
    assert_int_equal(dp_fake_store_jobs(r->bed.fake, DP_STORE_COUNT), 1);
    assert_true(dp_fake_store_jobs(r->bed.fake, DP_STORE_READ) > 0);
    assert_int_equal(counter(r, "pushes_replayed"), PUSHES - r->stored_lsn);
    assert_true(counter(r, "rows_evicted") > 0); /* with changed rows written back for it, on the way */
    assert_true(counter(r, "rows_written_back") > 0);
    assert_true(counter(r, "cache_bytes") <= r->bed.host.options.cache_bytes);
    close_shard(r);
    free_all(r);
}

/* A row has a push that the journal lacks: it is not opened, whether all rows are read or those of the journal; one that has the
 * journal's last is no cause. */
static void a_row_ahead_of_the_journal_is_refused(void **state)
{
    struct dp_error err = {0};
    for (uint32_t few = 0; few < 2; few++) {
        struct recovery *r = new_of(1);
        uint32_t key = 0;
        r->bed.host.options.cache_bytes = few ? 250u << 10 : 64u << 20;
        r->stored_lsn = PUSHES / 4;
        put_marks(r);
        while (r->lsn[0][key] < PUSHES - 10)
            key++;
        uint64_t lsn = r->lsn[0][key];
        r->lsn[0][key] = PUSHES + 1;
        put_row(r, 0, key);
        assert_int_equal(try_to_open(r, &err), DP_CORRUPT);
        assert_non_null(strstr(err.text, "'t0'"));
        assert_non_null(strstr(err.text, "push 151 "));
        r->lsn[0][key] = PUSHES;
        put_row(r, 0, key);
        assert_int_equal(try_to_open(r, &err), DP_OK);
        close_shard(r);
        r->lsn[0][key] = lsn;
        put_row(r, 0, key);
        assert_int_equal(try_to_open(r, &err), DP_OK);
        drain(r);
        close_shard(r);
        check_rows(r);
        free_all(r);
    }
}

/* Of a copied journal: a row may be as of a push that was left out of it. */
static void a_void_record_changes_nothing_and_keeps_the_lsns(void **state)
{
    struct dp_error err = {0};
    struct recovery *r = new_of(1);
    const struct dp_record record = {.kind = DP_RECORD_VOID};
    struct dp_journal_piece pieces[DP_RECORD_PIECES_MAX];
    struct dp_journal *journal = NULL;
    char head[DP_RECORD_HEAD_MAX];
    uint32_t key = 0;
    uint64_t lsn;
    r->bed.host.options.cache_bytes = 64u << 20;
    r->stored_lsn = PUSHES / 4;
    put_marks(r);
    assert_int_equal(dp_journal_open(&r->bed.host.options.journal, &journal, &err), DP_OK);
    assert_int_equal(
        dp_journal_append(journal, pieces, dp_record_encode(&record, NULL, head, pieces), &lsn, &err), DP_OK);
    assert_int_equal(lsn, PUSHES + 1);
    dp_journal_close(&journal);
    while (r->lsn[0][key] < PUSHES - 10)
        key++;
    r->lsn[0][key] = PUSHES + 1;
    put_row(r, 0, key);
    if (try_to_open(r, &err) != DP_OK)
        bed_fail(&r->bed, "%s", err.text);
    assert_int_equal(counter(r, "pushes_replayed"), PUSHES - r->stored_lsn);
    drain(r);
    close_shard(r);
    check_rows(r);
    free_all(r);
}

/* Who is told to drain does not wait for the count; its marks say that nobody knows, and the next opening counts. */
static void a_stop_while_rows_are_counted_is_made_up_for(void **state)
{
    struct dp_error err;
    struct recovery *r = new_of(3);
    r->bed.host.options.cache_bytes = 64u << 20;
    r->hold = true;
    r->stored_lsn = PUSHES; /* nothing to replay */
    put_marks(r);
    for (uint32_t t = 0; t < TABLES; t++)
        for (uint32_t key = 0; key < KEYS; key++)
            if (r->lsn[t][key] > 0)
                put_row(r, t, key);
    assert_int_equal(try_to_open(r, &err), DP_OK);
    assert_int_equal(counter(r, "tables_uncounted"), TABLES);
    drain(r);
    close_shard(r);
    check_marked(r, false);
    r->bed.host.options.recovers = false;
    assert_int_equal(try_to_open(r, &err), DP_OK);
    assert_int_equal(counter(r, "tables_uncounted"), TABLES);
    for (uint32_t i = 0; counter(r, "tables_uncounted") > 0 && i < TURNS; i++)
        turn(r);
    drain(r);
    close_shard(r);
    check_rows(r);
    check_marked(r, true);
    free_all(r);
}

/* Nobody may ever ask for the damaged row: it is told, and the shard, which does not know its number of rows, goes on. */
static void damage_found_by_the_count_is_told(void **state)
{
    struct dp_error err = {0};
    struct recovery *r = new_of(2);
    r->bed.host.options.cache_bytes = 250u << 10;
    dp_fake_store_fail(r->bed.fake, DP_STORE_COUNT, 1, DP_CORRUPT);
    assert_int_equal(try_to_open(r, &err), DP_OK);
    for (uint32_t i = 0; i < 100; i++)
        turn(r);
    assert_int_equal(counter(r, "store_damage"), 1);
    assert_int_equal(counter(r, "tables_uncounted"), TABLES);
    drain(r);
    close_shard(r);
    check_rows(r);
    check_marked(r, false);
    assert_int_equal(try_to_open(r, &err), DP_OK);
    assert_int_equal(counter(r, "store_damage"), 0);
    close_shard(r);
    free_all(r);
}

/* What the store thinks it has. */
static uint64_t lie;

static void tell_rows_about(void *self, struct dp_store_stats *out)
{
    const struct rest *rest = self;
    rest->store.stats(rest->store.self, out);
    out->rows_about = lie;
}

static struct dp_store open_lying_store(void *context)
{
    struct bed *bed = context;
    struct dp_store store = rest_open(&bed->rest, bed->fake);
    store.stats = tell_rows_about;
    return store;
}

/* The store's number of rows is an estimate: whatever it says, the cache keeps to its budget, and all is there. */
static void an_estimate_of_rows_may_be_anything(void **state)
{
    struct dp_error err = {0};
    uint64_t cost = DP_ROW_HEADER + DIM * 4 + DP_ROW_SLOT_COST;
    const uint64_t about[] = {0,
                              1,
                              100,
                              UINT64_MAX,
                              UINT64_MAX / 2,
                              1ull << 60,
                              1ull << 55,
                              1ull << 32,
                              UINT64_MAX / cost + 1,
                              UINT64_MAX / cost + 100};
    for (uint32_t i = 0; i < sizeof about / sizeof about[0]; i++) {
        struct recovery *r = new_of(1);
        r->bed.host.options.cache_bytes = 250u << 10;
        r->bed.host.open_store = open_lying_store;
        lie = about[i];
        r->stored_lsn = PUSHES / 4;
        put_marks(r);
        assert_int_equal(try_to_open(r, &err), DP_OK);
        assert_int_equal(err.status, DP_OK);
        assert_true(counter(r, "cache_bytes") <= r->bed.host.options.cache_bytes);
        assert_int_equal(dp_fake_store_jobs(r->bed.fake, DP_STORE_COUNT), 1);
        for (uint32_t t = 0; counter(r, "tables_uncounted") > 0 && t < TURNS; t++)
            turn(r);
        drain(r);
        close_shard(r);
        check_rows(r);
        check_marked(r, true);
        free_all(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_shares_are_loaded_small_ones_asked_for),
        cmocka_unit_test(a_row_ahead_of_the_journal_is_refused),
        cmocka_unit_test(a_void_record_changes_nothing_and_keeps_the_lsns),
        cmocka_unit_test(a_stop_while_rows_are_counted_is_made_up_for),
        cmocka_unit_test(an_estimate_of_rows_may_be_anything),
        cmocka_unit_test(damage_found_by_the_count_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
