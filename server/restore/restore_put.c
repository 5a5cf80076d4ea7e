#include "server/restore/restore_put.h"

#include "common/base/bytes.h"
#include "server/durable/table_mark.h"

#include <string.h>

/* ---- a shard that is copied */

static bool has_table(const struct dp_manifest_shard *shard, const char *name)
{
    for (size_t i = 0; i < shard->tables.count; i++)
        if (strcmp(shard->tables.table[i].spec.name, name) == 0)
            return true;
    return false;
}

/* A table may have come to this shard after the cut, and to another one before: pushes to it are in the tail here. */
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

/* The one that it is restored from, and whose rows it has. */
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

/* ---- a new one */

static enum dp_status see_streams(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    struct dp_restore_seen *seen = context;
    uint64_t streams = mark->value_bytes == 8 ? dp_load_u64le(mark->value) : 0;
    (void)err;
    seen->streams = streams > seen->streams ? streams : seen->streams;
    return DP_OK;
}

enum dp_status dp_restore_see(struct dp_restore_seen *seen, const struct dp_store *store,
                              struct dp_error *err)
{
    return store->visit_marks(store->self, "streams", 7, see_streams, seen, err);
}

static void put_tables(struct dp_restore_marks *marks, const struct dp_restore_from *from,
                       const struct dp_restore_rows *rows, uint32_t target)
{
    for (uint32_t i = 0; i < from->tables; i++) {
        char bytes[DP_TABLE_MARK_BYTES];
        const struct dp_store_mark mark =
            dp_table_mark_encode(&from->table[i].spec, dp_restore_rows_count(rows, target, i), bytes);
        dp_restore_marks_put(marks, &mark);
    }
}

void dp_restore_put_new(struct dp_restore_marks *marks, const struct dp_restore_from *from,
                        const struct dp_restore_seen *seen, const struct dp_restore_rows *rows,
                        uint32_t target)
{
    /* The journal goes on behind every row, whichever shard it is from. One that began lower would give a push an lsn that its row
     * has already: it would be answered, and skipped. */
    dp_restore_marks_put_u64(marks, "lsn", from->lsn_max);
    dp_restore_marks_put_bytes(marks, "ids", from->ids, (size_t)from->manifest.ids.bytes);
    if (from->steps)
        dp_restore_marks_put_bytes(marks, "steps", from->steps, (size_t)from->manifest.steps.bytes);
    put_checkpoint(marks, from);
    if (seen->streams > 0)
        dp_restore_marks_put_u64(marks, "streams", seen->streams);
    put_tables(marks, from, rows, target);
}
