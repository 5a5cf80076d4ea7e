/* Misses and the budget that they need, without requests: what is read, what waits for whom, what is evicted for whom. */
#include "tests/lib/test.h"

#include "common/base/bytes.h"
#include "common/model/row.h"
#include "server/cache/misses.h"
#include "tests/lib/fake_store.h"

#include <stdlib.h>
#include <string.h>

#define DIM  48u
#define ROWS 400u /* in the store; keys 1 .. ROWS */

struct rig {
    struct dp_fake_store *fake;
    struct dp_store store;
    struct dp_shard_base base;
    struct dp_io_jobs jobs;
    struct dp_cached_tables tables;
    struct dp_cached_table *table;
    struct dp_cache_budget budget;
    struct dp_misses misses;
    struct dp_error refuses; /* of the cleaner */
    bool busy;
    uint32_t ended; /* reads */
    const struct dp_io_job *last_read;
    struct dp_error last_error;
    struct dp_lookup *lookup[4];
    char keys[4][ROWS * 8]; /* of lookups */
};

static uint64_t no_time(void *self)
{
    return 1;
}

static const struct dp_error *refuses(void *context)
{
    const struct rig *rig = context;
    return rig->refuses.status != DP_OK ? &rig->refuses : NULL;
}

static bool busy(void *context)
{
    const struct rig *rig = context;
    return rig->busy;
}

static void ended(void *context, const struct dp_io_job *read, const struct dp_error *err)
{
    struct rig *rig = context;
    rig->ended++;
    for (uint32_t i = 0; i < 4; i++)
        if (rig->lookup[i] && rig->lookup[i]->read == read)
            rig->lookup[i]->read = NULL;
    rig->last_read = read;
    rig->last_error = *err;
}

static struct rig *new_rig(uint64_t cache_bytes)
{
    struct rig *rig = calloc(1, sizeof *rig);
    struct dp_table_spec spec = {.name = "t", .dim = DIM, .optimizer = dp_optimizer_defaults(DP_OPT_SGD)};
    struct dp_error err = {0};
    spec.optimizer.momentum = 0;
    assert_non_null(rig);
    rig->fake = dp_fake_store_new(64);
    rig->store = dp_fake_store_open(rig->fake);
    rig->base =
        (struct dp_shard_base){.shards = 1, .range = dp_range_of_shard(0, 1), .clock = {no_time, NULL}};
    rig->jobs.store = &rig->store;
    rig->budget = (struct dp_cache_budget){
        .base = &rig->base, .tables = &rig->tables, .cleaner = {refuses, busy, rig}, .bytes = cache_bytes};
    rig->misses = (struct dp_misses){.base = &rig->base,
                                     .tables = &rig->tables,
                                     .jobs = &rig->jobs,
                                     .budget = &rig->budget,
                                     .turn_rows = 1000,
                                     .ended = ended,
                                     .context = rig};
    assert_int_equal(dp_cached_tables_add(&rig->tables, &spec, ROWS, 1, rig->base.range, &rig->table, &err),
                     DP_OK);
    char *row = calloc(1, dp_row_bytes(&spec));
    dp_store_u32le(row + 12, DP_ROW_FORMAT);
    for (uint64_t key = 1; key <= ROWS; key++) {
        dp_row_set_lsn(row, key);
        dp_fake_store_put_row(rig->fake, (struct dp_store_key){rig->table->id, key}, row,
                              dp_row_bytes(&spec));
    }
    free(row);
    return rig;
}

static void free_rig(struct rig *rig)
{
    dp_misses_clear(&rig->misses);
    dp_io_jobs_clear(&rig->jobs);
    dp_cached_tables_clear(&rig->tables);
    rig->store.close(rig->store.self);
    dp_fake_store_free(&rig->fake);
    free(rig);
}

/* Keys first .. first + n - 1; `place`: of four. */
static struct dp_lookup *lookup(struct rig *rig, uint32_t place, uint64_t first, uint32_t n, bool makes)
{
    struct dp_lookup *lookup = calloc(1, sizeof *lookup);
    assert_non_null(lookup);
    for (uint32_t i = 0; i < n; i++)
        dp_store_u64le(rig->keys[place] + (size_t)i * 8, first + i);
    rig->lookup[place] = lookup;
    lookup->makes = makes;
    lookup->sections = 1;
    lookup->section[0] = (struct dp_lookup_section){.table = rig->table, .keys = rig->keys[place], .rows = n};
    return lookup;
}

static enum dp_found find(struct rig *rig, struct dp_lookup *lookup)
{
    rig->last_error = (struct dp_error){0};
    return dp_misses_find(&rig->misses, lookup, true, &rig->last_error);
}

static void turn(struct rig *rig, uint64_t last_lsn)
{
    dp_io_jobs_take(&rig->jobs);
    dp_misses_turn(&rig->misses, last_lsn);
}

/* Room for so many rows, and for what a table takes beside. */
static uint64_t budget_of(uint64_t rows)
{
    return sizeof(struct dp_row_cache) + (16u << 10) +
           rows * (DP_ROW_HEADER + DIM * sizeof(float) + DP_ROW_SLOT_COST);
}

static void one_read_a_key(void **state)
{
    struct rig *rig = new_rig((uint64_t)64 << 20);
    struct dp_lookup *a = lookup(rig, 0, 1, 20, false), *b = lookup(rig, 1, 11, 20, false);
    dp_fake_store_hold(rig->fake, true);
    assert_int_equal(find(rig, a), DP_FOUND_READING);
    assert_int_equal(find(rig, b), DP_FOUND_READING);
    assert_int_equal(dp_fake_store_held(rig->fake), 2);
    assert_int_equal(dp_fake_store_held_job(rig->fake, 1)->count, 10); /* the others are being read */
    assert_int_equal(rig->table->reserved, 30);
    assert_ptr_equal(&a->read->store, dp_fake_store_held_job(rig->fake, 0));
    assert_true(rig->budget.reads_bytes > 0);
    const struct dp_io_job *read = b->read;
    dp_fake_store_release(rig->fake, 1);
    turn(rig, ROWS);
    assert_int_equal(rig->ended, 1);
    assert_ptr_equal(rig->last_read, read);
    assert_null(b->read);
    assert_int_equal(find(rig, b), DP_FOUND_READING); /* a's read brings the rest; none is sent */
    assert_int_equal(dp_fake_store_held(rig->fake), 1);
    dp_fake_store_release(rig->fake, 0);
    turn(rig, ROWS);
    assert_int_equal(find(rig, a), DP_FOUND);
    assert_int_equal(find(rig, b), DP_FOUND);
    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(dp_row_lsn(dp_row_cache_row(rig->table->cache, rig->misses.rows[i])), 11 + i);
    assert_int_equal(rig->table->reserved, 0);
    assert_int_equal(rig->budget.reads_bytes, 0);
    assert_int_equal(rig->table->away, ROWS - 30);
    free(a);
    free(b);
    free_rig(rig);
}

/* A read that fails, or brings a row that cannot be, is told; who asks again has it read again. */
static void a_failed_read_is_told_and_forgotten(void **state)
{
    struct rig *rig = new_rig((uint64_t)64 << 20);
    struct dp_lookup *a = lookup(rig, 0, 1, 20, false);
    dp_fake_store_fail(rig->fake, DP_STORE_READ, 1, DP_IO);
    assert_int_equal(find(rig, a), DP_FOUND_READING);
    turn(rig, ROWS);
    assert_int_equal(rig->last_error.status, DP_IO);
    assert_int_equal(find(rig, a), DP_FOUND_READING);
    turn(rig, 10); /* rows 11 .. 20 are ahead of the last push */
    assert_int_equal(rig->last_error.status, DP_CORRUPT);
    assert_int_equal(atomic_load(&rig->base.counters.store_damage), 1);
    assert_int_equal(find(rig, a), DP_FOUND_READING);
    assert_int_equal(rig->jobs.under_way, 1); /* those behind the damaged one, too */
    turn(rig, ROWS);
    assert_int_equal(rig->last_error.status, DP_OK);
    assert_int_equal(find(rig, a), DP_FOUND);
    assert_int_equal(rig->ended, 3);
    free(a);
    free_rig(rig);
}

/* A large read is taken in over several turns; what is still to come stays as if it were being read. */
static void a_turn_takes_in_so_many_rows(void **state)
{
    struct rig *rig = new_rig((uint64_t)64 << 20);
    struct dp_lookup *a = lookup(rig, 0, 1, 100, false), *b = lookup(rig, 1, 90, 5, false);
    rig->misses.turn_rows = 30;
    assert_int_equal(find(rig, a), DP_FOUND_READING);
    for (uint32_t turns = 1; turns < 4; turns++) {
        turn(rig, ROWS);
        assert_int_equal(rig->ended, 0);
        assert_int_equal(rig->misses.untaken, 1);
        assert_int_equal(find(rig, b), DP_FOUND_READING);
        assert_int_equal(rig->jobs.under_way, 0);
    }
    turn(rig, ROWS);
    assert_int_equal(rig->ended, 1);
    assert_int_equal(rig->misses.untaken, 0);
    assert_int_equal(find(rig, b), DP_FOUND);
    free(a);
    free(b);
    free_rig(rig);
}

/* Rows of others are evicted for a request, never its own; who is not first is parked. */
static void others_are_evicted(void **state)
{
    struct rig *rig = new_rig(budget_of(110));
    struct dp_lookup *a = lookup(rig, 0, 1, 40, false), *b = lookup(rig, 1, 200, 40, false),
                     *c = lookup(rig, 2, 300, 40, false);
    struct dp_lookup *all[] = {a, b, c};
    for (uint32_t round = 0; round < 12; round++) {
        struct dp_lookup *one = all[round % 3];
        enum dp_found found;
        for (uint32_t tries = 0; (found = find(rig, one)) != DP_FOUND; tries++) {
            assert_true(tries < 100);
            assert_true(found == DP_FOUND_READING || found == DP_FOUND_PARK);
            turn(rig, ROWS);
            (void)dp_cache_budget_turn(&rig->budget, found == DP_FOUND_PARK ? one : NULL,
                                       found == DP_FOUND_PARK);
        }
        assert_true(dp_cache_budget_taken(&rig->budget) <= rig->budget.bytes);
        dp_cache_budget_forget(&rig->budget, one);
    }
    assert_true(atomic_load(&rig->base.counters.rows_evicted) > 0);
    for (uint32_t i = 0; i < 3; i++)
        free(all[i]);
    free_rig(rig);
}

/* Where all rows are dirty clean ones are wanted; where none can become clean, that is the cause told. */
static void clean_rows_are_wanted(void **state)
{
    struct rig *rig = new_rig(budget_of(120));
    struct dp_lookup *a = lookup(rig, 0, 1, 40, false), *b = lookup(rig, 1, 200, 80, false);
    enum dp_found found = DP_FOUND_READING;
    assert_int_equal(find(rig, a), DP_FOUND_READING);
    turn(rig, ROWS);
    assert_int_equal(find(rig, a), DP_FOUND);
    for (uint32_t i = 0; i < 40; i++)
        dp_row_cache_set_dirty(rig->table->cache, rig->misses.rows[i]);
    rig->budget.bytes = dp_cache_budget_taken(&rig->budget) + 1000;
    assert_int_equal(find(rig, b), DP_FOUND_REFUSED); /* a request may have half of it */
    assert_int_equal(rig->last_error.status, DP_INVALID);
    b->section[0].rows = 15;
    for (uint32_t tries = 0; tries < 10 && !rig->budget.wants_clean; tries++) {
        found = find(rig, b);
        (void)dp_cache_budget_turn(&rig->budget, b, true);
    }
    assert_int_equal(found, DP_FOUND_PARK);
    assert_true(rig->budget.wants_clean);
    assert_false(dp_cache_budget_turn(&rig->budget, b, true)); /* stuck, until something changes */
    (void)dp_fail(&rig->refuses, DP_IO, "disk is gone");
    dp_cache_budget_set_changed(&rig->budget);
    for (uint32_t tries = 0; tries < 10 && found == DP_FOUND_PARK; tries++)
        found = dp_cache_budget_turn(&rig->budget, b, true) ? find(rig, b) : found;
    assert_int_equal(found, DP_FOUND_REFUSED);
    assert_int_equal(rig->last_error.status, DP_AGAIN);
    assert_int_equal(rig->last_error.wait.reason, DP_WAIT_ROOM);
    assert_non_null(strstr(rig->last_error.text, "disk is gone"));
    free(a);
    free(b);
    free_rig(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_read_a_key),
        cmocka_unit_test(a_failed_read_is_told_and_forgotten),
        cmocka_unit_test(a_turn_takes_in_so_many_rows),
        cmocka_unit_test(others_are_evicted),
        cmocka_unit_test(clean_rows_are_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
