#include "server/restore/restore_rows.h"

#include "common/base/log.h"
#include "common/env/clock.h"
#include "common/model/row.h"

#include <inttypes.h>
#include <stdlib.h>

#define PORTION_BYTES (4u << 20)
#define PORTIONS      2u
#define LOOK_ROWS     65536u
#define SAY_NS        UINT64_C(10000000000)

/* Rows of one target, in the order of their keys. */
struct restore_portion {
    struct dp_store_job job;
    bool under_way;
    uint32_t count, room; /* rows; room: of the arrays */
    size_t used;
    struct dp_store_key *keys;
    void **rows;
    uint32_t *row_bytes;
    char *bytes;
};

struct restore_filling {
    struct restore_portion portion[PORTIONS];
    uint32_t now;    /* which one is being filled */
    uint64_t *count; /* [tables] */
};

struct dp_restore_rows {
    struct dp_restore_rows_options o;
    struct dp_range from; /* of the store that is read */
    uint32_t last;        /* table of the last row: rows of one table follow each other */
    uint64_t seen;        /* rows, of all stores */
    uint64_t said_ns;
    struct restore_filling filling[];
};

enum dp_status dp_restore_rows_new(const struct dp_restore_rows_options *options,
                                   struct dp_restore_rows **out, struct dp_error *err)
{
    struct dp_restore_rows *rows = calloc(1, sizeof *rows + options->targets * sizeof rows->filling[0]);
    *out = rows;
    if (!rows)
        return dp_fail(err, DP_NOMEM, "restoring the rows of %" PRIu32 " shards", options->targets);
    rows->o = *options;
    for (uint32_t i = 0; i < options->targets; i++) {
        struct restore_filling *f = &rows->filling[i];
        f->count = calloc(options->tables + 1, sizeof f->count[0]);
        bool made = f->count != NULL;
        for (uint32_t p = 0; p < PORTIONS; p++)
            made = (f->portion[p].bytes = malloc(PORTION_BYTES)) && made;
        if (!made) {
            dp_restore_rows_free(out);
            return dp_fail(err, DP_NOMEM, "restoring the rows of %" PRIu32 " shards", options->targets);
        }
    }
    return DP_OK;
}

/* ---- portions */

/* Until the portion is at no store. */
static enum dp_status await(const struct dp_store *store, struct restore_filling *f, uint32_t which,
                            struct dp_error *err)
{
    struct restore_portion *portion = &f->portion[which];
    while (portion->under_way) {
        struct dp_store_job *job = store->completed(store->self);
        if (job)
            ((struct restore_portion *)job->owner)->under_way = false;
        else
            store->wait(store->self);
    }
    enum dp_status st = portion->job.status;
    if (st != DP_OK)
        *err = portion->job.error;
    return st;
}

static enum dp_status submit(const struct dp_store *store, struct restore_filling *f, struct dp_error *err)
{
    struct restore_portion *portion = &f->portion[f->now];
    if (portion->count == 0)
        return DP_OK;
    portion->job = (struct dp_store_job){.kind = DP_STORE_WRITE,
                                         .owner = portion,
                                         .count = portion->count,
                                         .keys = portion->keys,
                                         .rows = portion->rows,
                                         .row_bytes = portion->row_bytes};
    DP_ASSERT(store->submit(store->self, &portion->job) == DP_OK); /* two jobs are under way at most */
    portion->under_way = true;
    f->now = (f->now + 1) % PORTIONS;
    enum dp_status st = await(store, f, f->now, err);
    f->portion[f->now].count = 0;
    f->portion[f->now].used = 0;
    return st;
}

static enum dp_status grow(struct restore_portion *portion, struct dp_error *err)
{
    uint32_t room = portion->room ? 2 * portion->room : 1024;
    struct dp_store_key *keys = realloc(portion->keys, room * sizeof keys[0]);
    if (keys)
        portion->keys = keys;
    void **rows = realloc(portion->rows, room * sizeof rows[0]);
    if (rows)
        portion->rows = rows;
    uint32_t *row_bytes = realloc(portion->row_bytes, room * sizeof row_bytes[0]);
    if (row_bytes)
        portion->row_bytes = row_bytes;
    if (!keys || !rows || !row_bytes)
        return dp_fail(err, DP_NOMEM, "a portion of %" PRIu32 " rows", room);
    portion->room = room;
    return DP_OK;
}

static enum dp_status add(const struct dp_store *store, struct restore_filling *f, struct dp_store_key key,
                          const void *row, size_t row_bytes, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    DP_ASSERT(row_bytes <= PORTION_BYTES);
    if (f->portion[f->now].used + row_bytes > PORTION_BYTES)
        st = submit(store, f, err);
    struct restore_portion *portion = &f->portion[f->now];
    if (st == DP_OK && portion->count == portion->room)
        st = grow(portion, err);
    if (st != DP_OK)
        return st;
    memcpy(portion->bytes + portion->used, row, row_bytes);
    portion->keys[portion->count] = key;
    portion->rows[portion->count] = portion->bytes + portion->used;
    portion->row_bytes[portion->count] = (uint32_t)row_bytes;
    portion->count++;
    portion->used += row_bytes;
    return DP_OK;
}

/* ---- rows */

/* Rows come by table, ascending, from each store. o.tables: none. */
static uint32_t table_of(struct dp_restore_rows *rows, uint32_t id)
{
    uint32_t at = rows->last < rows->o.tables && rows->o.table[rows->last].id <= id ? rows->last : 0;
    while (at < rows->o.tables && rows->o.table[at].id != id)
        at++;
    rows->last = at;
    return at;
}

static enum dp_status check(struct dp_restore_rows *rows, struct dp_store_key key, const void *row,
                            size_t row_bytes, uint32_t *table, struct dp_error *err)
{
    uint32_t at = table_of(rows, key.table);
    *table = at;
    if (at == rows->o.tables || row_bytes != dp_row_bytes(&rows->o.table[at].spec))
        return dp_fail(err, DP_CORRUPT, "a row of %zu bytes for table %08" PRIx32 ", which %s", row_bytes,
                       key.table, at == rows->o.tables ? "has no mark" : "has rows of another length");
    if (dp_row_format(row) != DP_ROW_FORMAT)
        return dp_fail(err, DP_CORRUPT,
                       "table '%s': the row of mixed key %016" PRIx64 " has format %" PRIu32
                       ", this build reads format %u",
                       rows->o.table[at].spec.name, key.mixed, dp_row_format(row), DP_ROW_FORMAT);
    if (!dp_range_has(rows->from, key.mixed) || dp_row_lsn(row) > rows->o.lsn_max)
        return dp_fail(err, DP_CORRUPT, "table '%s': the row of mixed key %016" PRIx64 " %s",
                       rows->o.table[at].spec.name, key.mixed,
                       dp_row_lsn(row) > rows->o.lsn_max ? "is newer than the checkpoint"
                                                         : "is another shard's");
    return DP_OK;
}

/* NULL: none has it. */
static struct restore_filling *filling_of(struct dp_restore_rows *rows, uint64_t mixed, uint32_t *target)
{
    uint32_t low = 0, high = rows->o.targets;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (rows->o.target[middle].range.last < mixed)
            low = middle + 1;
        else
            high = middle;
    }
    *target = low;
    return low < rows->o.targets && dp_range_has(rows->o.target[low].range, mixed) ? &rows->filling[low]
                                                                                   : NULL;
}

static void say_progress(struct dp_restore_rows *rows)
{
    struct dp_clock clock = dp_clock_real();
    uint64_t now_ns = dp_clock_ns(&clock);
    if (now_ns - rows->said_ns < SAY_NS)
        return;
    if (rows->said_ns > 0)
        dp_log(DP_LOG_INFO, "%" PRIu64 " rows restored so far", rows->seen);
    rows->said_ns = now_ns;
}

static enum dp_status take_row(void *context, struct dp_store_key key, const void *row, size_t row_bytes,
                               struct dp_error *err)
{
    struct dp_restore_rows *rows = context;
    uint32_t table, target;
    enum dp_status st = check(rows, key, row, row_bytes, &table, err);
    struct restore_filling *f = NULL;
    if (st == DP_OK && !rows->o.table[table].left_out)
        f = filling_of(rows, key.mixed, &target);
    if (!f)
        return st;
    f->count[table]++;
    if (rows->seen++ % LOOK_ROWS == 0)
        say_progress(rows);
    return add(rows->o.target[target].store, f, key, row, row_bytes, err);
}

/* The next store's keys start from the lowest again, so what is left of this one is written alone. */
enum dp_status dp_restore_rows_take(struct dp_restore_rows *rows, const struct dp_store *from,
                                    struct dp_range range, struct dp_error *err)
{
    rows->from = range;
    enum dp_status st = from->visit_rows(from->self, take_row, rows, err);
    for (uint32_t i = 0; st == DP_OK && i < rows->o.targets; i++)
        st = submit(rows->o.target[i].store, &rows->filling[i], err);
    return st;
}

enum dp_status dp_restore_rows_end(struct dp_restore_rows *rows, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; i < rows->o.targets; i++)
        for (uint32_t p = 0; p < PORTIONS; p++) {
            struct dp_error one = {0};
            enum dp_status this = await(rows->o.target[i].store, &rows->filling[i], p, &one);
            if (this != DP_OK && st == DP_OK) {
                st = this;
                *err = one;
            }
        }
    return st;
}

uint64_t dp_restore_rows_count(const struct dp_restore_rows *rows, uint32_t target, uint32_t table)
{
    DP_ASSERT(target < rows->o.targets && table < rows->o.tables);
    return rows->filling[target].count[table];
}

void dp_restore_rows_free(struct dp_restore_rows **out)
{
    struct dp_restore_rows *rows = *out;
    struct dp_error ignored;
    *out = NULL;
    if (!rows)
        return;
    if (dp_restore_rows_end(rows, &ignored) != DP_OK) /* what is at a store is its own until then */
        ignored.status = DP_OK;                       /* its caller has heard it */
    for (uint32_t i = 0; i < rows->o.targets; i++) {
        for (uint32_t p = 0; p < PORTIONS; p++) {
            free(rows->filling[i].portion[p].keys);
            free(rows->filling[i].portion[p].rows);
            free(rows->filling[i].portion[p].row_bytes);
            free(rows->filling[i].portion[p].bytes);
        }
        free(rows->filling[i].count);
    }
    free(rows);
}
