#include "server/checkpoint/manifest_data.h"

#include "server/durable/table_mark.h"

#include <stdlib.h>
#include <string.h>

/* ---- memory */

void dp_manifest_files_clear(struct dp_manifest_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->file[i].name);
    free(files->file);
    *files = (struct dp_manifest_files){0};
}

void dp_manifest_shard_clear(struct dp_manifest_shard *shard)
{
    dp_manifest_files_clear(&shard->files);
    dp_manifest_files_clear(&shard->tail.files);
    free(shard->tables.table);
    *shard = (struct dp_manifest_shard){0};
}

void dp_manifest_clear(struct dp_manifest *manifest)
{
    for (uint32_t i = 0; i < manifest->shards; i++)
        dp_manifest_shard_clear(&manifest->shard[i]);
    free(manifest->shard);
    free(manifest->tables.table);
    free(manifest->partial.push);
    free(manifest->made);
    free(manifest->cluster_name);
    free(manifest->ids.name);
    free(manifest->steps.name);
    free(manifest->register_file.name);
    free(manifest->cluster_file.name);
    for (int i = 0; i < DP_SIDE_FILES; i++)
        free(manifest->side[i].name);
    dp_manifest_files_clear(&manifest->step_logs);
    *manifest = (struct dp_manifest){0};
}

enum dp_status dp_manifest_files_add(struct dp_manifest_files *files, const char *name, uint64_t bytes,
                                     const char *checksum, struct dp_error *err)
{
    DP_ASSERT(strlen(checksum) == DP_CHECKSUM_TEXT - 1);
    bool full = (files->count & (files->count - 1)) == 0; /* the room is a power of two */
    size_t room = files->count > 0 ? 2 * files->count : 1;
    struct dp_manifest_file *list = full ? realloc(files->file, room * sizeof list[0]) : files->file;
    char *copy = strdup(name);
    if (list)
        files->file = list;
    if (!list || !copy) {
        free(copy);
        return dp_fail(err, DP_NOMEM, "no memory for the list of a checkpoint's files");
    }
    struct dp_manifest_file *file = &files->file[files->count++];
    *file = (struct dp_manifest_file){.name = copy, .bytes = bytes};
    memcpy(file->checksum, checksum, sizeof file->checksum);
    return DP_OK;
}

/* ---- sums */

static uint64_t bytes_of(const struct dp_manifest_files *files)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < files->count; i++)
        bytes += files->file[i].bytes;
    return bytes;
}

static int by_table(const void *a, const void *b)
{
    const struct dp_manifest_table *x = a, *y = b;
    return strcmp(x->spec.name, y->spec.name);
}

static enum dp_status unite(struct dp_manifest *manifest, struct dp_error *err)
{
    struct dp_manifest_tables *all = &manifest->tables;
    size_t room = 0, n = 0;
    for (uint32_t i = 0; i < manifest->shards; i++)
        room += manifest->shard[i].tables.count;
    struct dp_manifest_table *table = calloc(room + 1, sizeof table[0]);
    if (!table)
        return dp_fail(err, DP_NOMEM, "no memory for %zu tables", room);
    for (uint32_t i = 0; i < manifest->shards; i++)
        for (size_t t = 0; t < manifest->shard[i].tables.count; t++)
            table[n++] = manifest->shard[i].tables.table[t];
    qsort(table, n, sizeof table[0], by_table);
    free(all->table);
    *all = (struct dp_manifest_tables){.table = table};
    for (size_t i = 0; i < n; i++) {
        table[i].rows = DP_TABLE_ROWS_UNKNOWN;
        if (all->count == 0 || strcmp(table[all->count - 1].spec.name, table[i].spec.name) != 0)
            table[all->count++] = table[i];
        else if (dp_table_same(&table[all->count - 1].spec, &table[i].spec, err) != DP_OK)
            return dp_wrap(err, DP_CORRUPT, "shards have different tables of one name");
    }
    return DP_OK;
}

enum dp_status dp_manifest_sum(struct dp_manifest *manifest, struct dp_error *err)
{
    uint64_t own = manifest->ids.bytes + manifest->steps.bytes + manifest->register_file.bytes +
                   manifest->cluster_file.bytes + bytes_of(&manifest->step_logs);
    for (int i = 0; i < DP_SIDE_FILES; i++)
        own += manifest->side[i].bytes;
    manifest->bytes = own;
    manifest->bytes_new = own - manifest->bytes_linked;
    for (uint32_t i = 0; i < manifest->shards; i++) {
        const struct dp_manifest_shard *shard = &manifest->shard[i];
        manifest->bytes += bytes_of(&shard->files) + bytes_of(&shard->tail.files);
        manifest->bytes_new += shard->bytes_new;
    }
    return unite(manifest, err);
}
