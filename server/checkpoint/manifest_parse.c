/* From JSON to a manifest: every field is checked here, and the parts against each other; past this file they are facts. */
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/manifest_json.h"
#include "server/durable/table_mark.h"
#include "server/store/store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 200u
#define FILES_MAX      1000000u
#define TABLES_MAX     4096u
#define PARTIAL_MAX    (1u << 20)
#define MARK_HEX       (2u * DP_TABLE_MARK_BYTES)

/* ---- files */

/* A name must not lead out of its directory. */
static bool is_name(const char *name)
{
    return name[0] != '.' && !strchr(name, '/') && strlen(name) <= NAME_MAX_BYTES;
}

static void take_file(struct dp_manifest_json *json, const json_t *from, struct dp_manifest_file *out)
{
    const char *name = dp_manifest_json_text(json, from, "name", NAME_MAX_BYTES);
    const char *sum = dp_manifest_json_text(json, from, "blake2b", DP_CHECKSUM_TEXT - 1);
    out->bytes = dp_manifest_json_u64(json, from, "bytes", INT64_MAX);
    if (json->status == DP_OK && !is_name(name))
        (void)dp_manifest_json_fail(json, "name", "a file's name, without a directory");
    if (json->status == DP_OK && !dp_manifest_json_is_hex(sum, DP_CHECKSUM_TEXT - 1))
        (void)dp_manifest_json_fail(json, "blake2b", "32 hex digits");
    if (json->status == DP_OK)
        memcpy(out->checksum, sum, sizeof out->checksum);
    out->name = dp_manifest_json_copy(json, name);
}

static int by_name(const void *a, const void *b)
{
    const struct dp_manifest_file *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static void take_files(struct dp_manifest_json *json, const json_t *from, const char *field,
                       struct dp_manifest_files *out)
{
    const json_t *list = dp_manifest_json_array(json, from, field, FILES_MAX);
    size_t count = list ? json_array_size(list) : 0;
    out->file = count > 0 ? calloc(count, sizeof out->file[0]) : NULL;
    if (count > 0 && !out->file) {
        json->status = dp_fail(json->err, DP_NOMEM, "no memory for a manifest of %zu files", count);
        return;
    }
    for (size_t i = 0; json->status == DP_OK && i < count; i++) {
        size_t before = dp_manifest_json_enter(json, field, i);
        take_file(json, json_array_get(list, i), &out->file[i]);
        out->count++;
        dp_manifest_json_leave(json, before);
    }
    if (json->status != DP_OK)
        return;
    if (count > 0)
        qsort(out->file, count, sizeof out->file[0], by_name);
    for (size_t i = 1; i < count; i++)
        if (strcmp(out->file[i - 1].name, out->file[i].name) == 0)
            (void)dp_manifest_json_fail(json, field, "a list that names each file once");
}

/* A file of the checkpoint itself; null: there is none. */
static void take_own(struct dp_manifest_json *json, const json_t *from, const char *field,
                     struct dp_manifest_file *out)
{
    if (json->status != DP_OK || json_is_null(json_object_get(from, field)))
        return;
    const json_t *object = dp_manifest_json_object(json, from, field);
    size_t before = dp_manifest_json_enter(json, field, SIZE_MAX);
    if (object)
        take_file(json, object, out);
    dp_manifest_json_leave(json, before);
}

/* ---- tables */

static uint32_t nibble(char digit)
{
    return (uint32_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

/* The table's mark describes it; name and dim next to it are for people, and must agree. */
static void take_table(struct dp_manifest_json *json, const json_t *from, struct dp_manifest_table *out)
{
    char value[DP_TABLE_MARK_BYTES], key[sizeof DP_TABLE_MARK_PREFIX + 8];
    struct dp_error why = {0};
    const char *name = dp_manifest_json_text(json, from, "name", DP_TABLE_NAME_MAX);
    uint64_t dim = dp_manifest_json_u64(json, from, "dim", DP_TABLE_DIM_MAX);
    const char *hex = dp_manifest_json_text(json, from, "mark", MARK_HEX);
    if (json->status != DP_OK)
        return;
    size_t bytes = strlen(hex) / 2;
    if (!dp_manifest_json_is_hex(hex, 2 * bytes)) {
        (void)dp_manifest_json_fail(json, "mark", "hex digits");
        return;
    }
    for (size_t i = 0; i < bytes; i++)
        value[i] = (char)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
    (void)snprintf(key, sizeof key, DP_TABLE_MARK_PREFIX "%08x", dp_table_id(name));
    const struct dp_store_mark mark = {key, value, sizeof key - 1, bytes};
    if (dp_table_mark_decode(&mark, &out->spec, &out->rows, &why) != DP_OK ||
        strcmp(out->spec.name, name) != 0 || out->spec.dim != dim)
        (void)dp_manifest_json_fail(json, "mark", "the mark of the table of this name and dim");
}

static void take_tables(struct dp_manifest_json *json, const json_t *from, struct dp_manifest_tables *out)
{
    const json_t *list = dp_manifest_json_array(json, from, "tables", TABLES_MAX);
    size_t count = list ? json_array_size(list) : 0;
    out->table = count > 0 ? calloc(count, sizeof out->table[0]) : NULL;
    if (count > 0 && !out->table) {
        json->status = dp_fail(json->err, DP_NOMEM, "no memory for a manifest of %zu tables", count);
        return;
    }
    for (size_t i = 0; json->status == DP_OK && i < count; i++) {
        size_t before = dp_manifest_json_enter(json, "tables", i);
        take_table(json, json_array_get(list, i), &out->table[i]);
        out->count++;
        if (json->status == DP_OK && i > 0 &&
            strcmp(out->table[i - 1].spec.name, out->table[i].spec.name) >= 0)
            (void)dp_manifest_json_fail(json, "name", "above that of the table before");
        dp_manifest_json_leave(json, before);
    }
}

/* ---- shards */

static void take_tail(struct dp_manifest_json *json, const json_t *shard, struct dp_manifest_tail *out)
{
    const json_t *tail = dp_manifest_json_object(json, shard, "tail");
    size_t before = dp_manifest_json_enter(json, "tail", SIZE_MAX);
    if (tail) {
        out->last_lsn = dp_manifest_json_u64(json, tail, "last_lsn", UINT64_MAX);
        out->incarnation = dp_manifest_json_u64(json, tail, "incarnation", UINT64_MAX);
        out->records = dp_manifest_json_u64(json, tail, "records", UINT64_MAX);
        out->bytes = dp_manifest_json_u64(json, tail, "bytes", INT64_MAX);
        take_files(json, tail, "files", &out->files);
    }
    dp_manifest_json_leave(json, before);
}

static void take_shard(struct dp_manifest_json *json, const json_t *from, struct dp_manifest_shard *out)
{
    out->shards = (uint32_t)dp_manifest_json_u64(json, from, "shards", DP_MANIFEST_SHARDS);
    out->index = (uint32_t)dp_manifest_json_u64(json, from, "index", DP_MANIFEST_SHARDS);
    out->range.first = dp_manifest_json_hex(json, from, "first");
    out->range.last = dp_manifest_json_hex(json, from, "last");
    out->store = dp_manifest_json_hex(json, from, "store");
    out->lsn = dp_manifest_json_u64(json, from, "lsn", UINT64_MAX);
    out->after = dp_manifest_json_u64(json, from, "after", UINT64_MAX);
    out->bytes_new = dp_manifest_json_u64(json, from, "bytes_new", INT64_MAX);
    take_tail(json, from, &out->tail);
    take_files(json, from, "files", &out->files);
    take_tables(json, from, &out->tables);
    out->had_snapshots = json_array_size(json_object_get(from, "snapshots")) > 0;
    if (json->status != DP_OK)
        return;
    if (out->index >= out->shards)
        (void)dp_manifest_json_fail(json, "index", "below the number of shards");
    struct dp_range range =
        out->index < out->shards ? dp_range_of_shard(out->index, out->shards) : out->range;
    if (range.first != out->range.first || range.last != out->range.last)
        (void)dp_manifest_json_fail(json, "first", "where the range of this shard begins");
    if (out->after > out->lsn)
        (void)dp_manifest_json_fail(json, "after", "at most lsn");
    if (out->tail.last_lsn < out->lsn || out->tail.last_lsn - out->after != out->tail.records)
        (void)dp_manifest_json_fail(json, "tail.last_lsn", "at least lsn, and after + records");
}

static void take_shards(struct dp_manifest_json *json, const json_t *from, struct dp_manifest *out)
{
    const json_t *list = dp_manifest_json_array(json, from, "shards", DP_MANIFEST_SHARDS);
    size_t count = list ? json_array_size(list) : 0;
    if (json->status == DP_OK && count == 0)
        (void)dp_manifest_json_fail(json, "shards", "one shard at least");
    out->shard = count > 0 ? calloc(count, sizeof out->shard[0]) : NULL;
    if (count > 0 && !out->shard) {
        json->status = dp_fail(json->err, DP_NOMEM, "no memory for a manifest of %zu shards", count);
        return;
    }
    for (size_t i = 0; json->status == DP_OK && i < count; i++) {
        size_t before = dp_manifest_json_enter(json, "shards", i);
        take_shard(json, json_array_get(list, i), &out->shard[i]);
        out->shards++;
        if (json->status == DP_OK && (out->shard[i].index != i || out->shard[i].shards != count))
            (void)dp_manifest_json_fail(json, "index", "its place in the list, which has all shards");
        dp_manifest_json_leave(json, before);
    }
}

/* ---- all */

static bool is_above(const struct dp_copy_push *push, const struct dp_copy_push *before)
{
    return push->stream > before->stream || (push->stream == before->stream && push->number > before->number);
}

/* Absent: there are none. */
static void take_partial(struct dp_manifest_json *json, const json_t *from, struct dp_copy_pushes *out)
{
    if (json->status != DP_OK || !json_object_get(from, "partial_pushes"))
        return;
    const json_t *list = dp_manifest_json_array(json, from, "partial_pushes", PARTIAL_MAX);
    size_t count = list ? json_array_size(list) : 0;
    out->push = count > 0 ? calloc(count, sizeof out->push[0]) : NULL;
    if (count > 0 && !out->push) {
        json->status = dp_fail(json->err, DP_NOMEM, "no memory for a manifest of %zu partial pushes", count);
        return;
    }
    for (size_t i = 0; json->status == DP_OK && i < count; i++) {
        size_t before = dp_manifest_json_enter(json, "partial_pushes", i);
        const json_t *one = json_array_get(list, i);
        struct dp_copy_push *push = &out->push[out->count++];
        push->stream = dp_manifest_json_hex(json, one, "stream");
        push->number = dp_manifest_json_u64(json, one, "number", UINT64_MAX);
        if (json->status == DP_OK && (push->stream == 0 || (i > 0 && !is_above(push, &out->push[i - 1]))))
            (void)dp_manifest_json_fail(json, "stream", "above 0 and the push before");
        dp_manifest_json_leave(json, before);
    }
}

/* Of a version before: pushes that it has for some keys only; its servers took the rest when they came again. */
static void refuse_exceptions(struct dp_manifest_json *json, const json_t *from)
{
    if (json->status == DP_OK && json_object_get(from, "exceptions"))
        json->status = dp_fail(
            json->err, DP_UNSUPPORTED,
            "the manifest lists pushes that only some keys have (exceptions), which this version does not "
            "read: use another checkpoint; or restore this one with the version that made it, let the "
            "workers "
            "push these again, and make a new one");
}

static void take_step_logs(struct dp_manifest_json *json, const json_t *from, struct dp_manifest_files *out)
{
    uint32_t worker;
    if (json_object_get(from, "step_logs")) /* absent: there are none */
        take_files(json, from, "step_logs", out);
    for (size_t i = 0; json->status == DP_OK && i < out->count; i++)
        if (!dp_checkpoint_name_step_log(out->file[i].name, &worker))
            (void)dp_manifest_json_fail(json, "step_logs",
                                        "a list of step logs, with a worker's number each");
}

static void take_position(struct dp_manifest_json *json, const json_t *from, struct dp_manifest_position *out)
{
    out->loss = NAN;
    if (json->status != DP_OK || json_is_null(json_object_get(from, "position")))
        return;
    const json_t *object = dp_manifest_json_object(json, from, "position");
    size_t before = dp_manifest_json_enter(json, "position", SIZE_MAX);
    if (object) {
        out->known = true;
        out->run = (uint32_t)dp_manifest_json_u64(json, object, "run", UINT32_MAX);
        out->epoch = (uint32_t)dp_manifest_json_u64(json, object, "epoch", UINT32_MAX);
        out->step = dp_manifest_json_u64(json, object, "step", UINT64_MAX);
        out->loss = dp_json_get_real(object, "loss");
    }
    dp_manifest_json_leave(json, before);
}

static void take_all(struct dp_manifest_json *json, const json_t *from, struct dp_manifest *out)
{
    uint64_t format = dp_manifest_json_u64(json, from, "format", UINT64_MAX);
    if (json->status == DP_OK && format != DP_MANIFEST_FORMAT) {
        json->status = dp_fail(json->err, DP_UNSUPPORTED,
                               "the manifest has format %" JSON_INTEGER_FORMAT
                               ", this build reads format %u; use the build that wrote it, or a later one",
                               (json_int_t)format, DP_MANIFEST_FORMAT);
        return;
    }
    out->number = (uint32_t)dp_manifest_json_u64(json, from, "number", 999999999);
    out->order = dp_manifest_json_hex(json, from, "order");
    out->made = dp_manifest_json_copy(json, dp_manifest_json_text(json, from, "made", 40));
    const json_t *cluster = dp_manifest_json_object(json, from, "cluster");
    if (cluster) {
        out->cluster = dp_manifest_json_hex(json, cluster, "id");
        const char *name = dp_manifest_json_text(json, cluster, "name", 255);
        out->cluster_name = dp_manifest_json_copy(json, name);
    }
    out->generation = dp_manifest_json_u64(json, from, "generation", UINT64_MAX);
    out->history = dp_manifest_json_hex(json, from, "history");
    take_shards(json, from, out);
    take_tables(json, from, &out->tables);
    refuse_exceptions(json, from);
    take_partial(json, from, &out->partial);
    take_own(json, from, "ids", &out->ids);
    take_own(json, from, "steps", &out->steps);
    take_own(json, from, "register", &out->register_file);
    take_own(json, from, "cluster_file", &out->cluster_file);
    for (int i = 0; i < DP_SIDE_FILES; i++)
        if (json_object_get(from, dp_side_files[i].key))
            take_own(json, from, dp_side_files[i].key, &out->side[i]);
    take_step_logs(json, from, &out->step_logs);
    take_position(json, from, &out->position);
    out->bytes = dp_manifest_json_u64(json, from, "bytes", INT64_MAX);
    out->bytes_new = dp_manifest_json_u64(json, from, "bytes_new", INT64_MAX);
    if (json->status == DP_OK && !out->ids.name)
        (void)dp_manifest_json_fail(json, "ids", "a file");
}

/* A bit that was flipped in what the checks above let pass. */
static void check_sum(struct dp_manifest_json *json, const json_t *from)
{
    char sum[DP_CHECKSUM_TEXT];
    const char *said = dp_manifest_json_text(json, from, "checksum", DP_CHECKSUM_TEXT - 1);
    if (json->status == DP_OK && !dp_manifest_json_sum(from, sum))
        json->status = dp_fail(json->err, DP_NOMEM, "no memory for a manifest's checksum");
    if (json->status == DP_OK && strcmp(said, sum) != 0)
        json->status = dp_fail(json->err, DP_CORRUPT,
                               "the manifest fails its checksum: it says %s, and its text has %s", said, sum);
}

static json_t *load(const char *text, size_t size, struct dp_error *err)
{
    json_error_t why;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
    if (!root)
        (void)dp_fail(err, DP_CORRUPT, "the manifest is no JSON: line %d: %.160s", why.line, why.text);
    else if (!json_is_object(root))
        (void)dp_fail(err, DP_CORRUPT, "the manifest is JSON, but no object");
    if (json_is_object(root))
        return root;
    json_decref(root);
    return NULL;
}

enum dp_status dp_manifest_parse(const char *text, size_t size, struct dp_manifest *out, struct dp_error *err)
{
    struct dp_manifest_json json = {.err = err};
    *out = (struct dp_manifest){0};
    json_t *root = load(text, size, err);
    if (!root)
        return DP_CORRUPT;
    take_all(&json, root, out);
    check_sum(&json, root);
    json_decref(root);
    if (json.status != DP_OK)
        dp_manifest_clear(out);
    return json.status;
}

enum dp_status dp_manifest_shard_parse(const char *text, size_t size, struct dp_manifest_shard *out,
                                       struct dp_error *err)
{
    struct dp_manifest_json json = {.err = err};
    *out = (struct dp_manifest_shard){0};
    json_t *root = load(text, size, err);
    if (!root)
        return DP_CORRUPT;
    take_shard(&json, root, out);
    json_decref(root);
    if (json.status != DP_OK)
        dp_manifest_shard_clear(out);
    return json.status;
}
