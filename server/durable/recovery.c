/* Why       Only the rows that the journal touches are read from the store, and no more at a time than a
 *           share of the cache holds. A record changes a row only if it is newer than the row's lsn, so
 *           replaying what the store already has changes nothing. Replay reads no configuration and no clock:
 *           the record and the table's mark have everything. Space is freed before rows are read, because
 *           rows of a batch are not evicted before it is applied. Replayed records are durable (journal.h),
 *           so rows may be written back during replay, with marks up to what was applied. A row in the store may
 *           be newer than the current record, but not than the journal's last: checked at the end.
 * Holds     journaling->lsn = durable = synced = the last record that was applied. */
#include "server/durable/recovery.h"

#include "common/base/bytes.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/model/row.h"
#include "server/cache/apply.h"
#include "server/steps/steps_replay.h"

#include <inttypes.h>
#include <stdlib.h>

/* A batch has many keys, so that a block of the store is read once for all of them. */
#define BATCH_BYTES ((size_t)128 << 20)
#define BATCH_ROWS  1000000u
#define BATCH_SHARE 8u /* of the cache's budget, its records and its rows each */
#define ENTRY_BYTES ((size_t)16)
#define READ_ROWS   16384u /* in one read, which the store splits over its readers */
#define READ_BYTES  ((size_t)4 << 20)
#define READS_MAX   8u /* at the store */
/* Reading one row by its key (with two readers) costs as much as reading this many rows in order. Measured
 * with tests/bench/recovery_bench.c, rows of 208 bytes. */
#define READ_COST 5u
/* All rows are read in order if half of the cache can hold as many as the store estimates. If there are more,
 * that ends when they take this much, and rows are read by their keys. */
#define ROWS_A_LOOK             256u
#define LOAD_SHARE(cache_bytes) ((cache_bytes) / 4 * 3)

struct recovery {
    const struct dp_recovery_options *o;
    struct dp_write_back *w; /* o's: it has the nouns that are filled */
    struct dp_steps_replay steps;
    struct dp_request *push; /* scratch: a decoded record */
    float *scratch;          /* one row of gradients */
    uint32_t *numbers;       /* scratch: row numbers of the current section */
    uint32_t numbers_room;
    char *bytes; /* entries: lsn u64 | length u64 | record, filled up to 8 */
    size_t used, room, most;
    uint64_t rows[DP_CACHED_TABLES_ROOM]; /* of each table in the batch, repeated ones too */
    uint64_t all_rows, cost;
    struct dp_store_key *keys; /* to be read */
    uint32_t keys_count, keys_room;
    uint32_t reads;
    bool began; /* the first batch was looked at */
    uint64_t journal_bytes;
    bool too_many;          /* rows in the store to read all in order */
    struct dp_error failed; /* of a read */
    /* The row with the greatest lsn of all that were read. */
    const struct dp_cached_table *newest_table;
    uint64_t newest_mixed, newest_lsn;
};

static struct dp_cached_table *find_table(const struct recovery *r, uint32_t id)
{
    return dp_cached_tables_find(r->w->tables, id);
}

/* ---- rows out of the store */

static enum dp_status put_row(struct recovery *r, struct dp_cached_table *table, uint64_t mixed,
                              const void *row, struct dp_error *err)
{
    uint32_t number;
    if (dp_row_format(row) != DP_ROW_FORMAT)
        return dp_fail(err, DP_CORRUPT,
                       "table '%s': the row of mixed key %016" PRIx64 " has format %" PRIu32
                       ", this build reads format %u",
                       table->spec.name, mixed, dp_row_format(row), DP_ROW_FORMAT);
    if (dp_row_cache_insert(table->cache, mixed, &number) != DP_OK)
        return dp_fail(err, DP_NOMEM, "no memory for rows of table '%s'", table->spec.name);
    memcpy(dp_row_cache_row(table->cache, number), row, table->cache->row_bytes);
    if (dp_row_lsn(row) > r->newest_lsn) {
        r->newest_table = table;
        r->newest_mixed = mixed;
        r->newest_lsn = dp_row_lsn(row);
    }
    table->away--;
    DP_COUNT(&r->w->base->counters, rows_read, 1);
    DP_COUNT(&r->w->base->counters, cache_rows, 1);
    return DP_OK;
}

static void read_done(void *context, struct dp_io_job *job)
{
    struct recovery *r = context;
    enum dp_status st = job->store.status;
    DP_ASSERT(r->reads > 0 && r->reads <= READS_MAX);
    r->reads--;
    if (st != DP_OK && r->failed.status == DP_OK)
        r->failed = job->store.error;
    for (uint32_t i = 0; st == DP_OK && r->failed.status == DP_OK && i < job->store.count; i++)
        if (job->store.found[i])
            st = put_row(r, find_table(r, job->store.keys[i].table), job->store.keys[i].mixed,
                         job->store.rows[i], &r->failed);
    dp_io_job_free(job);
}

/* The next rows to be read, of one table: r->keys from `from` on. */
static struct dp_io_job *read_job(struct recovery *r, uint32_t from)
{
    const struct dp_cached_table *table = find_table(r, r->keys[from].table);
    size_t row_bytes = table->cache->row_bytes;
    uint32_t n = 0, most = (uint32_t)(READ_BYTES / row_bytes + 1);
    most = most < READ_ROWS ? most : READ_ROWS;
    while (n < most && from + n < r->keys_count && r->keys[from + n].table == table->id)
        n++;
    struct dp_io_rows to;
    struct dp_io_job *job = dp_io_rows_new(DP_STORE_READ, n, n * row_bytes, read_done, r, &to);
    for (uint32_t i = 0; job && i < n; i++)
        (void)dp_io_rows_add(&to, r->keys[from + i], (uint32_t)row_bytes);
    return job;
}

static int by_key(const void *a, const void *b)
{
    const struct dp_store_key *x = a, *y = b;
    if (x->table != y->table)
        return x->table < y->table ? -1 : 1;
    return (x->mixed > y->mixed) - (x->mixed < y->mixed);
}

/* Returns once no read is under way, because the reads use this batch's memory. */
static enum dp_status read_keys(struct recovery *r, struct dp_error *err)
{
    struct dp_io_job *job = NULL;
    enum dp_status st = DP_OK;
    uint32_t from = 0;
    if (r->keys_count > 0) /* otherwise there may be no array */
        qsort(r->keys, r->keys_count, sizeof r->keys[0], by_key);
    while (r->reads > 0 || (st == DP_OK && from < r->keys_count)) {
        while (st == DP_OK && from < r->keys_count && r->reads < READS_MAX) {
            job = job ? job : read_job(r, from);
            if (!job) {
                st = dp_fail(err, DP_NOMEM, "no memory to read rows");
                break;
            }
            if (dp_io_jobs_submit(r->w->jobs, job) != DP_OK)
                break; /* retry when others are done */
            r->reads++;
            from += job->store.count;
            job = NULL;
        }
        dp_io_jobs_wait(r->w->jobs);
        if (st == DP_OK && r->failed.status != DP_OK) {
            *err = r->failed;
            st = err->status;
        }
    }
    dp_io_job_free(job);
    return st;
}

/* ---- a batch */

/* The rows of one section into r->numbers. */
static enum dp_status find_rows(struct recovery *r, const struct dp_section *section,
                                const struct dp_cached_table *table, struct dp_error *err)
{
    if (section->rows > r->numbers_room) {
        uint32_t *more = realloc(r->numbers, section->rows * sizeof more[0]);
        if (!more)
            return dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " rows", section->rows);
        r->numbers = more;
        r->numbers_room = section->rows;
    }
    dp_row_cache_find_many(table->cache, section->keys, section->rows, r->numbers);
    return DP_OK;
}

static enum dp_status add_key(struct recovery *r, struct dp_store_key key, struct dp_error *err)
{
    if (r->keys_count == r->keys_room) {
        uint32_t room = r->keys_room ? 2 * r->keys_room : 1024;
        struct dp_store_key *more = realloc(r->keys, room * sizeof more[0]);
        if (!more)
            return dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " keys", room);
        r->keys = more;
        r->keys_room = room;
    }
    DP_ASSERT(r->keys_count < r->keys_room);
    r->keys[r->keys_count++] = key;
    return DP_OK;
}

/* Lists the keys that must be read from the store, each once. */
static enum dp_status list_unknown(struct recovery *r, const struct dp_section *section,
                                   struct dp_cached_table *table, struct dp_error *err)
{
    enum dp_status st = dp_cached_table_must_ask(table) ? find_rows(r, section, table, err) : DP_OK;
    for (uint32_t i = 0; dp_cached_table_must_ask(table) && st == DP_OK && i < section->rows; i++) {
        if (r->numbers[i] != DP_ROW_UNKNOWN && r->numbers[i] != DP_ROW_FORGOTTEN)
            continue;
        struct dp_store_key key = {table->id, dp_load_u64le((const char *)section->keys + (size_t)i * 8)};
        st = dp_row_cache_set_state(table->cache, key.mixed, DP_ROW_READING) == DP_OK
                 ? add_key(r, key, err)
                 : dp_fail(err, DP_NOMEM, "no memory for the index of table '%s'", table->spec.name);
    }
    return st;
}

static enum dp_status apply_section(struct recovery *r, const struct dp_section *section,
                                    struct dp_cached_table *table, float rate, uint64_t lsn,
                                    struct dp_error *err)
{
    enum dp_status st = find_rows(r, section, table, err);
    if (st == DP_OK && dp_apply_make_rows(r->w->base, section, table, r->numbers) != DP_OK)
        st = dp_fail(err, DP_NOMEM, "no memory for new rows of table '%s'", table->spec.name);
    if (st == DP_OK)
        (void)dp_apply(section, table, r->numbers, rate, lsn, UINT64_MAX, r->scratch);
    DP_COUNT(&r->w->base->counters, rows_replayed, section->rows);
    return st;
}

/* Remembers its number, unless it has none. */
static enum dp_status restore_id(struct recovery *r, const struct dp_record *record, struct dp_error *err)
{
    if (record->kind != DP_RECORD_PUSH && record->kind != DP_RECORD_KEPT_PUSH)
        return DP_OK;
    DP_COUNT(&r->w->base->counters, pushes_replayed, 1);
    return dp_push_ids_restore(r->w->ids, r->push->stream, r->push->number, record->refused) == DP_OK
               ? DP_OK
               : dp_fail(err, DP_NOMEM, "no memory for push ids");
}

/* What a record changes in addition to its rows and, of a close, those too. */
static enum dp_status apply_rest(struct recovery *r, const struct dp_record *record, uint64_t lsn,
                                 const void *bytes, size_t size, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    switch (record->kind) {
    case DP_RECORD_PUSH:
        dp_steps_replay_push(&r->steps, record);
        break;
    case DP_RECORD_KEPT_PUSH:
        st = dp_steps_replay_kept(&r->steps, record, r->push, lsn, bytes, size, err);
        break;
    case DP_RECORD_VIEW:
        st = dp_steps_replay_view(&r->steps, record, err);
        break;
    case DP_RECORD_CLOSE:
        st = dp_steps_replay_close(&r->steps, record, r->push, lsn, bytes, size, err);
        break;
    case DP_RECORD_VOID:
        break;
    }
    return st == DP_OK ? restore_id(r, record, err) : st;
}

/* For each record of the batch: lists its keys or, with apply, changes its rows and remembers its number. */
static enum dp_status each_record(struct recovery *r, bool apply, struct dp_error *err)
{
    struct dp_request *push = r->push;
    enum dp_status st = DP_OK;
    struct dp_record record;
    for (size_t at = 0; st == DP_OK && at < r->used;) {
        uint64_t lsn = dp_load_u64le(r->bytes + at), bytes = dp_load_u64le(r->bytes + at + 8);
        st = dp_record_decode(r->bytes + at + ENTRY_BYTES, (size_t)bytes, &record, push, err);
        for (uint32_t s = 0; st == DP_OK && s < push->sections; s++) {
            const struct dp_section *section = &push->section[s];
            struct dp_cached_table *table = find_table(r, section->table);
            if (apply && record.kind == DP_RECORD_PUSH)
                st = apply_section(r, section, table, push->rate, lsn, err);
            else if (!apply && dp_record_changes_rows(&record))
                st = list_unknown(r, section, table, err);
        }
        if (st == DP_OK && apply) {
            st = apply_rest(r, &record, lsn, r->bytes + at + ENTRY_BYTES, (size_t)bytes, err);
            dp_journaling_replayed(r->w->journaling, lsn);
            DP_COUNT(&r->w->base->counters, bytes_replayed, bytes);
        }
        if (st != DP_OK)
            return dp_wrap(err, st, "replaying record %" PRIu64, lsn);
        at += ENTRY_BYTES + (size_t)((bytes + 7) & ~UINT64_C(7));
        DP_ASSERT(at <= r->used);
    }
    return st;
}

/* Frees space for all rows of the batch: evicts clean rows and, if there are none, writes changed ones
 * back. */
static enum dp_status make_room(struct recovery *r, struct dp_error *err)
{
    enum dp_status st;
    while ((st = dp_cache_budget_make_room(r->w->budget, r->rows, err)) == DP_AGAIN) {
        dp_write_back_turn(r->w);
        if (dp_write_back_goes_on(r->w))
            dp_io_jobs_take(r->w->jobs);
        else
            dp_io_jobs_wait(r->w->jobs);
    }
    return st;
}

static enum dp_status load_row(void *context, struct dp_store_key key, const void *row, size_t row_bytes,
                               struct dp_error *err)
{
    struct recovery *r = context;
    struct dp_cached_table *table = find_table(r, key.table);
    if (!table || row_bytes != table->cache->row_bytes)
        return dp_fail(err, DP_CORRUPT, "the store has a row of %zu bytes for table %08" PRIx32 ", which %s",
                       row_bytes, key.table, table ? "has rows of another length" : "has no mark");
    if (!dp_range_has(r->w->base->range, key.mixed))
        return dp_fail(err, DP_CORRUPT, "the store has a row of another shard, mixed key %016" PRIx64,
                       key.mixed);
    if (table->stored % ROWS_A_LOOK == 0 &&
        dp_cache_budget_taken(r->w->budget) > LOAD_SHARE(r->w->budget->bytes)) {
        r->too_many = true;
        return dp_fail(err, DP_FULL, "the store has more rows than it estimated");
    }
    table->stored++;
    table->away++;
    return put_row(r, table, key.mixed, row, err);
}

/* Whether to read all rows in order, which is faster per row, instead of those of the journal by their
 * keys. */
static bool worth_loading(const struct recovery *r)
{
    struct dp_store_stats stats = {0};
    r->w->jobs->store->stats(r->w->jobs->store->self, &stats);
    uint64_t rows = stats.rows_about, row_bytes = 0;
    for (uint32_t i = 0; i < r->w->tables->count; i++)
        row_bytes = r->w->tables->table[i]->cache->row_bytes > row_bytes
                        ? r->w->tables->table[i]->cache->row_bytes
                        : row_bytes;
    if (rows == 0 || rows > r->w->budget->bytes / 2 / (row_bytes + DP_ROW_SLOT_COST))
        return false;
    uint64_t batches = r->journal_bytes / (r->used + 1) + 1;
    uint64_t touched = r->all_rows < rows / batches ? r->all_rows * batches : rows;
    return touched > rows / READ_COST;
}

/* Call it before anything is read or written back. */
static enum dp_status begin(struct recovery *r, struct dp_error *err)
{
    const struct dp_store *store = r->w->jobs->store;
    r->began = true;
    if (!worth_loading(r))
        return dp_row_count_start(r->o->count, err);
    enum dp_status st = store->visit_rows(store->self, load_row, r, err);
    if (st == DP_FULL && r->too_many) { /* the loaded rows stay, as if they had been read by key */
        *err = (struct dp_error){0};
        for (uint32_t i = 0; i < r->w->tables->count; i++) {
            r->w->tables->table[i]->away -= r->w->tables->table[i]->stored;
            r->w->tables->table[i]->stored = 0;
        }
        return dp_row_count_start(r->o->count, err);
    }
    for (uint32_t i = 0; st == DP_OK && i < r->w->tables->count; i++)
        r->w->tables->table[i]->counted = true;
    return st;
}

static enum dp_status flush(struct recovery *r, struct dp_error *err)
{
    if (r->used == 0)
        return DP_OK;
    enum dp_status st = r->began ? DP_OK : begin(r, err);
    if (st == DP_OK)
        st = make_room(r, err);
    if (st == DP_OK)
        st = each_record(r, false, err);
    if (st == DP_OK)
        st = read_keys(r, err);
    if (st == DP_OK)
        st = each_record(r, true, err);
    r->used = 0;
    r->all_rows = r->cost = 0;
    r->keys_count = 0;
    memset(r->rows, 0, sizeof r->rows);
    return st;
}

/* ---- records */

/* Checks a section of a record when it is read; later code relies on that. */
static enum dp_status check_section(struct recovery *r, const struct dp_section *section, uint32_t dim,
                                    struct dp_error *err)
{
    const struct dp_cached_table *table = find_table(r, section->table);
    if (!table || table->spec.dim != dim)
        return dp_fail(err, DP_CORRUPT,
                       "a push to table %08" PRIx32 " of width %" PRIu32 ", which the store %s",
                       section->table, dim, table ? "has with another width" : "does not know");
    for (uint32_t i = 0; i < section->rows; i++) {
        const char *key = (const char *)section->keys + (size_t)i * 8;
        if (!dp_range_has(r->w->base->range, dp_load_u64le(key)) ||
            (i > 0 && dp_load_u64le(key - 8) >= dp_load_u64le(key)))
            return dp_fail(
                err, DP_CORRUPT,
                "a push to table '%s' whose keys are not of this shard, or not in order: is it another "
                "shard's journal?",
                table->spec.name);
    }
    return DP_OK;
}

static void count_section(struct recovery *r, const struct dp_section *section)
{
    for (uint32_t i = 0; i < r->w->tables->count; i++)
        if (r->w->tables->table[i]->id == section->table) {
            r->rows[i] += section->rows;
            r->all_rows += section->rows;
            r->cost += section->rows * (r->w->tables->table[i]->cache->row_bytes + DP_ROW_SLOT_COST);
        }
}

static enum dp_status add_record(struct recovery *r, uint64_t lsn, const void *record, size_t bytes,
                                 struct dp_error *err)
{
    size_t whole = ENTRY_BYTES + ((bytes + 7) & ~(size_t)7);
    if (r->used + whole > r->room) {
        size_t room = whole > r->most ? whole : r->most;
        char *more = realloc(r->bytes, room);
        if (!more)
            return dp_fail(err, DP_NOMEM, "no memory for a batch of %zu bytes", room);
        r->bytes = more;
        r->room = room;
    }
    char *to = r->bytes + r->used;
    dp_store_u64le(to, lsn);
    dp_store_u64le(to + 8, bytes);
    memcpy(to + ENTRY_BYTES, record, bytes);
    r->used += whole;
    DP_ASSERT(r->used <= r->room);
    return DP_OK;
}

static enum dp_status replay(void *context, uint64_t lsn, const void *record, size_t bytes,
                             struct dp_error *err)
{
    struct recovery *r = context;
    struct dp_record decoded;
    uint64_t rows = 0, cost = 0;
    enum dp_status st = dp_record_decode(record, bytes, &decoded, r->push, err);
    for (uint32_t s = 0; st == DP_OK && s < r->push->sections; s++) {
        st = check_section(r, &r->push->section[s], decoded.dims[s], err);
        if (!dp_record_changes_rows(&decoded))
            continue; /* its close has its rows */
        rows += r->push->section[s].rows;
        if (st == DP_OK)
            cost += r->push->section[s].rows *
                    (find_table(r, r->push->section[s].table)->cache->row_bytes + DP_ROW_SLOT_COST);
    }
    if (st != DP_OK)
        return dp_wrap(err, st, "replaying record %" PRIu64, lsn);
    uint64_t share = r->w->budget->bytes / BATCH_SHARE;
    if (r->used > 0 && (r->used + bytes + ENTRY_BYTES + 8 > r->most || r->all_rows + rows > BATCH_ROWS ||
                        r->cost + cost > share)) {
        st = flush(r, err);
        if (st == DP_OK) /* again: the batch was decoded into the same scratch */
            st = dp_record_decode(record, bytes, &decoded, r->push, err);
    }
    for (uint32_t s = 0; st == DP_OK && s < r->push->sections && dp_record_changes_rows(&decoded); s++)
        count_section(r, &r->push->section[s]);
    return st == DP_OK ? add_record(r, lsn, record, bytes, err) : st;
}

/* ---- opening */

static enum dp_status progress(void *context, enum dp_journal_phase phase, uint64_t done_bytes,
                               uint64_t all_bytes, struct dp_error *err)
{
    struct recovery *r = context;
    const struct dp_journal_options *o = r->o->journal;
    if (phase == DP_JOURNAL_REPLAYING)
        r->journal_bytes = all_bytes;
    return o->progress ? o->progress(o->progress_context, phase, done_bytes, all_bytes, err) : DP_OK;
}

/* Logs what the opening cut, since it may have been acknowledged: a torn write and damage to an unclaimed
 * record look the same. */
static void tell_cut(const struct recovery *r, const struct dp_journal_cut *cut)
{
    char text[DP_JOURNAL_CUT_TEXT];
    dp_journal_cut_text(cut, text);
    if (cut->rest != DP_JOURNAL_REST_NONE)
        dp_log(cut->rest == DP_JOURNAL_REST_RECORDS ? DP_LOG_WARN : DP_LOG_INFO,
               "shard %" PRIu32 ": its journal: %s", r->w->base->index, text);
}

static enum dp_status init(struct recovery *r, const struct dp_recovery_options *o, struct dp_error *err)
{
    struct dp_write_back *w = o->write_back;
    uint64_t share = w->budget->bytes / BATCH_SHARE;
    *r = (struct recovery){.o = o,
                           .w = w,
                           .steps = {w->base, w->tables, w->steps, w->kept},
                           .most = share < BATCH_BYTES ? (size_t)share : BATCH_BYTES};
    r->push = calloc(1, sizeof *r->push);
    r->scratch = dp_alloc_aligned(DP_TABLE_DIM_MAX * sizeof(float));
    return r->push && r->scratch ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for a record");
}

static void clear(struct recovery *r)
{
    DP_ASSERT(r->reads == 0); /* reads use this memory */
    free(r->push);
    free(r->scratch);
    free(r->numbers);
    free(r->bytes);
    free(r->keys);
}

static struct dp_journal_options journal_options(struct recovery *r)
{
    const struct dp_recovery_options *o = r->o;
    const struct dp_journaling *j = r->w->journaling;
    struct dp_journal_options options = *o->journal;
    options.secret = o->secret;
    options.replay_after = j->lsn;
    options.replay = replay;
    options.replay_context = r;
    options.progress = progress;
    options.progress_context = r;
    options.room = r->w->jobs->store->room;
    options.room_context = r->w->jobs->store->self;
    options.incarnation = j->incarnation > j->released ? j->incarnation : j->released;
    options.released = j->released;
    options.clean = !o->recovers;
    options.must_be_there = o->recovers && j->incarnation > j->released;
    return options;
}

/* Replays the complete journal. *journal stays NULL if it is only read. */
static enum dp_status replay_all(struct recovery *r, struct dp_journal **journal, uint64_t *last_lsn,
                                 struct dp_error *err)
{
    const struct dp_recovery_options *o = r->o;
    struct dp_journal_figures found = {0};
    struct dp_journal_options options = journal_options(r);
    r->w->journaling->replays = true;
    enum dp_status st =
        o->read_only ? dp_journal_read(&options, &found, err) : dp_journal_open(&options, journal, err);
    if (st == DP_OK && *journal)
        dp_journal_figures(*journal, &found);
    if (st == DP_OK) {
        tell_cut(r, &found.cut);
        st = flush(r, err);
    }
    r->w->journaling->replays = false;
    *last_lsn = found.last_lsn;
    return st;
}

enum dp_status dp_recovery_run(const struct dp_recovery_options *o, struct dp_error *err)
{
    struct dp_journaling *j = o->write_back->journaling;
    struct dp_journal *journal = NULL;
    struct recovery r;
    uint64_t last_lsn = 0;
    enum dp_status st = init(&r, o, err);
    if (st == DP_OK && !o->recovers)
        st = dp_journaling_release_old(j, err);
    if (st == DP_OK)
        st = replay_all(&r, &journal, &last_lsn, err);
    if (st == DP_OK)
        st = dp_steps_replay_end(&r.steps, err);
    if (st == DP_OK && r.newest_lsn > j->lsn)
        st = dp_damage_row_ahead(r.newest_table->spec.name, r.newest_mixed, r.newest_lsn, j->lsn, err);
    /* The last write-back that replay began continues in the turns. */
    clear(&r);
    DP_ASSERT(st != DP_OK || j->lsn == last_lsn);
    if (st == DP_OK && journal)
        st = dp_journaling_open(j, &journal, o->write_back->marked_lsn, err);
    dp_journal_close(&journal);
    return st;
}
