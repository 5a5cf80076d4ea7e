#include "server/restore/restore_from.h"

#include "server/checkpoint/listing.h"
#include "server/ids/push_ids.h"
#include "server/restore/left_out.h"
#include "server/steps/steps_mark.h"

#include <stdlib.h>

static enum dp_status read_manifest(struct dp_restore_from *from, const char *checkpoint,
                                    struct dp_error *err)
{
    uint32_t number = 0;
    enum dp_status st = dp_checkpoint_find(checkpoint, &from->directory, &number, err);
    if (st == DP_OK)
        st = dp_checkpoint_path_of(from->directory.text, number, &from->checkpoint, err);
    return st == DP_OK ? dp_manifest_read_numbered(from->directory.text, number, &from->manifest, err) : st;
}

enum dp_status dp_restore_from_read(const struct dp_restore_from *from, const struct dp_manifest_file *file,
                                    void **bytes, struct dp_error *err)
{
    struct dp_checkpoint_path path;
    enum dp_status st = dp_checkpoint_path(&path, err, "%s/%s", from->checkpoint.text, file->name);
    const struct dp_restore_file small = {
        .from = path.text, .bytes = file->bytes, .checksum = file->checksum};
    return st == DP_OK ? dp_restore_file_read(&small, bytes, err) : st;
}

static enum dp_status read_ids(struct dp_restore_from *from, struct dp_error *err)
{
    struct dp_push_ids *ids = NULL;
    DP_ASSERT(from->manifest.ids.name); /* manifest.h */
    enum dp_status st = dp_restore_from_read(from, &from->manifest.ids, &from->ids, err);
    if (st == DP_OK)
        st = dp_push_ids_new(&ids);
    if (st == DP_OK)
        st = dp_push_ids_unpack(ids, from->ids, (size_t)from->manifest.ids.bytes, err);
    dp_push_ids_free(&ids);
    return st;
}

static enum dp_status read_steps(struct dp_restore_from *from, struct dp_error *err)
{
    if (!from->manifest.steps.name)
        return DP_OK;
    struct dp_steps *steps = calloc(1, sizeof *steps);
    if (!steps)
        return dp_fail(err, DP_NOMEM, "the steps of %s", from->checkpoint.text);
    enum dp_status st = dp_restore_from_read(from, &from->manifest.steps, &from->steps, err);
    if (st == DP_OK)
        st = dp_steps_mark_unpack(from->steps, (size_t)from->manifest.steps.bytes, steps, 0, err);
    dp_steps_clear(steps);
    free(steps);
    return st;
}

static int by_id(const void *a, const void *b)
{
    const struct dp_restore_table *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static enum dp_status list_tables(struct dp_restore_from *from, struct dp_error *err)
{
    const struct dp_manifest_tables *tables = &from->manifest.tables;
    from->table = calloc(tables->count + 1, sizeof from->table[0]);
    if (!from->table)
        return dp_fail(err, DP_NOMEM, "the tables of %s", from->checkpoint.text);
    for (size_t i = 0; i < tables->count; i++)
        from->table[i] = (struct dp_restore_table){.id = dp_table_id(tables->table[i].spec.name),
                                                   .spec = tables->table[i].spec,
                                                   .left_out = tables->table[i].left_out};
    from->tables = (uint32_t)tables->count;
    qsort(from->table, from->tables, sizeof from->table[0], by_id);
    return DP_OK;
}

enum dp_status dp_restore_from_complete(struct dp_restore_from *from, struct dp_error *err)
{
    for (uint32_t i = 0; i < from->manifest.shards; i++) {
        uint64_t last = from->manifest.shard[i].tail.last_lsn;
        from->lsn_max = last > from->lsn_max ? last : from->lsn_max;
    }
    return list_tables(from, err);
}

enum dp_status dp_restore_from_open(struct dp_restore_from *from, const char *checkpoint, const char *without,
                                    struct dp_error *err)
{
    *from = (struct dp_restore_from){0};
    enum dp_status st = read_manifest(from, checkpoint, err);
    if (st == DP_OK && without)
        st = dp_restore_leave_out(&from->manifest, without, err);
    if (st == DP_OK)
        st = read_ids(from, err);
    if (st == DP_OK)
        st = read_steps(from, err);
    return st == DP_OK ? dp_restore_from_complete(from, err) : st;
}

void dp_restore_from_close(struct dp_restore_from *from)
{
    dp_manifest_clear(&from->manifest);
    free(from->ids);
    free(from->steps);
    free(from->table);
    *from = (struct dp_restore_from){0};
}
