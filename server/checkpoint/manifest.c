#include "server/checkpoint/manifest.h"

#include "common/env/atomic_file.h"
#include "common/env/read_only_disk.h"
#include "server/checkpoint/manifest_json.h"
#include "server/durable/table_mark.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX ((off_t)1 << 30)

/* ---- text */

static json_t *put_file(const struct dp_manifest_file *file)
{
    if (!file->name)
        return json_null();
    json_t *out = json_object();
    json_object_set_new(out, "name", json_string(file->name));
    dp_json_set_u64(out, "bytes", file->bytes);
    json_object_set_new(out, "blake2b", json_string(file->checksum));
    return out;
}

static json_t *put_files(const struct dp_manifest_files *files)
{
    json_t *out = json_array();
    for (size_t i = 0; i < files->count; i++)
        json_array_append_new(out, put_file(&files->file[i]));
    return out;
}

static json_t *put_table(const struct dp_manifest_table *table)
{
    char bytes[DP_TABLE_MARK_BYTES], hex[2 * DP_TABLE_MARK_BYTES + 1];
    const struct dp_store_mark mark = dp_table_mark_encode(&table->spec, table->rows, bytes);
    const unsigned char *value = mark.value;
    for (size_t i = 0; i < mark.value_bytes; i++) {
        hex[2 * i] = "0123456789abcdef"[value[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[value[i] & 15];
    }
    hex[2 * mark.value_bytes] = '\0';
    json_t *out = json_object();
    json_object_set_new(out, "name", json_string(table->spec.name));
    dp_json_set_u64(out, "dim", table->spec.dim);
    json_object_set_new(out, "optimizer", json_string(dp_optimizer_name(table->spec.optimizer.kind)));
    json_object_set_new(out, "mark", json_string(hex));
    if (table->rows != DP_TABLE_ROWS_UNKNOWN)
        dp_json_set_u64(out, "rows", table->rows);
    return out;
}

static json_t *put_tables(const struct dp_manifest_tables *tables)
{
    json_t *out = json_array();
    for (size_t i = 0; i < tables->count; i++)
        json_array_append_new(out, put_table(&tables->table[i]));
    return out;
}

static json_t *put_shard(const struct dp_manifest_shard *shard)
{
    json_t *out = json_object(), *tail = json_object();
    dp_json_set_u64(out, "index", shard->index);
    dp_json_set_u64(out, "shards", shard->shards);
    dp_manifest_json_put_hex(out, "first", shard->range.first);
    dp_manifest_json_put_hex(out, "last", shard->range.last);
    dp_manifest_json_put_hex(out, "store", shard->store);
    dp_json_set_u64(out, "lsn", shard->lsn);
    dp_json_set_u64(out, "after", shard->after);
    dp_json_set_u64(tail, "last_lsn", shard->tail.last_lsn);
    dp_json_set_u64(tail, "incarnation", shard->tail.incarnation);
    dp_json_set_u64(tail, "records", shard->tail.records);
    dp_json_set_u64(tail, "bytes", shard->tail.bytes);
    json_object_set_new(tail, "files", put_files(&shard->tail.files));
    json_object_set_new(out, "tail", tail);
    json_object_set_new(out, "tables", put_tables(&shard->tables));
    json_object_set_new(out, "files", put_files(&shard->files));
    dp_json_set_u64(out, "bytes_new", shard->bytes_new);
    return out;
}

static json_t *put_position(const struct dp_manifest_position *position)
{
    if (!position->known)
        return json_null();
    json_t *out = json_object();
    dp_json_set_u64(out, "run", position->run);
    dp_json_set_u64(out, "epoch", position->epoch);
    dp_json_set_u64(out, "step", position->step);
    dp_json_set_real(out, "loss", position->loss);
    return out;
}

static json_t *put_partial(const struct dp_copy_pushes *partial)
{
    json_t *out = json_array();
    for (uint32_t i = 0; i < partial->count; i++) {
        json_t *object = json_object();
        dp_manifest_json_put_hex(object, "stream", partial->push[i].stream);
        dp_json_set_u64(object, "number", partial->push[i].number);
        json_array_append_new(out, object);
    }
    return out;
}

static json_t *put_all(const struct dp_manifest *manifest)
{
    json_t *out = json_object(), *cluster = json_object(), *shards = json_array();
    dp_json_set_u64(out, "format", DP_MANIFEST_FORMAT);
    dp_json_set_u64(out, "number", manifest->number);
    dp_manifest_json_put_hex(out, "order", manifest->order);
    json_object_set_new(out, "made", json_string(manifest->made));
    dp_manifest_json_put_hex(cluster, "id", manifest->cluster);
    json_object_set_new(cluster, "name", json_string(manifest->cluster_name));
    json_object_set_new(out, "cluster", cluster);
    dp_json_set_u64(out, "generation", manifest->generation);
    dp_manifest_json_put_hex(out, "history", manifest->history);
    for (uint32_t i = 0; i < manifest->shards; i++)
        json_array_append_new(shards, put_shard(&manifest->shard[i]));
    json_object_set_new(out, "tables", put_tables(&manifest->tables));
    if (manifest->partial.count > 0)
        json_object_set_new(out, "partial_pushes", put_partial(&manifest->partial));
    json_object_set_new(out, "ids", put_file(&manifest->ids));
    json_object_set_new(out, "steps", put_file(&manifest->steps));
    json_object_set_new(out, "register", put_file(&manifest->register_file));
    json_object_set_new(out, "cluster_file", put_file(&manifest->cluster_file));
    for (int i = 0; i < DP_SIDE_FILES; i++)
        if (manifest->side[i].name)
            json_object_set_new(out, dp_side_files[i].key, put_file(&manifest->side[i]));
    json_object_set_new(out, "step_logs", put_files(&manifest->step_logs));
    json_object_set_new(out, "position", put_position(&manifest->position));
    dp_json_set_u64(out, "bytes", manifest->bytes);
    dp_json_set_u64(out, "bytes_new", manifest->bytes_new);
    json_object_set_new(out, "shards", shards);
    return out;
}

/* jansson's setters ignore a value that no memory was left for: what is printed is parsed once more before it counts
 * (dp_manifest_write). */
static char *text_of(json_t *object)
{
    char *text = object ? json_dumps(object, JSON_INDENT(1)) : NULL;
    json_decref(object);
    return text;
}

char *dp_manifest_text(const struct dp_manifest *manifest)
{
    json_t *object = put_all(manifest);
    if (!object || dp_manifest_json_seal(object))
        return text_of(object);
    json_decref(object);
    return NULL;
}

char *dp_manifest_shard_text(const struct dp_manifest_shard *shard)
{
    return text_of(put_shard(shard));
}

/* ---- files */

enum dp_status dp_manifest_write(const char *path, const struct dp_manifest *manifest, struct dp_error *err)
{
    struct dp_manifest again = {0};
    struct dp_atomic_file file = {0};
    char *text = dp_manifest_text(manifest);
    if (!text)
        return dp_fail(err, DP_NOMEM, "no memory for manifest %s", path);
    enum dp_status st = dp_manifest_parse(text, strlen(text), &again, err);
    dp_manifest_clear(&again);
    if (st == DP_OK)
        st = dp_atomic_file_open(path, &file, err);
    if (st == DP_OK) {
        (void)fputs(text, file.stream);
        (void)fputc('\n', file.stream);
        st = dp_atomic_file_commit(&file, err);
    }
    free(text);
    return st == DP_OK ? st : dp_wrap(err, st, "%s", path);
}

static enum dp_status read_all(int fd, char **text, size_t *size, struct dp_error *err)
{
    struct stat found;
    if (fstat(fd, &found) != 0)
        return dp_fail(err, DP_IO, "%s", strerror(errno));
    if (found.st_size > TEXT_MAX)
        return dp_fail(err, DP_CORRUPT, "it is too large for a manifest");
    *size = 0;
    *text = malloc((size_t)found.st_size + 1);
    while (*text && *size < (size_t)found.st_size) {
        ssize_t got = read(fd, *text + *size, (size_t)found.st_size - *size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return dp_fail(err, DP_IO, "%s", strerror(errno));
        if (got == 0)
            break;
        *size += (size_t)got;
    }
    return *text ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for a manifest");
}

enum dp_status dp_manifest_read(const char *path, struct dp_manifest *out, struct dp_error *err)
{
    char *text = NULL;
    size_t size = 0;
    int fd;
    *out = (struct dp_manifest){0};
    enum dp_status st = dp_read_only_disk_file(AT_FDCWD, path, &fd, err);
    if (st == DP_OK) {
        st = read_all(fd, &text, &size, err);
        (void)close(fd);
    }
    if (st == DP_OK)
        st = dp_manifest_parse(text, size, out, err);
    free(text);
    return st == DP_OK ? st : dp_wrap(err, st, "%s", path);
}

enum dp_status dp_manifest_read_numbered(const char *directory, uint32_t number, struct dp_manifest *out,
                                         struct dp_error *err)
{
    struct dp_checkpoint_path at, path;
    *out = (struct dp_manifest){0};
    enum dp_status st = dp_checkpoint_path_of(directory, number, &at, err);
    if (st == DP_OK)
        st = dp_checkpoint_path(&path, err, "%s/" DP_MANIFEST_NAME, at.text);
    if (st == DP_OK)
        st = dp_manifest_read(path.text, out, err);
    if (st == DP_CORRUPT)
        st = dp_wrap(err, st,
                     "checkpoint %" PRIu32 " is damaged; use another one ('downpour inspect %.150s' lists "
                     "them)",
                     number, directory);
    if (st != DP_OK || out->number == number)
        return st;
    st = dp_fail(err, DP_CORRUPT,
                 "%.100s is checkpoint %" PRIu32
                 " by its manifest: the directory was renamed, or moved over another. Give it its "
                 "name back (checkpoint-%06" PRIu32 "), or use another checkpoint",
                 at.text, out->number, out->number);
    dp_manifest_clear(out);
    return st;
}
