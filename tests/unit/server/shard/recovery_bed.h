/* Recovery bed: rows, marks and a journal as a crash leaves them, made from a seed, and a shard that opens on them; what must hold
 * then is checked against a model of the rows. */
#ifndef DP_TESTS_UNIT_SERVER_SHARD_RECOVERY_BED_H
#define DP_TESTS_UNIT_SERVER_SHARD_RECOVERY_BED_H

#include "common/model/init.h"
#include "common/model/mix.h"
#include "common/model/row.h"
#include "server/cache/row_cache.h"
#include "server/durable/table_mark.h"
#include "server/journal/record.h"
#include "tests/unit/server/shard/bed.h"

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
    struct bed bed;
    uint64_t random;
    struct dp_table_spec spec[TABLES];
    uint64_t lsn[TABLES][KEYS]; /* the model: of the last push; 0: none */
    float sum[TABLES][KEYS];
    uint64_t stored_lsn;
    bool hold;
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
    bed_fail(&r->bed, "%s: %llu, expected %llu", what, (unsigned long long)a, (unsigned long long)b);
}

static uint64_t mixed_of(uint32_t key)
{
    return (uint64_t)key * (UINT64_MAX / KEYS) + 17;
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
    dp_fake_store_put_row(r->bed.fake, at, row, sizeof row);
}

/* One push: into the model, and as a record. */
static void make_push(struct recovery *r, uint64_t lsn)
{
    static uint64_t keys[TABLES][ROWS];
    static float values[TABLES][ROWS * DIM];
    struct dp_request *push = calloc(1, sizeof *push);
    struct dp_record record = {.kind = DP_RECORD_PUSH, .rate = 1};
    uint32_t n_pieces;
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
        record.dims[t] = DIM;
        push->section[push->sections++] = (struct dp_section){.table = dp_table_id(r->spec[t].name),
                                                              .rows = n,
                                                              .keys = keys[t],
                                                              .values = values[t],
                                                              .value_bytes = (size_t)n * DIM * 4};
    }
    n_pieces = dp_record_encode(&record, push, head, pieces);
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

static void append_all(struct recovery *r)
{
    struct dp_journal *journal = NULL;
    struct dp_error err;
    uint64_t lsn;
    assert_int_equal(dp_journal_open(&r->bed.host.options.journal, &journal, &err), DP_OK);
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
        dp_fake_store_put_mark(r->bed.fake, &mark);
    }
    dp_store_u64le(lsn, r->stored_lsn);
    struct dp_store_mark mark = {.key = "lsn", .key_bytes = 3, .value = lsn, .value_bytes = 8};
    dp_fake_store_put_mark(r->bed.fake, &mark);
}

static void before_the_crash(struct recovery *r)
{
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

static enum dp_status try_to_open(struct recovery *r, struct dp_error *err)
{
    dp_fake_store_hold(r->bed.fake, r->hold);
    enum dp_status st = shard_bed_open(&r->bed.host, err);
    if (st != DP_OK)
        shard_bed_close(&r->bed.host);
    return st;
}

static void close_shard(struct recovery *r)
{
    dp_fake_store_hold(r->bed.fake, false);
    shard_bed_close(&r->bed.host);
}

static uint64_t counter(const struct recovery *r, const char *name)
{
    return bed_counter(&r->bed, name);
}

static void turn(struct recovery *r)
{
    (void)dp_shard_turn(r->bed.host.shard);
    if (r->hold && draw(r, 2))
        r->bed.host.store.wait(r->bed.host.store.self);
    r->bed.now_ns += 1000000;
}

static void drain(struct recovery *r)
{
    struct dp_error err;
    enum dp_status st = DP_AGAIN;
    dp_shard_drain(r->bed.host.shard);
    for (uint32_t i = 0; st == DP_AGAIN && i < TURNS; i++) {
        turn(r);
        st = dp_shard_drained(r->bed.host.shard, &err);
    }
    if (st != DP_OK)
        bed_fail(&r->bed, "drain: %s", st == DP_AGAIN ? "no end" : err.text);
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
            const char *row = dp_fake_store_row(r->bed.fake, at, &bytes);
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
        const void *value = dp_fake_store_mark(r->bed.fake, key, strlen(key), &bytes);
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
    bed_clear(&r->bed);
    free(r);
}

static struct recovery *new_of(uint64_t seed)
{
    struct recovery *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->random = seed * 0x9e3779b97f4a7c15u + 1;
    bed_init(&r->bed, 16);
    r->bed.seed = seed;
    shard_bed_journal(&r->bed.host, dp_sim_disk_new(seed), DP_DURABILITY_MACHINE, 512u << 10, 64u << 20);
    struct dp_shard_options *options = &r->bed.host.options;
    options->salt = seed;
    options->recovers = true;
    before_the_crash(r);
    return r;
}

#endif
