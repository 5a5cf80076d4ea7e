#define _XOPEN_SOURCE 700 /* realpath */
#include "server/restore/restore_from.h"

#include "server/durable/push_ids.h"
#include "server/durable/steps_mark.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAKING "making-" /* directories of checkpoints that were not completed */

static enum dp_status find(struct dp_restore_from *from, const char *checkpoint, struct dp_error *err)
{
    char real[4096], *name;
    if (!realpath(checkpoint, real))
        return dp_fail(err, DP_NOT_FOUND, "checkpoint %.300s: %s", checkpoint, strerror(errno));
    name = strrchr(real, '/') + 1;
    if (strncmp(name, MAKING, sizeof MAKING - 1) == 0)
        return dp_fail(err, DP_NOT_FOUND,
                       "%.300s was not completed: it is no checkpoint; give a directory checkpoint-N", real);
    if (strlen(real) + 64 > sizeof from->checkpoint)
        return dp_fail(err, DP_ARGUMENT, "the path %.300s... is too long", real);
    (void)snprintf(from->checkpoint, sizeof from->checkpoint, "%s", real);
    name[-1] = '\0';
    (void)snprintf(from->pool, sizeof from->pool, "%s/files", real);
    return DP_OK;
}

static enum dp_status read_manifest(struct dp_restore_from *from, struct dp_error *err)
{
    char path[DP_RESTORE_PATH_BYTES];
    enum dp_status st = dp_restore_path(path, from->checkpoint, DP_MANIFEST_NAME, err);
    if (st == DP_OK)
        st = dp_manifest_read(path, &from->manifest, err);
    return st == DP_NOT_FOUND
               ? dp_fail(err, st,
                         "%s has no file " DP_MANIFEST_NAME
                         ": it is no checkpoint; give a directory checkpoint-N of `downpour checkpoint --to`",
                         from->checkpoint)
               : st;
}

static enum dp_status read_small(const struct dp_restore_from *from, const struct dp_manifest_file *file,
                                 void **bytes, struct dp_error *err)
{
    char path[DP_RESTORE_PATH_BYTES];
    enum dp_status st = dp_restore_path(path, from->checkpoint, file->name, err);
    const struct dp_restore_file small = {.from = path, .bytes = file->bytes, .checksum = file->checksum};
    return st == DP_OK ? dp_restore_file_read(&small, bytes, err) : st;
}

static enum dp_status read_ids(struct dp_restore_from *from, struct dp_error *err)
{
    struct dp_push_ids *ids = NULL;
    DP_ASSERT(from->manifest.ids.name); /* manifest.h */
    enum dp_status st = read_small(from, &from->manifest.ids, &from->ids, err);
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
        return dp_fail(err, DP_NOMEM, "the steps of %s", from->checkpoint);
    enum dp_status st = read_small(from, &from->manifest.steps, &from->steps, err);
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
        return dp_fail(err, DP_NOMEM, "the tables of %s", from->checkpoint);
    for (size_t i = 0; i < tables->count; i++)
        from->table[i] = (struct dp_restore_table){.id = dp_table_id(tables->table[i].spec.name),
                                                   .spec = tables->table[i].spec};
    from->tables = (uint32_t)tables->count;
    qsort(from->table, from->tables, sizeof from->table[0], by_id);
    return DP_OK;
}

enum dp_status dp_restore_from_open(struct dp_restore_from *from, const char *checkpoint,
                                    struct dp_error *err)
{
    *from = (struct dp_restore_from){0};
    enum dp_status st = find(from, checkpoint, err);
    if (st == DP_OK)
        st = read_manifest(from, err);
    for (uint32_t i = 0; st == DP_OK && i < from->manifest.shards; i++) {
        uint64_t last = from->manifest.shard[i].tail.last_lsn;
        from->lsn_max = last > from->lsn_max ? last : from->lsn_max;
    }
    if (st == DP_OK)
        st = read_ids(from, err);
    if (st == DP_OK)
        st = read_steps(from, err);
    return st == DP_OK ? list_tables(from, err) : st;
}

void dp_restore_from_close(struct dp_restore_from *from)
{
    dp_manifest_clear(&from->manifest);
    free(from->ids);
    free(from->steps);
    free(from->table);
    *from = (struct dp_restore_from){0};
}
