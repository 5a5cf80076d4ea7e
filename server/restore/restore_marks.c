#include "server/restore/restore_marks.h"

#include "common/base/bytes.h"
#include "server/durable/table_mark.h"

#include <stdlib.h>
#include <string.h>

void dp_restore_marks_put(struct dp_restore_marks *marks, const struct dp_store_mark *mark)
{
    char *bytes = malloc(mark->key_bytes + mark->value_bytes + 1);
    if (!bytes || marks->failed || marks->count == DP_RESTORE_MARKS_MAX) {
        marks->failed = true;
        free(bytes);
        return;
    }
    memcpy(bytes, mark->key, mark->key_bytes);
    if (mark->value_bytes > 0)
        memcpy(bytes + mark->key_bytes, mark->value, mark->value_bytes);
    marks->mark[marks->count++] =
        (struct dp_store_mark){.key = bytes,
                               .key_bytes = mark->key_bytes,
                               .value = mark->value ? bytes + mark->key_bytes : NULL,
                               .value_bytes = mark->value_bytes};
}

void dp_restore_marks_put_bytes(struct dp_restore_marks *marks, const char *key, const void *value,
                                size_t bytes)
{
    const struct dp_store_mark mark = {
        .key = key, .key_bytes = strlen(key), .value = value, .value_bytes = bytes};
    dp_restore_marks_put(marks, &mark);
}

void dp_restore_marks_put_u64(struct dp_restore_marks *marks, const char *key, uint64_t value)
{
    char bytes[8];
    dp_store_u64le(bytes, value);
    dp_restore_marks_put_bytes(marks, key, bytes, sizeof bytes);
}

enum dp_status dp_restore_marks_write(const struct dp_restore_marks *marks, const struct dp_store *store,
                                      struct dp_error *err)
{
    struct dp_store_job job = {.kind = DP_STORE_MARKS, .count = marks->count, .marks = marks->mark};
    return marks->failed ? dp_fail(err, DP_NOMEM, "no memory for marks") : dp_store_do(store, &job, err);
}

void dp_restore_marks_clear(struct dp_restore_marks *marks)
{
    for (uint32_t i = 0; i < marks->count; i++)
        free((void *)(uintptr_t)marks->mark[i].key);
    marks->count = 0;
    marks->failed = false;
}

/* ---- of a shard that is copied */

static bool has_table(const struct dp_manifest_shard *shard, const char *name)
{
    for (size_t i = 0; i < shard->tables.count; i++)
        if (strcmp(shard->tables.table[i].spec.name, name) == 0)
            return true;
    return false;
}

/* A table may have come to another shard before the cut and here after it: pushes to it are in the tail. */
static void put_lacking(struct dp_restore_marks *marks, const struct dp_restore_from *from,
                        const struct dp_manifest_shard *shard)
{
    for (uint32_t i = 0; i < from->tables; i++) {
        char bytes[DP_TABLE_MARK_BYTES];
        if (has_table(shard, from->table[i].spec.name))
            continue;
        const struct dp_store_mark mark = dp_table_mark_encode(&from->table[i].spec, 0, bytes);
        dp_restore_marks_put(marks, &mark);
    }
}

/* The one that it is restored from, with its rows. */
static void put_checkpoint(struct dp_restore_marks *marks, const struct dp_restore_from *from)
{
    const char *name = from->checkpoint.text;
    dp_restore_marks_put_bytes(marks, DP_STORE_MARK_CHECKPOINT, name, strlen(name));
}

void dp_restore_put_copied(struct dp_restore_marks *marks, const struct dp_restore_from *from,
                           const struct dp_manifest_shard *shard)
{
    dp_restore_marks_put_bytes(marks, "ids", from->ids, (size_t)from->manifest.ids.bytes);
    dp_restore_marks_put_bytes(marks, "steps", from->steps,
                               from->steps ? (size_t)from->manifest.steps.bytes : 0);
    put_checkpoint(marks, from);
    put_lacking(marks, from, shard);
    /* The tail is a journal of its own: none of its openings is over, and without its last one it was lost. */
    dp_restore_marks_put_u64(marks, "journal", shard->tail.incarnation);
    dp_restore_marks_put_bytes(marks, "released", NULL, 0);
}

/* ---- of a new one */

static enum dp_status see_streams(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    uint64_t *most = context;
    uint64_t streams = mark->value_bytes == 8 ? dp_load_u64le(mark->value) : 0;
    (void)err;
    *most = streams > *most ? streams : *most;
    return DP_OK;
}

enum dp_status dp_restore_see_streams(uint64_t *streams, const struct dp_store *store, struct dp_error *err)
{
    return store->visit_marks(store->self, "streams", 7, see_streams, streams, err);
}

static void put_tables(struct dp_restore_marks *marks, const struct dp_restore_from *from,
                       const struct dp_restore_rows *rows, uint32_t target)
{
    for (uint32_t i = 0; i < from->tables; i++) {
        char bytes[DP_TABLE_MARK_BYTES];
        if (from->table[i].left_out)
            continue;
        const struct dp_store_mark mark =
            dp_table_mark_encode(&from->table[i].spec, dp_restore_rows_count(rows, target, i), bytes);
        dp_restore_marks_put(marks, &mark);
    }
}

void dp_restore_put_new(struct dp_restore_marks *marks, const struct dp_restore_from *from, uint64_t streams,
                        const struct dp_restore_rows *rows, uint32_t target)
{
    /* The journal begins after every row of all shards. One that began lower would give a push an lsn that
     * its row has already: the push would be answered, and skipped. */
    dp_restore_marks_put_u64(marks, "lsn", from->lsn_max);
    dp_restore_marks_put_bytes(marks, "ids", from->ids, (size_t)from->manifest.ids.bytes);
    if (from->steps)
        dp_restore_marks_put_bytes(marks, "steps", from->steps, (size_t)from->manifest.steps.bytes);
    put_checkpoint(marks, from);
    if (streams > 0)
        dp_restore_marks_put_u64(marks, "streams", streams);
    put_tables(marks, from, rows, target);
}
