/* Recovery: a store that lags behind its journal, opened with room for all rows or for a few, crashed and stopped on the
 * way, ends with the rows that the journal makes, and knows how many they are.
 * Method    A seed makes pushes of small integers at rate 1 to two tables of SGD, so that a row is minus the sum of its
 *           gradients, exactly. The journal has all of them. The store has every row as of some push, and some rows as of
 *           a later one, as a write-back that did not come to its marks leaves them. It is opened, stopped or cut short at
 *           any progress, opened again; then it is drained, and the store must hold the model's rows, lsns and counts.
 * Seeds     DP_TEST_SEED=n runs one, DP_TEST_SEEDS=n so many. */
#include "tests/lib/test.h"

#include "common/model/init.h"
#include "common/model/mix.h"
#include "common/model/row.h"
#include "server/shard/record.h"
#include "server/shard/row_cache.h"
#include "server/shard/shard.h"
#include "server/shard/table_mark.h"
#include "tests/lib/fake_store.h"
#include "tests/lib/sim_disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS   3000u /* of a table */
#define TABLES 2u
#define PUSHES 150u
#define ROWS   300u /* of a push, at most */
#define DIM    16u
#define TURNS  100000u

struct recovery {
    uint64_t seed, random, now_ns;
    struct dp_fake_store *fake;
    struct dp_store store;
    struct dp_sim_disk *sim;
    struct dp_disk disk;
    struct dp_shard *shard;
    struct dp_table_spec spec[TABLES];
    uint64_t lsn[TABLES][KEYS]; /* the model: of the last push; 0: none */
    float sum[TABLES][KEYS];
    uint64_t stored_lsn, cache_bytes, stop_at, told;
    bool recovers, hold, lies;
    uint64_t rows_about; /* if it lies: what the store thinks it has */
    char *records[PUSHES + 1];
    size_t record_bytes[PUSHES + 1];
};

static uint64_t draw(struct recovery *r, uint64_t below)
{
    r->random ^= r->random >> 12;
    r->random ^= r->random << 25;
    r->random ^= r->random >> 27;
    return (r->random * 0x2545f4914f6cdd1du >> 33) % below;
}

static void broken(const struct recovery *r, const char *what, uint64_t a, uint64_t b)
{
    fail_msg("seed %llu: %s: %llu, expected %llu (run again: DP_TEST_SEED=%llu)", (unsigned long long)r->seed,
             what, (unsigned long long)a, (unsigned long long)b, (unsigned long long)r->seed);
}

static uint64_t mixed_of(uint32_t key)
{
    return (uint64_t)key * (UINT64_MAX / KEYS) + 17;
}

static uint64_t now_of(void *self)
{
    return ((struct recovery *)self)->now_ns;
}

static void drop_reply(void *context, const struct dp_peer *to, struct dp_message **message)
{
    (void)context, (void)to;
    dp_message_free(message);
}

/* ---- what is there before the crash */

static void put_row(struct recovery *r, uint32_t table, uint32_t key)
{
    char row[DP_ROW_HEADER + DIM * 4];
    struct dp_store_key at = {dp_table_id(r->spec[table].name), mixed_of(key)};
    dp_init_row(&r->spec[table], dp_unmix(at.mixed), row);
    dp_row_set_lsn(row, r->lsn[table][key]);
    for (uint32_t i = 0; i < DIM; i++)
        memcpy(row + DP_ROW_HEADER + i * 4, &r->sum[table][key], 4);
    dp_fake_store_put_row(r->fake, at, row, sizeof row);
}

/* One push: into the model, and as a record. */
static void make_push(struct recovery *r, uint64_t lsn)
{
    static uint64_t keys[TABLES][ROWS];
    static float values[TABLES][ROWS * DIM];
    struct dp_request *push = calloc(1, sizeof *push);
    uint32_t dims[TABLES], n_pieces;
    char head[DP_RECORD_HEAD_MAX];
    struct dp_journal_piece pieces[DP_RECORD_PIECES_MAX];
    size_t bytes = 0;
    assert_non_null(push);
    push->stream = 7;
    push->number = lsn;
    push->rate = 1;
    for (uint32_t t = 0; t < TABLES; t++) {
        uint32_t n = 0, wanted = (uint32_t)draw(r, ROWS), step = KEYS / (wanted + 1) + 1;
        for (uint32_t key = (uint32_t)draw(r, step); key < KEYS && n < wanted;
             key += 1 + (uint32_t)draw(r, step)) {
            float gradient = (float)draw(r, 9) - 4;
            for (uint32_t i = 0; i < DIM; i++)
                values[t][n * DIM + i] = gradient;
            keys[t][n++] = mixed_of(key);
            r->sum[t][key] -= gradient;
            r->lsn[t][key] = lsn;
        }
        dims[t] = DIM;
        push->section[push->sections++] = (struct dp_section){.table = dp_table_id(r->spec[t].name),
                                                              .rows = n,
                                                              .keys = keys[t],
                                                              .values = values[t],
                                                              .value_bytes = (size_t)n * DIM * 4};
    }
    n_pieces = dp_record_encode(push, dims, DP_OK, head, pieces);
    for (uint32_t i = 0; i < n_pieces; i++)
        bytes += pieces[i].bytes;
    r->records[lsn] = malloc(bytes);
    r->record_bytes[lsn] = bytes;
    assert_non_null(r->records[lsn]);
    char *to = r->records[lsn];
    for (uint32_t i = 0; i < n_pieces; to += pieces[i++].bytes)
        memcpy(to, pieces[i].data, pieces[i].bytes);
    free(push);
}

static struct dp_journal_options journal_options(struct recovery *r)
{
    return (struct dp_journal_options){
        .disk = &r->disk, .segment_bytes = 512u << 10, .budget_bytes = 64u << 20};
}

static void append_all(struct recovery *r)
{
    struct dp_journal *journal = NULL;
    struct dp_journal_options options = journal_options(r);
    struct dp_error err;
    uint64_t lsn;
    assert_int_equal(dp_journal_open(&options, &journal, &err), DP_OK);
    for (uint32_t i = 1; i <= PUSHES; i++) {
        struct dp_journal_piece piece = {r->records[i], r->record_bytes[i]};
        assert_int_equal(dp_journal_append(journal, &piece, 1, &lsn, &err), DP_OK);
        dp_journal_commit(journal);
    }
    dp_journal_close(&journal);
}

static void put_marks(struct recovery *r)
{
    char table[DP_TABLE_MARK_BYTES], lsn[8];
    for (uint32_t t = 0; t < TABLES; t++) {
        /* After a crash what the marks say of rows is not asked. */
        struct dp_store_mark mark = dp_table_mark_encode(&r->spec[t], draw(r, 3), table);
        dp_fake_store_put_mark(r->fake, &mark);
    }
    dp_store_u64le(lsn, r->stored_lsn);
    struct dp_store_mark mark = {.key = "lsn", .key_bytes = 3, .value = lsn, .value_bytes = 8};
    dp_fake_store_put_mark(r->fake, &mark);
}

static void before_the_crash(struct recovery *r)
{
    r->fake = dp_fake_store_new(16);
    r->sim = dp_sim_disk_new(r->seed);
    r->disk = dp_sim_disk_interface(r->sim);
    for (uint32_t t = 0; t < TABLES; t++) {
        r->spec[t] = (struct dp_table_spec){.dim = DIM, .optimizer = dp_optimizer_defaults(DP_OPT_SGD)};
        r->spec[t].optimizer.momentum = 0;
        (void)snprintf(r->spec[t].name, sizeof r->spec[t].name, "t%u", t);
    }
    r->stored_lsn = draw(r, PUSHES);
    for (uint64_t lsn = 1; lsn <= PUSHES; lsn++) {
        make_push(r, lsn);
        /* Rows of the last whole cycle, then some that were written ahead of the marks. */
        for (uint32_t t = 0; t < TABLES; t++)
            for (uint32_t key = 0; key < KEYS; key++)
                if (r->lsn[t][key] == lsn && (lsn <= r->stored_lsn || draw(r, 6) == 0))
                    put_row(r, t, key);
    }
    append_all(r);
    put_marks(r);
}

/* ---- opening */

static enum dp_status tell(void *context, enum dp_journal_phase phase, uint64_t done_bytes,
                           uint64_t all_bytes, struct dp_error *err)
{
    struct recovery *r = context;
    (void)phase;
    if (done_bytes > all_bytes)
        broken(r, "bytes done", done_bytes, all_bytes);
    return ++r->told == r->stop_at ? dp_fail(err, DP_STOPPING, "told to stop") : DP_OK;
}

static struct dp_store true_store;

static void tell_rows_about(void *self, struct dp_store_figures *out)
{
    const struct recovery *r = self;
    true_store.figures(true_store.self, out);
    out->rows_about = r->rows_about;
}

/* (Its other functions are called with the same self, so they go through here.) */
static enum dp_status lie_submit(void *self, struct dp_store_job *job)
{
    (void)self;
    return true_store.submit(true_store.self, job);
}

static struct dp_store_job *lie_completed(void *self)
{
    (void)self;
    return true_store.completed(true_store.self);
}

static void lie_wait(void *self)
{
    (void)self;
    true_store.wait(true_store.self);
}

static enum dp_status lie_marks(void *self, const void *prefix, size_t prefix_bytes,
                                enum dp_status (*visit)(void *, const struct dp_store_mark *,
                                                        struct dp_error *),
                                void *context, struct dp_error *err)
{
    (void)self;
    return true_store.visit_marks(true_store.self, prefix, prefix_bytes, visit, context, err);
}

static enum dp_status lie_rows(void *self,
                               enum dp_status (*visit)(void *, struct dp_store_key, const void *, size_t,
                                                       struct dp_error *),
                               void *context, struct dp_error *err)
{
    (void)self;
    return true_store.visit_rows(true_store.self, visit, context, err);
}

static void lie_close(void *self)
{
    (void)self;
    true_store.close(true_store.self);
}

static struct dp_store lying_store(struct recovery *r)
{
    true_store = dp_fake_store_open(r->fake);
    return (struct dp_store){.submit = lie_submit,
                             .completed = lie_completed,
                             .wait = lie_wait,
                             .visit_marks = lie_marks,
                             .visit_rows = lie_rows,
                             .figures = tell_rows_about,
                             .close = lie_close,
                             .self = r};
}

static enum dp_status try_to_open(struct recovery *r, struct dp_error *err)
{
    r->store = r->lies ? lying_store(r) : dp_fake_store_open(r->fake);
    dp_fake_store_hold(r->fake, r->hold);
    struct dp_shard_options options = {.shards = 1,
                                       .cluster = 1,
                                       .generation = 1,
                                       .boot = 1,
                                       .cache_bytes = r->cache_bytes,
                                       .salt = r->seed,
                                       .store = &r->store,
                                       .journaled = true,
                                       .recovers = r->recovers,
                                       .journal = journal_options(r),
                                       .clock = {now_of, r},
                                       .reply = drop_reply};
    options.journal.progress = tell;
    options.journal.progress_context = r;
    enum dp_status st = dp_shard_open(&options, &r->shard, err);
    if (st != DP_OK)
        r->store.close(r->store.self);
    return st;
}

static void close_shard(struct recovery *r)
{
    dp_fake_store_hold(r->fake, false);
    dp_shard_close(&r->shard);
    r->store.close(r->store.self);
}

static uint64_t counter(const struct recovery *r, const char *name)
{
    struct dp_counter counters[DP_COUNTERS_MAX];
    uint32_t n = dp_shard_counters(r->shard, counters);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(counters[i].name, name) == 0)
            return counters[i].value;
    fail_msg("no counter %s", name);
    return 0;
}

static void turn(struct recovery *r)
{
    (void)dp_shard_turn(r->shard);
    if (r->hold && draw(r, 2))
        r->store.wait(r->store.self);
    r->now_ns += 1000000;
}

static void drain(struct recovery *r)
{
    struct dp_error err;
    enum dp_status st = DP_AGAIN;
    dp_shard_drain(r->shard);
    for (uint32_t i = 0; st == DP_AGAIN && i < TURNS; i++) {
        turn(r);
        st = dp_shard_drained(r->shard, &err);
    }
    if (st != DP_OK)
        fail_msg("seed %llu: drain: %s", (unsigned long long)r->seed, st == DP_AGAIN ? "no end" : err.text);
}

/* ---- what must hold */

static uint64_t rows_of(const struct recovery *r, uint32_t table)
{
    uint64_t rows = 0;
    for (uint32_t key = 0; key < KEYS; key++)
        rows += r->lsn[table][key] > 0;
    return rows;
}

static void check_rows(const struct recovery *r)
{
    for (uint32_t t = 0; t < TABLES; t++)
        for (uint32_t key = 0; key < KEYS; key++) {
            size_t bytes = 0;
            struct dp_store_key at = {dp_table_id(r->spec[t].name), mixed_of(key)};
            const char *row = dp_fake_store_row(r->fake, at, &bytes);
            if ((row != NULL) != (r->lsn[t][key] > 0))
                broken(r, "a row is there", row != NULL, r->lsn[t][key] > 0);
            if (row && dp_row_lsn(row) != r->lsn[t][key])
                broken(r, "lsn of a row", dp_row_lsn(row), r->lsn[t][key]);
            for (uint32_t i = 0; row && i < DIM; i++)
                if (memcmp(row + DP_ROW_HEADER + i * 4, &r->sum[t][key], 4) != 0)
                    broken(r, "a weight differs, key", key, key);
        }
}

/* The rows that the marks of the last cycle tell of. */
static void check_marked(const struct recovery *r, bool counted)
{
    for (uint32_t t = 0; t < TABLES; t++) {
        char key[32];
        size_t bytes = 0;
        struct dp_table_spec spec;
        struct dp_error err;
        uint64_t rows = 0, wanted = counted ? rows_of(r, t) : DP_TABLE_ROWS_UNKNOWN;
        (void)snprintf(key, sizeof key, "table/%08x", dp_table_id(r->spec[t].name));
        const void *value = dp_fake_store_mark(r->fake, key, strlen(key), &bytes);
        assert_non_null(value);
        struct dp_store_mark mark = {key, value, strlen(key), bytes};
        assert_int_equal(dp_table_mark_decode(&mark, &spec, &rows, &err), DP_OK);
        if (rows != wanted)
            broken(r, "rows of a table's mark", rows, wanted);
    }
}

static void free_all(struct recovery *r)
{
    for (uint32_t i = 1; i <= PUSHES; i++)
        free(r->records[i]);
    dp_fake_store_free(&r->fake);
    dp_sim_disk_free(&r->sim);
    free(r);
}

static struct recovery *new_of(uint64_t seed)
{
    struct recovery *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->seed = seed;
    r->random = seed * 0x9e3779b97f4a7c15u + 1;
    r->recovers = true;
    r->now_ns = 1;
    before_the_crash(r);
    return r;
}

static const uint64_t budgets[] = {64u << 20, 1u << 20, 250u << 10};

static void run_seed(uint64_t seed)
{
    struct recovery *r = new_of(seed);
    struct dp_error err = {0};
    r->cache_bytes = budgets[seed % 3];
    for (uint32_t tries = (uint32_t)draw(r, 4); tries > 0; tries--) {
        r->hold = draw(r, 2);
        r->told = 0;
        r->stop_at = 1 + draw(r, 40);
        bool cut = draw(r, 3) == 0;
        dp_sim_disk_cut_at(r->sim, cut ? 1 + draw(r, 60) : 0);
        if (try_to_open(r, &err) == DP_OK) /* it was through before that, and crashes now */
            close_shard(r);
        else if (err.status != DP_STOPPING && !dp_sim_disk_is_off(r->sim))
            fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
        dp_sim_disk_restart(r->sim, cut ? DP_SIM_RANDOM : DP_SIM_PROCESS);
    }
    dp_sim_disk_cut_at(r->sim, 0);
    r->stop_at = 0;
    r->hold = draw(r, 2);
    if (try_to_open(r, &err) != DP_OK)
        fail_msg("seed %llu: %s (run again: DP_TEST_SEED=%llu)", (unsigned long long)seed, err.text,
                 (unsigned long long)seed);
    bool counted = draw(r, 2);
    for (uint32_t i = 0; counted && counter(r, "tables_uncounted") > 0 && i < TURNS; i++)
        turn(r);
    counted = counter(r, "tables_uncounted") == 0;
    drain(r);
    close_shard(r);
    check_rows(r);
    check_marked(r, counted);
    /* And from there: closed cleanly, counted if it was not. */
    r->recovers = false;
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
    uint64_t seeds = many ? strtoull(many, NULL, 10) : 150;
    if (one) {
        run_seed(strtoull(one, NULL, 10));
        return;
    }
    for (uint64_t seed = 1; seed <= seeds; seed++)
        run_seed(seed);
}

/* Who is told to drain does not wait for the count; its marks say that nobody knows, and the next opening counts. */
static void a_stop_while_rows_are_counted_is_made_up_for(void **state)
{
    (void)state;
    struct dp_error err;
    struct recovery *r = new_of(3);
    r->cache_bytes = 64u << 20;
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
    r->recovers = false;
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
    r->cache_bytes = 64u << 20;
    assert_int_equal(try_to_open(r, &err), DP_OK);
    assert_int_equal(counter(r, "tables_uncounted"), 0);
    assert_int_equal(dp_fake_store_jobs(r->fake, DP_STORE_COUNT), 0);
    assert_int_equal(dp_fake_store_jobs(r->fake, DP_STORE_READ), 0);
    close_shard(r);
    r->cache_bytes = 250u << 10;
    r->hold = true;
    assert_int_equal(try_to_open(r, &err), DP_OK);
    assert_int_equal(dp_fake_store_jobs(r->fake, DP_STORE_COUNT), 1);
    assert_true(dp_fake_store_jobs(r->fake, DP_STORE_READ) > 0);
    assert_int_equal(counter(r, "pushes_replayed"), PUSHES - r->stored_lsn);
    assert_true(counter(r, "rows_evicted") > 0); /* with changed rows written back for it, on the way */
    assert_true(counter(r, "rows_written_back") > 0);
    assert_true(counter(r, "cache_bytes") <= r->cache_bytes);
    close_shard(r);
    free_all(r);
}

/* Nobody may ever ask for the damaged row: it is told, and the shard, which does not know its number of rows, goes on. */
static void damage_found_by_the_count_is_told(void **state)
{
    (void)state;
    struct dp_error err = {0};
    struct recovery *r = new_of(2);
    r->cache_bytes = 250u << 10;
    dp_fake_store_fail(r->fake, DP_STORE_COUNT, 1, DP_CORRUPT);
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
        r->cache_bytes = 250u << 10;
        r->lies = true;
        r->rows_about = about[i];
        r->stored_lsn = PUSHES / 4;
        put_marks(r);
        assert_int_equal(try_to_open(r, &err), DP_OK);
        assert_int_equal(err.status, DP_OK);
        assert_true(counter(r, "cache_bytes") <= r->cache_bytes);
        assert_int_equal(dp_fake_store_jobs(r->fake, DP_STORE_COUNT), 1);
        for (uint32_t t = 0; counter(r, "tables_uncounted") > 0 && t < TURNS; t++)
            turn(r);
        drain(r);
        close_shard(r);
        check_rows(r);
        check_marked(r, true);
        free_all(r);
    }
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
        r->cache_bytes = few ? 250u << 10 : 64u << 20;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_of_the_journal),
        cmocka_unit_test(a_stop_while_rows_are_counted_is_made_up_for),
        cmocka_unit_test(large_shares_are_loaded_small_ones_asked_for),
        cmocka_unit_test(an_estimate_of_rows_may_be_anything),
        cmocka_unit_test(damage_found_by_the_count_is_told),
        cmocka_unit_test(a_row_ahead_of_the_journal_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
