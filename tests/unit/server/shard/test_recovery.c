/* Recovery: a store that lags behind its journal, opened with room for all rows or for a few, crashed and stopped on the
 * way, ends with the rows that the journal makes, and knows how many they are.
 * Method    A seed makes pushes of small integers at rate 1 to two tables of SGD, so that a row is minus the sum of its
 *           gradients, exactly. The journal has all of them. The store has every row as of some push, and some rows as of
 *           a later one, as a write-back that did not come to its marks leaves them. It is opened, stopped or cut short at
 *           any progress, opened again; then it is drained, and the store must hold the model's rows, lsns and counts.
 * Seeds     DP_TEST_SEED=n runs one, DP_TEST_SEEDS=n so many. */
#include "tests/lib/timeouts.h"
#include "tests/unit/server/shard/recovery_bed.h"

static const uint64_t budgets[] = {64u << 20, 1u << 20, 250u << 10};

static void run_seed(uint64_t seed)
{
    struct recovery *r = new_of(seed);
    struct dp_error err = {0};
    r->bed.host.options.cache_bytes = budgets[seed % 3];
    for (uint32_t tries = (uint32_t)draw(r, 4); tries > 0; tries--) {
        r->hold = draw(r, 2);
        r->told = 0;
        r->stop_at = 1 + draw(r, 40);
        bool cut = draw(r, 3) == 0;
        dp_sim_disk_cut_at(r->bed.host.sim, cut ? 1 + draw(r, 60) : 0);
        if (try_to_open(r, &err) == DP_OK) /* it was through before that, and crashes now */
            close_shard(r);
        else if (err.status != DP_STOPPING && !dp_sim_disk_is_off(r->bed.host.sim))
            bed_fail(&r->bed, "%s", err.text);
        dp_sim_disk_restart(r->bed.host.sim, cut ? DP_SIM_RANDOM : DP_SIM_PROCESS);
    }
    dp_sim_disk_cut_at(r->bed.host.sim, 0);
    r->stop_at = 0;
    r->hold = draw(r, 2);
    if (try_to_open(r, &err) != DP_OK)
        bed_fail(&r->bed, "%s", err.text);
    bool counted = draw(r, 2);
    for (uint32_t i = 0; counted && counter(r, "tables_uncounted") > 0 && i < TURNS; i++)
        turn(r);
    counted = counter(r, "tables_uncounted") == 0;
    drain(r);
    close_shard(r);
    check_rows(r);
    check_marked(r, counted);
    /* And from there: closed cleanly, counted if it was not. */
    r->bed.host.options.recovers = false;
    r->hold = false;
    assert_int_equal(try_to_open(r, &err), DP_OK);
    if (counter(r, "pushes_replayed") != 0 || counter(r, "push_rows") != 0)
        broken(r, "pushes after a clean close", counter(r, "pushes_replayed"), 0);
    for (uint32_t i = 0; counter(r, "tables_uncounted") > 0 && i < TURNS; i++)
        turn(r);
    drain(r);
    close_shard(r);
    check_rows(r);
    check_marked(r, true);
    free_all(r);
}

static void rows_are_those_of_the_journal(void **state)
{
    (void)state;
    const char *one = getenv("DP_TEST_SEED"), *many = getenv("DP_TEST_SEEDS");
    uint64_t seeds = many ? strtoull(many, NULL, 10) : DP_SEEDS(150);
    if (one) {
        run_seed(strtoull(one, NULL, 10));
        return;
    }
    for (uint64_t seed = 1; seed <= seeds; seed++)
        run_seed(seed);
}

/* Where all rows fit and the journal touches many, they are read in one visit; where they do not, by their keys. */
static void large_shares_are_loaded_small_ones_asked_for(void **state)
{
    (void)state;
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
    (void)state;
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
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_of_the_journal),
        cmocka_unit_test(large_shares_are_loaded_small_ones_asked_for),
        cmocka_unit_test(a_row_ahead_of_the_journal_is_refused),
        cmocka_unit_test(a_void_record_changes_nothing_and_keeps_the_lsns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
