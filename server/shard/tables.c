/* Tables of a shard: found by id, created durably, loaded from the store's marks.
 * Marks     "table/...": table_mark.h. Beside them: "lsn",
 *           u64: every push up to it is in the stored rows, replay starts behind it; "streams", u64: none from
 *           it on was given yet; "journal", u64: the incarnation of the journal that must be there, unless
 *           "released", u64, is not below it: openings of the journal up to that one are over, and all that they took is in
 *           the store (the last cycle of a drain says so); "ids" (push_ids.h); "reverted" (snapshots.c). A write-back cycle ends with all but "streams",
 *           "journal", "reverted" and, where it is not the last, "released", put at once. */
#include "server/shard/shard_inner.h"
#include "server/shard/table_mark.h"

#include "common/model/row.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the list */

static uint32_t place_of(const struct dp_shard *shard, uint32_t id)
{
    uint32_t low = 0, high = shard->tables;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (shard->table[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct dp_shard_table *dp_shard_find_table(const struct dp_shard *shard, uint32_t id)
{
    uint32_t at = place_of(shard, id);
    return at < shard->tables && shard->table[at]->id == id ? shard->table[at] : NULL;
}

static void table_free(struct dp_shard_table *table)
{
    if (!table)
        return;
    dp_optimizer_free(&table->optimizer);
    dp_row_cache_free(&table->cache);
    free(table);
}

static enum dp_status add_table(struct dp_shard *shard, const struct dp_table_spec *spec, uint64_t stored,
                                bool durable, struct dp_shard_table **out, struct dp_error *err)
{
    if (shard->tables == DP_SHARD_TABLES_MAX)
        return dp_fail(err, DP_UNSUPPORTED, "table '%s' would be one more than the %u that a shard can have",
                       spec->name, DP_SHARD_TABLES_MAX);
    struct dp_shard_table *table = calloc(1, sizeof *table);
    if (!table)
        return dp_fail(err, DP_NOMEM, "table '%s'", spec->name);
    enum dp_status st =
        dp_row_cache_new(dp_row_bytes(spec), shard->options.salt, shard->range, &table->cache);
    if (st != DP_OK)
        (void)dp_fail(err, st, "table '%s'", spec->name);
    if (st == DP_OK)
        st = dp_optimizer_new(spec, DP_FORM_BEST, &table->optimizer, err);
    if (st != DP_OK) {
        table_free(table);
        return st;
    }
    table->spec = *spec;
    table->id = dp_table_id(spec->name);
    table->stored = table->away = stored;
    table->counted = true;
    table->durable = durable;
    uint32_t at = place_of(shard, table->id);
    memmove(&shard->table[at + 1], &shard->table[at], (shard->tables - at) * sizeof shard->table[0]);
    shard->table[at] = table;
    shard->tables++;
    *out = table;
    return DP_OK;
}

static void remove_table(struct dp_shard *shard, uint32_t id)
{
    uint32_t at = place_of(shard, id);
    table_free(shard->table[at]);
    shard->tables--;
    memmove(&shard->table[at], &shard->table[at + 1], (shard->tables - at) * sizeof shard->table[0]);
}

void dp_shard_free_tables(struct dp_shard *shard)
{
    while (shard->tables > 0)
        table_free(shard->table[--shard->tables]);
}

uint64_t dp_shard_cache_bytes(const struct dp_shard *shard)
{
    uint64_t bytes = shard->room.reads_bytes;
    for (uint32_t i = 0; i < shard->tables; i++)
        bytes += shard->table[i]->cache->bytes;
    return bytes;
}

/* ---- opening and closing */

static enum dp_status visit_table(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    struct dp_table_spec spec;
    struct dp_shard_table *table;
    uint64_t rows = 0;
    enum dp_status st = dp_table_mark_decode(mark, &spec, &rows, err);
    bool counted = rows != DP_TABLE_ROWS_UNKNOWN;
    if (st == DP_OK)
        st = add_table(context, &spec, counted ? rows : 0, true, &table, err);
    if (st == DP_OK) {
        table->counted = counted;
        table->marked = table->stored;
    }
    return st;
}

static enum dp_status visit_ids(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    return dp_push_ids_unpack(context, mark->value, mark->value_bytes, err);
}

static enum dp_status visit_u64(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    if (mark->value_bytes != 8)
        return dp_fail(err, DP_CORRUPT, "the store's mark '%.*s' has %zu bytes, not 8", (int)mark->key_bytes,
                       (const char *)mark->key, mark->value_bytes);
    *(uint64_t *)context = dp_load_u64le(mark->value);
    return DP_OK;
}

enum dp_status dp_shard_load_tables(struct dp_shard *shard, struct dp_error *err)
{
    const struct dp_store *store = shard->options.store;
    enum dp_status st = store->visit_marks(store->self, DP_TABLE_MARK_PREFIX, 6, visit_table, shard, err);
    if (st == DP_OK)
        st = store->visit_marks(store->self, "lsn", 3, visit_u64, &shard->lsn, err);
    if (st == DP_OK)
        st = store->visit_marks(store->self, "journal", 7, visit_u64, &shard->incarnation, err);
    if (st == DP_OK)
        st = store->visit_marks(store->self, "released", 8, visit_u64, &shard->released, err);
    if (st == DP_OK)
        st = store->visit_marks(store->self, "streams", 7, visit_u64, &shard->streams_reserved, err);
    if (st == DP_OK)
        st = dp_shard_load_reverted(shard, err);
    if (st != DP_OK)
        return dp_wrap(err, st, "shard %" PRIu32, shard->options.index);
    /* The mark, or this opening's clock where that is later: a store that lost its last marks gives no stream twice. */
    uint64_t first = dp_client_stream_at(dp_shard_wall_s(shard));
    first = first > 0 ? first : 1;
    if (first > shard->streams_reserved)
        shard->streams_reserved = first;
    shard->next_stream = shard->streams_reserved;
    dp_shard_set_due(shard); /* for what the marks and the journal have */
    st = store->visit_marks(store->self, "ids", 3, visit_ids, shard->ids, err);
    return st == DP_OK ? st : dp_wrap(err, st, "shard %" PRIu32, shard->options.index);
}

/* Of a table that is not counted yet: no more than it has. */
static uint64_t rows_known(const struct dp_shard_table *table)
{
    if (table->counted)
        return table->stored + table->fresh;
    return table->marked > table->fresh ? table->marked : table->fresh; /* they may be the same rows */
}

/* Of a table that is being created its own job puts the mark: it may be refused, and another come under that name, before
 * these marks are in the store. It has no rows. */
struct dp_shard_job *dp_shard_marks_job(const struct dp_shard *shard, uint64_t rows_lsn, uint64_t released)
{
    uint32_t room = shard->tables + 3, n = 0;
    size_t each = DP_TABLE_MARK_BYTES, ids_bytes = 0;
    char *ids = dp_push_ids_pack(shard->ids, &ids_bytes);
    char *memory =
        ids ? calloc(1, room * sizeof(struct dp_store_mark) + 16 + shard->tables * each + ids_bytes) : NULL;
    struct dp_shard_job *job = memory ? dp_shard_job_new(DP_JOB_MARKS, memory) : NULL;
    if (job) {
        struct dp_store_mark *marks = (struct dp_store_mark *)(void *)memory;
        char *at = memory + room * sizeof *marks;
        dp_store_u64le(at, rows_lsn);
        marks[n++] = (struct dp_store_mark){.key = "lsn", .key_bytes = 3, .value = at, .value_bytes = 8};
        at += 8;
        if (released > 0) {
            dp_store_u64le(at, released);
            marks[n++] =
                (struct dp_store_mark){.key = "released", .key_bytes = 8, .value = at, .value_bytes = 8};
            at += 8;
        }
        for (uint32_t i = 0; i < shard->tables; i++) {
            const struct dp_shard_table *table = shard->table[i];
            if (!table->durable)
                continue;
            marks[n++] = dp_table_mark_encode(&table->spec,
                                              table->counted ? rows_known(table) : DP_TABLE_ROWS_UNKNOWN, at);
            at += each;
        }
        memcpy(at, ids, ids_bytes);
        marks[n++] =
            (struct dp_store_mark){.key = "ids", .key_bytes = 3, .value = at, .value_bytes = ids_bytes};
        job->store.kind = DP_STORE_MARKS;
        job->store.count = n;
        job->store.marks = marks;
    }
    free(ids);
    return job;
}

/* ---- requests */

static enum dp_done answer_created(struct dp_shard *shard, const struct dp_waiting *waiting, bool existed)
{
    struct dp_reply reply = {.kind = DP_REPLY_TABLE_CREATED, .existed = existed};
    dp_shard_answer(shard, waiting, &reply, NULL, 0);
    return DP_DONE;
}

enum dp_done dp_shard_create_table(struct dp_shard *shard, struct dp_waiting *waiting)
{
    const struct dp_request *request = &waiting->request;
    struct dp_error err = {0};
    struct dp_shard_table *table = dp_shard_find_table(shard, dp_table_id(request->spec.name));
    if (table) {
        if (dp_table_same(&table->spec, &request->spec, &err) != DP_OK)
            return dp_shard_refuse_waiting(shard, waiting, &err);
        if (table->durable)
            return answer_created(shard, waiting, table->creator != request->session);
        (void)dp_fail(&err, DP_AGAIN, "table '%s' is being created", table->spec.name);
        return dp_shard_refuse_waiting(shard, waiting, &err);
    }
    if (add_table(shard, &request->spec, 0, false, &table, &err) != DP_OK)
        return dp_shard_refuse_waiting(shard, waiting, &err);
    table->creator = request->session;
    char *memory = calloc(1, sizeof(struct dp_store_mark) + DP_TABLE_MARK_BYTES);
    struct dp_shard_job *job = memory ? dp_shard_job_new(DP_JOB_TABLE, memory) : NULL;
    if (job) {
        struct dp_store_mark *mark = (struct dp_store_mark *)(void *)memory;
        *mark = dp_table_mark_encode(&table->spec, 0, memory + sizeof *mark);
        job->store.kind = DP_STORE_MARKS;
        job->store.count = 1;
        job->store.marks = mark;
        job->table = table->id;
        job->session = request->session;
        job->request = request->id;
        if (dp_shard_submit(shard, job) == DP_OK)
            return DP_DONE_WAIT;
    }
    remove_table(shard, table->id);
    (void)dp_fail(&err, DP_AGAIN, "shard %" PRIu32 ": its store is busy", shard->options.index);
    return dp_shard_refuse_waiting(shard, waiting, &err);
}

void dp_shard_table_stored(struct dp_shard *shard, struct dp_shard_job *job)
{
    struct dp_shard_table *table = dp_shard_find_table(shard, job->table);
    DP_ASSERT(table && !table->durable);
    if (job->store.status == DP_OK)
        table->durable = true;
    else
        remove_table(shard, job->table);
    struct dp_session *session = dp_sessions_find(shard->sessions, job->session);
    DP_ASSERT(session && session->parked && session->first->request.id == job->request);
    if (job->store.status != DP_OK)
        session->first->broken = job->store.error;
    session->parked = false;
    dp_shard_make_runnable(shard, session);
}

uint64_t dp_shard_dirty_rows(const struct dp_shard *shard)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < shard->tables; i++)
        rows += (uint64_t)shard->table[i]->cache->dirty_rows + shard->table[i]->cache->due_rows;
    return rows;
}

void dp_shard_status(struct dp_shard *shard, const struct dp_waiting *waiting)
{
    struct dp_table_status tables[DP_SHARD_TABLES_MAX];
    struct dp_counter counters[DP_COUNTERS_MAX];
    struct dp_store_figures figures = {0};
    shard->options.store->figures(shard->options.store->self, &figures);
    DP_COUNT_SET(&shard->counters, l0_files, figures.l0_files);
    DP_COUNT_SET(&shard->counters, rows_dirty, dp_shard_dirty_rows(shard));
    DP_COUNT_SET(&shard->counters, compaction_debt_bytes, figures.compaction_debt_bytes);
    for (uint32_t i = 0; i < shard->tables; i++)
        tables[i] = (struct dp_table_status){.spec = shard->table[i]->spec,
                                             .rows = rows_known(shard->table[i]),
                                             .bytes = shard->table[i]->cache->bytes};
    struct dp_reply reply = {.kind = DP_REPLY_STATUS,
                             .report = {.shard = shard->options.index,
                                        .shards = shard->options.shards,
                                        .tables = shard->tables,
                                        .counters = dp_shard_counters(shard, counters),
                                        .table = tables,
                                        .counter = counters}};
    dp_shard_answer(shard, waiting, &reply, NULL, 0);
}
