#include "server/durable/durable_marks.h"

#include "common/base/bytes.h"
#include "server/durable/table_mark.h"
#include "server/steps/steps_mark.h"

#include <stdlib.h>

struct loading {
    struct dp_cached_tables *tables;
    uint64_t salt;
    struct dp_range range;
};

static enum dp_status visit_table(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    const struct loading *loading = context;
    struct dp_table_spec spec;
    struct dp_cached_table *table;
    uint64_t rows = 0;
    enum dp_status st = dp_table_mark_decode(mark, &spec, &rows, err);
    bool counted = rows != DP_TABLE_ROWS_UNKNOWN;
    if (st == DP_OK)
        st = dp_cached_tables_add(loading->tables, &spec, counted ? rows : 0, loading->salt, loading->range,
                                  &table, err);
    if (st == DP_OK) {
        table->durable = true;
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

enum dp_status dp_durable_marks_load(const struct dp_store *store, uint64_t salt, struct dp_range range,
                                     struct dp_cached_tables *tables, struct dp_durable_marks *out,
                                     struct dp_error *err)
{
    struct loading loading = {tables, salt, range};
    const struct {
        const char *key;
        uint64_t *to;
    } numbers[] = {{"lsn", &out->lsn},
                   {"journal", &out->incarnation},
                   {"released", &out->released},
                   {"streams", &out->streams}};
    *out = (struct dp_durable_marks){0};
    enum dp_status st = store->visit_marks(store->self, DP_TABLE_MARK_PREFIX, sizeof DP_TABLE_MARK_PREFIX - 1,
                                           visit_table, &loading, err);
    for (size_t i = 0; st == DP_OK && i < sizeof numbers / sizeof numbers[0]; i++)
        st = store->visit_marks(store->self, numbers[i].key, strlen(numbers[i].key), visit_u64, numbers[i].to,
                                err);
    return st;
}

enum dp_status dp_durable_marks_load_ids(const struct dp_store *store, struct dp_push_ids *ids,
                                         struct dp_error *err)
{
    return store->visit_marks(store->self, "ids", 3, visit_ids, ids, err);
}

struct loading_steps {
    struct dp_steps *steps;
    uint64_t now_ns;
};

static enum dp_status visit_steps(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    const struct loading_steps *loading = context;
    return dp_steps_mark_unpack(mark->value, mark->value_bytes, loading->steps, loading->now_ns, err);
}

enum dp_status dp_durable_marks_load_steps(const struct dp_store *store, struct dp_steps *steps,
                                           uint64_t now_ns, struct dp_error *err)
{
    struct loading_steps loading = {steps, now_ns};
    return store->visit_marks(store->self, "steps", 5, visit_steps, &loading, err);
}

/* Skips tables that are being created: their own job puts the mark. Such a table may be refused, and another
 * one come under its name, before these marks are in the store; it has no rows. */
struct dp_io_job *dp_durable_marks_job(const struct dp_cached_tables *tables, const struct dp_push_ids *ids,
                                       const struct dp_steps *steps, uint64_t rows_lsn, uint64_t released,
                                       void (*done)(void *context, struct dp_io_job *job), void *context)
{
    uint32_t room = tables->count + 4, n = 0;
    size_t each = DP_TABLE_MARK_BYTES, ids_bytes = 0, steps_bytes = dp_steps_mark_bytes(steps);
    char *packed = dp_push_ids_pack(ids, &ids_bytes);
    char *memory = packed ? calloc(1, room * sizeof(struct dp_store_mark) + 16 + tables->count * each +
                                          ids_bytes + steps_bytes)
                          : NULL;
    struct dp_io_job *job = memory ? dp_io_job_new(done, context, memory) : NULL;
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
        for (uint32_t i = 0; i < tables->count; i++) {
            const struct dp_cached_table *table = tables->table[i];
            if (!table->durable)
                continue;
            marks[n++] = dp_table_mark_encode(
                &table->spec, table->counted ? dp_cached_table_rows(table) : DP_TABLE_ROWS_UNKNOWN, at);
            at += each;
        }
        memcpy(at, packed, ids_bytes);
        marks[n++] =
            (struct dp_store_mark){.key = "ids", .key_bytes = 3, .value = at, .value_bytes = ids_bytes};
        at += ids_bytes;
        if (steps_bytes > 0) {
            dp_steps_mark_pack(steps, at);
            marks[n++] = (struct dp_store_mark){
                .key = "steps", .key_bytes = 5, .value = at, .value_bytes = steps_bytes};
        }
        DP_ASSERT(n <= room);
        job->store.kind = DP_STORE_MARKS;
        job->store.count = n;
        job->store.marks = marks;
    }
    free(packed);
    return job;
}
