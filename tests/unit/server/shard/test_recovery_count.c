/* The count of rows behind a crash: a stop in the middle of it, estimates of any size, and damage that it meets. */
#include "tests/unit/server/shard/recovery_bed.h"

/* Who is told to drain does not wait for the count; its marks say that nobody knows, and the next opening counts. */
static void a_stop_while_rows_are_counted_is_made_up_for(void **state)
{
    (void)state;
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
    (void)state;
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
    (void)state;
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
        cmocka_unit_test(a_stop_while_rows_are_counted_is_made_up_for),
        cmocka_unit_test(an_estimate_of_rows_may_be_anything),
        cmocka_unit_test(damage_found_by_the_count_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
