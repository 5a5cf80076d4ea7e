#include "common/tensors/tensor_file.h"

#include "common/base/bytes.h"
#include "common/tensors/tensor_bytes.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN 8u

enum dp_status dp_tensors_add(struct dp_tensors *tensors, const struct dp_tensor *tensor, size_t *index,
                              struct dp_error *err)
{
    if (tensors->count == tensors->room) {
        size_t room = tensors->room * 2 + 16;
        struct dp_tensor *grown = realloc(tensors->one, room * sizeof *grown);
        if (!grown)
            return dp_fail(err, DP_NOMEM, "no memory for %zu tensors", room);
        tensors->one = grown;
        tensors->room = room;
    }
    *index = tensors->count;
    tensors->one[tensors->count++] = *tensor;
    return DP_OK;
}

void dp_tensors_clear(struct dp_tensors *tensors)
{
    free(tensors->one);
    *tensors = (struct dp_tensors){0};
}

/* ---- the header */

/* All that are 8 bytes wide first: what follows is aligned, too, without a gap. */
static uint64_t lay_out(struct dp_tensors *tensors)
{
    uint64_t end = 0;
    for (uint64_t bytes = 8; bytes >= 4; bytes -= 4)
        for (size_t i = 0; i < tensors->count; i++)
            if (dp_tensor_type_bytes(tensors->one[i].type) == bytes) {
                tensors->one[i].begin = end;
                end += dp_tensor_bytes(&tensors->one[i]);
            }
    return end;
}

static json_t *entry_of(const struct dp_tensor *tensor)
{
    static const char *const types[] = {
        [DP_TENSOR_F32] = "F32", [DP_TENSOR_I64] = "I64", [DP_TENSOR_U64] = "U64"};
    json_t *shape = json_array();
    (void)json_array_append_new(shape, json_integer((json_int_t)tensor->rows));
    if (tensor->width)
        (void)json_array_append_new(shape, json_integer((json_int_t)tensor->width));
    return json_pack("{s:s, s:o, s:[I,I]}", "dtype", types[tensor->type], "shape", shape, "data_offsets",
                     (json_int_t)tensor->begin, (json_int_t)(tensor->begin + dp_tensor_bytes(tensor)));
}

/* The text, heap; NULL: no memory. */
static char *header_of(const struct dp_tensors *tensors, const struct dp_tensor_text *metadata, size_t texts)
{
    json_t *all = json_object(), *meta = json_object();
    bool whole = all && meta;
    for (size_t i = 0; whole && i < texts; i++)
        whole = json_object_set_new(meta, metadata[i].name, json_string(metadata[i].value)) == 0;
    whole = whole && json_object_set(all, "__metadata__", meta) == 0;
    for (size_t i = 0; whole && i < tensors->count; i++) {
        DP_ASSERT(!json_object_get(all, tensors->one[i].name));
        whole = json_object_set_new(all, tensors->one[i].name, entry_of(&tensors->one[i])) == 0;
    }
    char *text = whole ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(meta);
    json_decref(all);
    return text;
}

/* ---- the file */

static enum dp_status put_header(struct dp_tensor_file *file, const char *text, uint64_t data_bytes,
                                 struct dp_error *err)
{
    char head[8];
    uint64_t len = strlen(text), padded = (len + ALIGN - 1) / ALIGN * ALIGN;
    file->data = sizeof head + padded;
    dp_store_u64le(head, padded);
    enum dp_status st = dp_tensor_bytes_reserve(&file->file, file->data + data_bytes, err);
    if (st == DP_OK)
        st = dp_tensor_bytes_put(&file->file, 0, head, sizeof head, err);
    if (st == DP_OK)
        st = dp_tensor_bytes_put(&file->file, sizeof head, text, len, err);
    return st == DP_OK ? dp_tensor_bytes_put(&file->file, sizeof head + len, "        ", padded - len, err)
                       : st;
}

enum dp_status dp_tensor_file_open(const char *path, struct dp_tensors *tensors,
                                   const struct dp_tensor_text *metadata, size_t texts,
                                   struct dp_tensor_file *out, struct dp_error *err)
{
    *out = (struct dp_tensor_file){.tensors = tensors};
    uint64_t data_bytes = lay_out(tensors);
    char *text = header_of(tensors, metadata, texts);
    if (!text)
        return dp_fail(err, DP_NOMEM, "no memory for the header of '%s'", path);
    enum dp_status st = dp_atomic_file_open(path, &out->file, err);
    if (st == DP_OK && !out->file.target)
        st = dp_fail(err, DP_ARGUMENT, "'%s' is no regular file, which tensors need", path);
    if (st == DP_OK)
        st = put_header(out, text, data_bytes, err);
    free(text);
    if (st != DP_OK)
        dp_tensor_file_drop(out);
    return st;
}

enum dp_status dp_tensor_file_put(struct dp_tensor_file *file, size_t index, uint64_t at,
                                  const void *elements, uint64_t count, struct dp_error *err)
{
    DP_ASSERT(index < file->tensors->count);
    const struct dp_tensor *tensor = &file->tensors->one[index];
    uint64_t bytes = dp_tensor_type_bytes(tensor->type);
    DP_ASSERT(at <= dp_tensor_bytes(tensor) / bytes && count <= dp_tensor_bytes(tensor) / bytes - at);
    return dp_tensor_bytes_put(&file->file, file->data + tensor->begin + at * bytes, elements, count * bytes,
                               err);
}

enum dp_status dp_tensor_file_commit(struct dp_tensor_file *file, struct dp_error *err)
{
    enum dp_status st = dp_atomic_file_commit(&file->file, err);
    *file = (struct dp_tensor_file){0};
    return st;
}

void dp_tensor_file_drop(struct dp_tensor_file *file)
{
    dp_atomic_file_drop(&file->file);
    *file = (struct dp_tensor_file){0};
}
