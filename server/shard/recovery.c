/* Recovery: what the journal has beyond the store, into the rows.
 *     record, record, ... -> a batch (full) -> room for its rows -> those that the cache lacks are read, sorted, in
 *     several reads at once -> applied in the order of the journal -> next batch ...             (this order, always)
 * Why       The store's rows stay where they are: only those that the journal touches are read, and no more at a time
 *           than a share of the cache. A row takes a record only if it is newer (its lsn), so what is in the store
 *           already changes nothing. Replay reads no configuration and no clock: record and table's mark have all.
 *           Room before reading: rows of a batch are not evicted before it is applied. What is replayed is durable
 *           (journal.h), so rows may be written back meanwhile, with marks up to what was applied.
 *           How many rows the store has nobody knows after a crash. It counts them, as they were before the first
 *           write-back; rows that it did not have when it was asked are `fresh`, so the two never count one row twice.
 *           What the store has may be ahead of the record at hand, but not of the journal's last: looked at in the end.
 * Holds     shard->lsn = durable = synced = the last record that was applied. */
#include "server/shard/shard_inner.h"

#include "common/base/bytes.h"
#include "common/base/log.h"
#include "common/model/row.h"
#include "server/shard/record.h"

#include <inttypes.h>
#include <stdlib.h>

/* A batch: as many keys as can be read in one go, so that a block of the store is read once for all of them. */
#define BATCH_BYTES ((size_t)128 << 20)
#define BATCH_ROWS  1000000u
#define BATCH_SHARE 8u /* of the cache's budget, its records and its rows each */
#define ENTRY_BYTES ((size_t)16)
#define READ_ROWS   16384u /* of one read; it is split over the store's readers */
#define READ_BYTES  ((size_t)4 << 20)
#define READS_MAX   8u /* at the store */
/* A row read by its key (two readers at work) costs as much as so many where all are read in order. Measured:
 * tests/bench/recovery_bench.c, rows of 208 bytes. */
#define READ_COST 5u
/* All rows are read in order where half of the cache has room for as many as the store thinks it has. It only estimates:
 * where there are more, that ends when they take this much, and rows are read by their keys. */
#define ROWS_A_LOOK             256u
#define LOAD_SHARE(cache_bytes) ((cache_bytes) / 4 * 3)

struct dp_recovery {
    struct dp_request *push; /* scratch: a record decoded */
    char *bytes;             /* entries: lsn u64 | length u64 | record, filled up to 8 */
    size_t used, room, most;
    uint64_t rows[DP_SHARD_TABLES_MAX]; /* of each table in the batch, repeated ones too */
    uint64_t all_rows, cost;
    struct dp_store_key *keys; /* to be read */
    uint32_t keys_count, keys_room;
    uint32_t reads;
    bool began; /* the first batch was looked at */
    uint64_t journal_bytes;
    bool too_many;          /* rows in the store to read all in order */
    struct dp_error failed; /* of a read */
    /* The row with the greatest lsn of all that were read. */
    const struct dp_shard_table *newest_table;
    uint64_t newest_mixed, newest_lsn;
};

/* ---- the count */

static enum dp_status submit_count(struct dp_shard *shard, struct dp_error *err)
{
    uint32_t n = shard->tables;
    struct dp_store_key *keys = calloc(n + 1u, sizeof *keys + sizeof(uint64_t));
    struct dp_shard_job *job = keys ? dp_shard_job_new(DP_JOB_COUNT, keys) : NULL;
    if (!job)
        return dp_fail(err, DP_NOMEM, "counting rows");
    for (uint32_t i = 0; i < n; i++)
        keys[i].table = shard->table[i]->id;
    job->store.kind = DP_STORE_COUNT;
    job->store.count = n;
    job->store.keys = keys;
    job->store.counts = (uint64_t *)(void *)(keys + n + 1);
    enum dp_status st = dp_shard_submit(shard, job);
    if (st != DP_OK)
        return dp_fail(err, st, "counting rows");
    shard->counting = job;
    return DP_OK;
}

static void say_uncounted(struct dp_shard *shard)
{
    uint32_t uncounted = 0;
    for (uint32_t i = 0; i < shard->tables; i++)
        uncounted += !shard->table[i]->counted;
    DP_COUNT_SET(&shard->counters, tables_uncounted, uncounted);
}

void dp_shard_counted(struct dp_shard *shard, struct dp_shard_job *job)
{
    shard->counting = NULL;
    if (job->store.status != DP_OK) {
        shard->count_failed = true;
        /* All goes on: keys that the cache does not know are asked of the store. */
        if (job->store.status == DP_CORRUPT)
            dp_shard_damaged(shard, &job->store.error);
        else if (job->store.status != DP_STOPPING)
            dp_log(DP_LOG_WARN, "shard %" PRIu32 ": its rows could not be counted: %s", shard->options.index,
                   job->store.error.text);
        return;
    }
    for (uint32_t i = 0; i < job->store.count; i++) {
        struct dp_shard_table *table = dp_shard_find_table(shard, job->store.keys[i].table);
        DP_ASSERT(table);
        if (table->counted)
            continue;
        table->stored += job->store.counts[i];
        table->away += job->store.counts[i];
        table->counted = true;
    }
    say_uncounted(shard);
}

void dp_shard_stop_counting(struct dp_shard *shard)
{
    if (shard->counting)
        atomic_store(&shard->counting->store.cancelled, true);
}

/* ---- rows out of the store */

static enum dp_status put_row(struct dp_shard *shard, struct dp_shard_table *table, uint64_t mixed,
                              const void *row, struct dp_error *err)
{
    uint32_t number;
    if (dp_row_format(row) != DP_ROW_FORMAT)
        return dp_fail(err, DP_CORRUPT,
                       "table '%s': the row of mixed key %016" PRIx64 " has format %" PRIu32
                       ", this program knows %u",
                       table->spec.name, mixed, dp_row_format(row), DP_ROW_FORMAT);
    if (dp_row_cache_insert(table->cache, mixed, &number) != DP_OK)
        return dp_fail(err, DP_NOMEM, "rows of table '%s'", table->spec.name);
    memcpy(dp_row_cache_row(table->cache, number), row, table->cache->row_bytes);
    if (dp_row_lsn(row) > shard->recovery->newest_lsn) {
        shard->recovery->newest_table = table;
        shard->recovery->newest_mixed = mixed;
        shard->recovery->newest_lsn = dp_row_lsn(row);
    }
    table->away--;
    DP_COUNT(&shard->counters, rows_read, 1);
    DP_COUNT(&shard->counters, cache_rows, 1);
    return DP_OK;
}

void dp_shard_recovery_read(struct dp_shard *shard, struct dp_shard_job *job)
{
    struct dp_recovery *r = shard->recovery;
    enum dp_status st = job->store.status;
    r->reads--;
    if (st != DP_OK && r->failed.status == DP_OK)
        r->failed = job->store.error;
    for (uint32_t i = 0; st == DP_OK && r->failed.status == DP_OK && i < job->store.count; i++)
        if (job->store.found[i])
            st = put_row(shard, dp_shard_find_table(shard, job->store.keys[i].table),
                         job->store.keys[i].mixed, job->store.rows[i], &r->failed);
}

/* The next rows to be read, of one table: r->keys from `from` on. */
static struct dp_shard_job *read_job(const struct dp_shard *shard, uint32_t from)
{
    const struct dp_recovery *r = shard->recovery;
    const struct dp_shard_table *table = dp_shard_find_table(shard, r->keys[from].table);
    size_t row_bytes = table->cache->row_bytes;
    uint32_t n = 0, most = (uint32_t)(READ_BYTES / row_bytes + 1);
    most = most < READ_ROWS ? most : READ_ROWS;
    while (n < most && from + n < r->keys_count && r->keys[from + n].table == table->id)
        n++;
    char *memory = malloc(n * (sizeof(void *) + sizeof(uint32_t) + sizeof(bool) + row_bytes + 8));
    struct dp_shard_job *job = memory ? dp_shard_job_new(DP_JOB_REPLAY, memory) : NULL;
    if (!job)
        return NULL;
    void **rows = (void *)memory;
    uint32_t *lengths = (void *)(rows + n);
    bool *found = (void *)(lengths + n);
    char *bytes = (char *)found + n + (8 - ((uintptr_t)(found + n) & 7));
    for (uint32_t i = 0; i < n; i++) {
        rows[i] = bytes + i * row_bytes;
        lengths[i] = (uint32_t)row_bytes;
    }
    job->store.kind = DP_STORE_READ;
    job->store.count = n;
    job->store.keys = r->keys + from; /* lent: they outlive the read */
    job->store.rows = rows;
    job->store.row_bytes = lengths;
    job->store.found = found;
    return job;
}

static void wait_for_jobs(struct dp_shard *shard)
{
    if (shard->jobs > 0)
        shard->options.store->wait(shard->options.store->self);
    dp_shard_take_completed(shard);
}

static int by_key(const void *a, const void *b)
{
    const struct dp_store_key *x = a, *y = b;
    if (x->table != y->table)
        return x->table < y->table ? -1 : 1;
    return (x->mixed > y->mixed) - (x->mixed < y->mixed);
}

/* Returns when nothing is under way any more: the reads lend from this batch. */
static enum dp_status read_keys(struct dp_shard *shard, struct dp_error *err)
{
    struct dp_recovery *r = shard->recovery;
    struct dp_shard_job *job = NULL;
    enum dp_status st = DP_OK;
    uint32_t from = 0;
    if (r->keys_count > 0) /* else there may be no array */
        qsort(r->keys, r->keys_count, sizeof r->keys[0], by_key);
    while (r->reads > 0 || (st == DP_OK && from < r->keys_count)) {
        while (st == DP_OK && from < r->keys_count && r->reads < READS_MAX) {
            job = job ? job : read_job(shard, from);
            if (!job) {
                st = dp_fail(err, DP_NOMEM, "rows to be read");
                break;
            }
            if (dp_shard_try_submit(shard, job) != DP_OK)
                break; /* when others have come back */
            r->reads++;
            from += job->store.count;
            job = NULL;
        }
        wait_for_jobs(shard);
        if (st == DP_OK && r->failed.status != DP_OK) {
            *err = r->failed;
            st = err->status;
        }
    }
    dp_shard_job_free(job);
    return st;
}

/* ---- a batch */

/* The rows of one section into shard->rows. */
static enum dp_status find_rows(struct dp_shard *shard, const struct dp_section *section,
                                const struct dp_shard_table *table, struct dp_error *err)
{
    if (section->rows > shard->rows_room) {
        uint32_t *more = realloc(shard->rows, section->rows * sizeof more[0]);
        if (!more)
            return dp_fail(err, DP_NOMEM, "%" PRIu32 " rows", section->rows);
        shard->rows = more;
        shard->rows_room = section->rows;
    }
    dp_row_cache_find_many(table->cache, section->keys, section->rows, shard->rows);
    return DP_OK;
}

static enum dp_status add_key(struct dp_recovery *r, struct dp_store_key key, struct dp_error *err)
{
    if (r->keys_count == r->keys_room) {
        uint32_t room = r->keys_room ? 2 * r->keys_room : 1024;
        struct dp_store_key *more = realloc(r->keys, room * sizeof more[0]);
        if (!more)
            return dp_fail(err, DP_NOMEM, "%" PRIu32 " keys", room);
        r->keys = more;
        r->keys_room = room;
    }
    r->keys[r->keys_count++] = key;
    return DP_OK;
}

/* Keys that the store must be asked for; each once. */
static enum dp_status list_unknown(struct dp_shard *shard, const struct dp_section *section,
                                   struct dp_shard_table *table, struct dp_error *err)
{
    enum dp_status st = dp_shard_must_ask(table) ? find_rows(shard, section, table, err) : DP_OK;
    for (uint32_t i = 0; dp_shard_must_ask(table) && st == DP_OK && i < section->rows; i++) {
        if (shard->rows[i] != DP_ROW_UNKNOWN && shard->rows[i] != DP_ROW_FORGOTTEN)
            continue;
        struct dp_store_key key = {table->id, dp_load_u64le((const char *)section->keys + (size_t)i * 8)};
        st = dp_row_cache_set_state(table->cache, key.mixed, DP_ROW_READING) == DP_OK
                 ? add_key(shard->recovery, key, err)
                 : dp_fail(err, DP_NOMEM, "the index of table '%s'", table->spec.name);
    }
    return st;
}

static enum dp_status apply_section(struct dp_shard *shard, const struct dp_section *section,
                                    struct dp_shard_table *table, float rate, uint64_t lsn,
                                    struct dp_error *err)
{
    enum dp_status st = find_rows(shard, section, table, err);
    if (st == DP_OK)
        st = dp_shard_make_rows(shard, section, table, shard->rows, err);
    if (st == DP_OK)
        dp_shard_apply(shard, section, table, shard->rows, rate, lsn);
    DP_COUNT(&shard->counters, rows_replayed, section->rows);
    return st;
}

/* Each record of the batch: its keys listed, or (apply) its rows changed and its number remembered. */
static enum dp_status each_record(struct dp_shard *shard, bool apply, struct dp_error *err)
{
    struct dp_recovery *r = shard->recovery;
    struct dp_request *push = r->push;
    enum dp_status st = DP_OK, refused = DP_OK;
    uint32_t dims[DP_SECTIONS_MAX];
    for (size_t at = 0; st == DP_OK && at < r->used;) {
        uint64_t lsn = dp_load_u64le(r->bytes + at), bytes = dp_load_u64le(r->bytes + at + 8);
        st = dp_record_decode(r->bytes + at + ENTRY_BYTES, (size_t)bytes, push, &refused, dims, err);
        for (uint32_t s = 0; st == DP_OK && s < push->sections; s++) {
            const struct dp_section *section = &push->section[s];
            struct dp_shard_table *table = dp_shard_find_table(shard, section->table);
            st = apply ? apply_section(shard, section, table, push->rate, lsn, err)
                       : list_unknown(shard, section, table, err);
        }
        if (st == DP_OK && apply) {
            if (dp_push_ids_restore(shard->ids, push->stream, push->number, refused) != DP_OK)
                st = dp_fail(err, DP_NOMEM, "push ids");
            shard->lsn = shard->durable = shard->synced = lsn;
            DP_COUNT(&shard->counters, pushes_replayed, 1);
            DP_COUNT(&shard->counters, bytes_replayed, bytes);
        }
        if (st != DP_OK)
            return dp_wrap(err, st, "replaying record %" PRIu64, lsn);
        at += ENTRY_BYTES + (size_t)((bytes + 7) & ~UINT64_C(7));
    }
    return st;
}

/* Room for all that the batch may bring in: clean rows leave, and where there are none changed ones are written back. */
static enum dp_status make_room(struct dp_shard *shard, struct dp_error *err)
{
    enum dp_status st;
    while ((st = dp_shard_make_room_for_all(shard, shard->recovery->rows, err)) == DP_AGAIN) {
        dp_shard_write_back_turn(shard);
        if (dp_shard_write_back_goes_on(shard))
            dp_shard_take_completed(shard);
        else
            wait_for_jobs(shard);
    }
    return st;
}

static enum dp_status load_row(void *context, struct dp_store_key key, const void *row, size_t row_bytes,
                               struct dp_error *err)
{
    struct dp_shard *shard = context;
    struct dp_shard_table *table = dp_shard_find_table(shard, key.table);
    if (!table || row_bytes != table->cache->row_bytes)
        return dp_fail(err, DP_CORRUPT, "the store has a row of %zu bytes for table %08" PRIx32 ", which %s",
                       row_bytes, key.table, table ? "has rows of another length" : "has no mark");
    if (!dp_range_has(shard->range, key.mixed))
        return dp_fail(err, DP_CORRUPT, "the store has a row of another shard, mixed key %016" PRIx64,
                       key.mixed);
    if (table->stored % ROWS_A_LOOK == 0 && dp_shard_taken(shard) > LOAD_SHARE(shard->options.cache_bytes)) {
        shard->recovery->too_many = true;
        return dp_fail(err, DP_FULL, "more rows than the store thought");
    }
    table->stored++;
    table->away++;
    return put_row(shard, table, key.mixed, row, err);
}

/* Whether to read all rows in order, which is faster for each, rather than those of the journal by their keys. */
static bool worth_loading(const struct dp_shard *shard)
{
    const struct dp_recovery *r = shard->recovery;
    struct dp_store_figures figures = {0};
    shard->options.store->figures(shard->options.store->self, &figures);
    uint64_t rows = figures.rows_about, row_bytes = 0;
    for (uint32_t i = 0; i < shard->tables; i++)
        row_bytes =
            shard->table[i]->cache->row_bytes > row_bytes ? shard->table[i]->cache->row_bytes : row_bytes;
    if (rows == 0 || rows > shard->options.cache_bytes / 2 / (row_bytes + DP_ROW_SLOT_COST))
        return false;
    uint64_t batches = r->journal_bytes / (r->used + 1) + 1;
    uint64_t touched = r->all_rows < rows / batches ? r->all_rows * batches : rows;
    return touched > rows / READ_COST;
}

/* Before anything is read or written back. */
static enum dp_status begin(struct dp_shard *shard, struct dp_error *err)
{
    const struct dp_store *store = shard->options.store;
    shard->recovery->began = true;
    if (!worth_loading(shard))
        return submit_count(shard, err);
    enum dp_status st = store->visit_rows(store->self, load_row, shard, err);
    if (st == DP_FULL && shard->recovery->too_many) { /* what was loaded stays, as if it had been asked for */
        *err = (struct dp_error){0};
        for (uint32_t i = 0; i < shard->tables; i++) {
            shard->table[i]->away -= shard->table[i]->stored;
            shard->table[i]->stored = 0;
        }
        return submit_count(shard, err);
    }
    for (uint32_t i = 0; st == DP_OK && i < shard->tables; i++)
        shard->table[i]->counted = true;
    return st;
}

static enum dp_status flush(struct dp_shard *shard, struct dp_error *err)
{
    struct dp_recovery *r = shard->recovery;
    if (r->used == 0)
        return DP_OK;
    enum dp_status st = r->began ? DP_OK : begin(shard, err);
    if (st == DP_OK)
        st = make_room(shard, err);
    if (st == DP_OK)
        st = each_record(shard, false, err);
    if (st == DP_OK)
        st = read_keys(shard, err);
    if (st == DP_OK)
        st = each_record(shard, true, err);
    r->used = 0;
    r->all_rows = r->cost = 0;
    r->keys_count = 0;
    memset(r->rows, 0, sizeof r->rows);
    return st;
}

/* ---- records */

/* What a record says of one table is checked when it comes: past that it is a fact. */
static enum dp_status check_section(struct dp_shard *shard, const struct dp_section *section, uint32_t dim,
                                    struct dp_error *err)
{
    const struct dp_shard_table *table = dp_shard_find_table(shard, section->table);
    if (!table || table->spec.dim != dim)
        return dp_fail(err, DP_CORRUPT,
                       "a push to table %08" PRIx32 " of width %" PRIu32 ", which the store %s",
                       section->table, dim, table ? "has with another width" : "does not know");
    for (uint32_t i = 0; i < section->rows; i++) {
        const char *key = (const char *)section->keys + (size_t)i * 8;
        if (!dp_range_has(shard->range, dp_load_u64le(key)) ||
            (i > 0 && dp_load_u64le(key - 8) >= dp_load_u64le(key)))
            return dp_fail(
                err, DP_CORRUPT,
                "a push to table '%s' whose keys are not of this shard, or not in order: is it another "
                "shard's journal?",
                table->spec.name);
    }
    return DP_OK;
}

static void count_section(struct dp_shard *shard, const struct dp_section *section)
{
    struct dp_recovery *r = shard->recovery;
    for (uint32_t i = 0; i < shard->tables; i++)
        if (shard->table[i]->id == section->table) {
            r->rows[i] += section->rows;
            r->all_rows += section->rows;
            r->cost += section->rows * (shard->table[i]->cache->row_bytes + DP_ROW_SLOT_COST);
        }
}

static enum dp_status add_record(struct dp_recovery *r, uint64_t lsn, const void *record, size_t bytes,
                                 struct dp_error *err)
{
    size_t whole = ENTRY_BYTES + ((bytes + 7) & ~(size_t)7);
    if (r->used + whole > r->room) {
        size_t room = whole > r->most ? whole : r->most;
        char *more = realloc(r->bytes, room);
        if (!more)
            return dp_fail(err, DP_NOMEM, "a batch of %zu bytes", room);
        r->bytes = more;
        r->room = room;
    }
    char *to = r->bytes + r->used;
    dp_store_u64le(to, lsn);
    dp_store_u64le(to + 8, bytes);
    memcpy(to + ENTRY_BYTES, record, bytes);
    r->used += whole;
    return DP_OK;
}

static enum dp_status replay(void *context, uint64_t lsn, const void *record, size_t bytes,
                             struct dp_error *err)
{
    struct dp_shard *shard = context;
    struct dp_recovery *r = shard->recovery;
    uint32_t dims[DP_SECTIONS_MAX];
    uint64_t rows = 0, cost = 0;
    enum dp_status refused = DP_OK;
    enum dp_status st = dp_record_decode(record, bytes, r->push, &refused, dims, err);
    for (uint32_t s = 0; st == DP_OK && s < r->push->sections; s++) {
        st = check_section(shard, &r->push->section[s], dims[s], err);
        rows += r->push->section[s].rows;
        if (st == DP_OK)
            cost +=
                r->push->section[s].rows *
                (dp_shard_find_table(shard, r->push->section[s].table)->cache->row_bytes + DP_ROW_SLOT_COST);
    }
    if (st != DP_OK)
        return dp_wrap(err, st, "replaying record %" PRIu64, lsn);
    uint64_t share = shard->options.cache_bytes / BATCH_SHARE;
    if (r->used > 0 && (r->used + bytes + ENTRY_BYTES + 8 > r->most || r->all_rows + rows > BATCH_ROWS ||
                        r->cost + cost > share)) {
        st = flush(shard, err);
        if (st == DP_OK) /* the batch was decoded into the same place */
            st = dp_record_decode(record, bytes, r->push, &refused, dims, err);
    }
    for (uint32_t s = 0; st == DP_OK && s < r->push->sections; s++)
        count_section(shard, &r->push->section[s]);
    return st == DP_OK ? add_record(r, lsn, record, bytes, err) : st;
}

/* ---- opening */

static enum dp_status progress(void *context, enum dp_journal_phase phase, uint64_t done_bytes,
                               uint64_t all_bytes, struct dp_error *err)
{
    struct dp_shard *shard = context;
    const struct dp_journal_options *o = &shard->options.journal;
    if (phase == DP_JOURNAL_REPLAYING)
        shard->recovery->journal_bytes = all_bytes;
    return o->progress ? o->progress(o->progress_context, phase, done_bytes, all_bytes, err) : DP_OK;
}

static enum dp_status put_number(struct dp_shard *shard, enum dp_shard_job_kind kind, const char *key,
                                 uint64_t number, struct dp_error *err)
{
    struct dp_store_mark *mark = calloc(1, sizeof *mark + 8);
    struct dp_shard_job *job = mark ? dp_shard_job_new(kind, mark) : NULL;
    if (!job)
        return dp_fail(err, DP_NOMEM, "the journal's mark");
    char *value = (char *)(mark + 1);
    dp_store_u64le(value, number);
    *mark = (struct dp_store_mark){.key = key, .key_bytes = strlen(key), .value = value, .value_bytes = 8};
    job->store.kind = DP_STORE_MARKS;
    job->store.count = 1;
    job->store.marks = mark;
    enum dp_status st = dp_shard_submit(shard, job);
    return st == DP_OK ? st : dp_fail(err, st, "the journal's mark");
}

/* The store learns which opening of the journal is to be there next time, before anything is answered: a journal that is
 * gone, or an older copy, is then refused, not taken for an empty one. */
static enum dp_status put_incarnation(struct dp_shard *shard, struct dp_error *err)
{
    struct dp_journal_figures figures;
    dp_journal_figures(shard->journal, &figures);
    return put_number(shard, DP_JOB_JOURNAL, "journal", figures.incarnation, err);
}

/* A clean store whose marks do not release its journal yet: a build closed it that kept its journals, or an opening ended before it took
 * a push. All of it is in the rows, whatever has become of the journal since. Durable before the journal is touched: after a crash the
 * marks are all that tells a journal that is not needed from one that was lost. */
static enum dp_status release_journal(struct dp_shard *shard, struct dp_error *err)
{
    if (shard->options.recovers || shard->released >= shard->incarnation)
        return DP_OK;
    shard->released_put = false;
    enum dp_status st = put_number(shard, DP_JOB_RELEASED, "released", shard->incarnation, err);
    while (st == DP_OK && !shard->released_put)
        wait_for_jobs(shard);
    if (st == DP_OK && shard->unreleased.status != DP_OK) {
        *err = shard->unreleased;
        return err->status;
    }
    if (st == DP_OK)
        shard->released = shard->incarnation;
    return st;
}

/* What an opening cuts may have been acknowledged: nothing can tell a torn write from damage to a record that no claim
 * names. So it is said. */
static void tell_cut(const struct dp_shard *shard, const struct dp_journal_cut *cut)
{
    char text[DP_JOURNAL_CUT_TEXT];
    dp_journal_cut_text(cut, text);
    if (cut->rest != DP_JOURNAL_REST_NONE)
        dp_log(cut->rest == DP_JOURNAL_REST_RECORDS ? DP_LOG_WARN : DP_LOG_INFO,
               "shard %" PRIu32 ": its journal: %s", shard->options.index, text);
}

static enum dp_status open_journal(struct dp_shard *shard, struct dp_error *err)
{
    uint64_t share = shard->options.cache_bytes / BATCH_SHARE;
    struct dp_recovery r = {.push = calloc(1, sizeof *r.push),
                            .most = share < BATCH_BYTES ? (size_t)share : BATCH_BYTES};
    struct dp_journal_options options = shard->options.journal;
    options.secret = shard->options.salt;
    options.replay_after = shard->lsn;
    options.replay = replay;
    options.replay_context = shard;
    options.progress = progress;
    options.progress_context = shard;
    options.room = shard->options.store->room;
    options.room_context = shard->options.store->self;
    enum dp_status st = r.push ? release_journal(shard, err) : dp_fail(err, DP_NOMEM, "a record");
    options.incarnation = shard->incarnation > shard->released ? shard->incarnation : shard->released;
    options.released = shard->released;
    options.clean = !shard->options.recovers;
    options.must_be_there = shard->options.recovers && shard->incarnation > shard->released;
    shard->recovery = &r;
    struct dp_journal_figures found = {0};
    if (st == DP_OK)
        st = shard->options.read_only ? dp_journal_read(&options, &found, err)
                                      : dp_journal_open(&options, &shard->journal, err);
    if (st == DP_OK && shard->journal)
        dp_journal_figures(shard->journal, &found);
    if (st == DP_OK)
        tell_cut(shard, &found.cut);
    if (st == DP_OK)
        st = flush(shard, err);
    if (st == DP_OK && r.newest_lsn > shard->lsn)
        st = dp_shard_row_ahead(r.newest_table, r.newest_mixed, r.newest_lsn, shard->lsn, err);
    /* The last write-back that replay began goes on in the turns; reads lend from here. */
    DP_ASSERT(r.reads == 0);
    shard->recovery = NULL;
    free(r.push);
    free(r.bytes);
    free(r.keys);
    if (st != DP_OK)
        return st;
    DP_ASSERT(shard->lsn == found.last_lsn);
    if (shard->options.read_only)
        return DP_OK;
    /* A crash between the marks of a cycle and this is made up for: else a full journal would stay so. */
    dp_journal_release(shard->journal, shard->write_back.marked_lsn + 1);
    dp_journal_commit(shard->journal);
    return put_incarnation(shard, err);
}

static bool is_counted(const struct dp_shard *shard)
{
    for (uint32_t i = 0; i < shard->tables; i++)
        if (!shard->table[i]->counted)
            return false;
    return true;
}

/* A shard that could not be opened is closed: nothing of it may be at the store any more. */
static void end_jobs(struct dp_shard *shard)
{
    dp_shard_stop_counting(shard);
    while (shard->jobs > 0)
        wait_for_jobs(shard);
}

enum dp_status dp_shard_open_journal(struct dp_shard *shard, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    shard->write_back.rows_lsn = shard->write_back.marked_lsn = shard->write_back.stored_lsn = shard->lsn;
    shard->write_back.since_ns = dp_clock_ns(&shard->options.clock);
    shard->applied = shard->durable = shard->synced = shard->lsn;
    bool uncounted = shard->options.recovers || dp_shard_is_reverted(shard);
    for (uint32_t i = 0; uncounted && i < shard->tables; i++) {
        shard->table[i]->counted = false;
        shard->table[i]->stored = shard->table[i]->away = 0;
    }
    say_uncounted(shard);
    if (shard->options.read_only)
        dp_shard_write_nothing(shard);
    /* A store that was closed cleanly has all that was pushed: who only reads needs no journal then. */
    if (shard->options.journaled && (shard->options.recovers || !shard->options.read_only))
        st = open_journal(shard, err);
    if (st == DP_OK && !shard->counting && !shard->count_failed && !is_counted(shard))
        st = submit_count(shard, err);
    shard->applied = shard->lsn;
    say_uncounted(shard);
    if (st == DP_OK)
        return st;
    end_jobs(shard);
    return dp_wrap(err, st, "shard %" PRIu32, shard->options.index);
}
