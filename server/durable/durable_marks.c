#include "server/durable/durable_marks.h"

#include "common/base/bytes.h"
#include "server/durable/table_mark.h"
#include "server/steps/steps_mark.h"

#include <stdlib.h>

struct loading {
    const struct dp_durable_marks_into *into;
    uint64_t salt, now_ns;
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
        st = dp_cached_tables_add(loading->into->tables, &spec, counted ? rows : 0, loading->salt,
                                  loading->range, &table, err);
    if (st == DP_OK) {
        table->durable = true;
        table->counted = counted;
        table->marked = table->stored;
    }
    return st;
}

static enum dp_status visit_ids(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    const struct loading *loading = context;
    return dp_push_ids_unpack(loading->into->ids, mark->value, mark->value_bytes, err);
}

static enum dp_status visit_steps(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    const struct loading *loading = context;
    return dp_steps_mark_unpack(mark->value, mark->value_bytes, loading->into->steps, loading->now_ns, err);
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
                                     uint64_t now_ns, const struct dp_durable_marks_into *into,
                                     struct dp_durable_marks *out, struct dp_error *err)
{
    struct loading loading = {into, salt, now_ns, range};
    const struct {
        const char *key;
        enum dp_status (*visit)(void *context, const struct dp_store_mark *mark, struct dp_error *err);
        void *context;
    } marks[] = {{DP_TABLE_MARK_PREFIX, visit_table, &loading},
                 {"lsn", visit_u64, &out->lsn},
                 {"journal", visit_u64, &out->incarnation},
                 {"released", visit_u64, &out->released},
                 {"streams", visit_u64, &out->streams},
                 {"ids", visit_ids, &loading},
                 {"steps", visit_steps, &loading}};
    enum dp_status st = DP_OK;
    *out = (struct dp_durable_marks){0};
    for (size_t i = 0; st == DP_OK && i < sizeof marks / sizeof marks[0]; i++)
        st = store->visit_marks(store->self, marks[i].key, strlen(marks[i].key), marks[i].visit,
                                marks[i].context, err);
    return st;
}

static struct dp_store_mark mark_of(const char *key, const void *value, size_t bytes)
{
    return (struct dp_store_mark){.key = key, .key_bytes = strlen(key), .value = value, .value_bytes = bytes};
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
        marks[n++] = mark_of("lsn", at, 8);
        at += 8;
        if (released > 0) {
            dp_store_u64le(at, released);
            marks[n++] = mark_of("released", at, 8);
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
        marks[n++] = mark_of("ids", at, ids_bytes);
        at += ids_bytes;
        if (steps_bytes > 0) {
            dp_steps_mark_pack(steps, at);
            marks[n++] = mark_of("steps", at, steps_bytes);
        }
        DP_ASSERT(n <= room);
        job->store.kind = DP_STORE_MARKS;
        job->store.count = n;
        job->store.marks = marks;
    }
    free(packed);
    return job;
}
