#include "common/tensors/tensor_file.h"

#include "common/base/bytes.h"
#include "common/base/full_io.h"
#include "common/env/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN 8u

static uint64_t type_bytes(enum dp_tensor_type type)
{
    return type == DP_TENSOR_F32 ? 4 : 8;
}

static uint64_t bytes_of(const struct dp_tensor *tensor)
{
    return tensor->rows * (tensor->width ? tensor->width : 1) * type_bytes(tensor->type);
}

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
            if (type_bytes(tensors->one[i].type) == bytes) {
                tensors->one[i].begin = end;
                end += bytes_of(&tensors->one[i]);
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
                     (json_int_t)tensor->begin, (json_int_t)(tensor->begin + bytes_of(tensor)));
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

/* ---- the files */

static enum dp_status put_bytes(const struct dp_atomic_file *file, uint64_t at, const void *bytes,
                                uint64_t size, struct dp_error *err)
{
    if (dp_full_pwrite(fileno(file->stream), bytes, size, (off_t)at))
        return DP_OK;
    return dp_fail(err, dp_limits_full(errno) ? DP_FULL : DP_IO, "cannot write '%s': %s%s", file->path,
                   strerror(errno), dp_limits_remedy(errno));
}

/* With all of its space, as zeros, and what stands before the data. */
static enum dp_status open_one(struct dp_tensor_file *out, const char *path, const void *head, uint64_t size,
                               uint64_t data_bytes, struct dp_error *err)
{
    struct dp_atomic_file *file = &out->file[out->files];
    enum dp_status st = dp_atomic_file_open(path, file, err);
    if (st != DP_OK)
        return st;
    out->files++;
    if (!file->target)
        return dp_fail(err, DP_ARGUMENT, "'%s' is no regular file: remove it, or name another place", path);
    errno = posix_fallocate(fileno(file->stream), 0, (off_t)(size + data_bytes));
    if (errno)
        return dp_fail(err, dp_limits_full(errno) ? DP_FULL : DP_IO, "cannot write '%s': %s%s", path,
                       strerror(errno), dp_limits_remedy(errno));
    return put_bytes(file, 0, head, size, err);
}

static enum dp_status reserve(struct dp_tensor_file *out, const struct dp_tensors *tensors, size_t files,
                              struct dp_error *err)
{
    *out = (struct dp_tensor_file){.tensors = tensors, .file = calloc(files + 1, sizeof *out->file)};
    return out->file ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for %zu files", files);
}

enum dp_status dp_tensor_file_open(const char *path, struct dp_tensors *tensors,
                                   const struct dp_tensor_text *metadata, size_t texts,
                                   struct dp_tensor_file *out, struct dp_error *err)
{
    uint64_t data_bytes = lay_out(tensors);
    enum dp_status st = reserve(out, tensors, 1, err);
    char *text = st == DP_OK ? header_of(tensors, metadata, texts) : NULL;
    size_t len = text ? strlen(text) : 0, padded = (len + ALIGN - 1) / ALIGN * ALIGN;
    out->data = ALIGN + padded;
    char *head = text ? malloc(out->data) : NULL;
    if (st == DP_OK && !head)
        st = dp_fail(err, DP_NOMEM, "no memory for the header of '%s'", path);
    if (st == DP_OK) {
        dp_store_u64le(head, padded);
        memset(head + ALIGN, ' ', padded);
        memcpy(head + ALIGN, text, len);
        st = open_one(out, path, head, out->data, data_bytes, err);
    }
    free(head);
    free(text);
    if (st != DP_OK)
        dp_tensor_file_drop(out);
    return st;
}

void dp_npy_head(char out[DP_NPY_HEAD], enum dp_tensor_type type, uint64_t rows, uint64_t width)
{
    static const char magic[] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, DP_NPY_HEAD - 10, 0};
    static const char *const types[] = {
        [DP_TENSOR_F32] = "<f4", [DP_TENSOR_I64] = "<i8", [DP_TENSOR_U64] = "<u8"};
    char columns[24] = "";
    if (width > 0)
        (void)snprintf(columns, sizeof columns, " %" PRIu64, width);
    memset(out, ' ', DP_NPY_HEAD);
    memcpy(out, magic, sizeof magic);
    int len = snprintf(out + sizeof magic, DP_NPY_HEAD - sizeof magic,
                       "{'descr': '%s', 'fortran_order': False, 'shape': (%" PRIu64 ",%s), }", types[type],
                       rows, columns);
    out[sizeof magic + (size_t)len] = ' ';
    out[DP_NPY_HEAD - 1] = '\n';
}

enum dp_status dp_npy_files_open(const char *directory, const struct dp_tensors *tensors,
                                 struct dp_tensor_file *out, struct dp_error *err)
{
    enum dp_status st = reserve(out, tensors, tensors->count, err);
    for (size_t i = 0; st == DP_OK && i < tensors->count; i++) {
        const struct dp_tensor *tensor = &tensors->one[i];
        char path[4096], head[DP_NPY_HEAD];
        if (snprintf(path, sizeof path, "%s/%s.npy", directory, tensor->name) >= (int)sizeof path)
            st = dp_fail(err, DP_ARGUMENT, "the path of '%s.npy' is too long", tensor->name);
        dp_npy_head(head, tensor->type, tensor->rows, tensor->width);
        if (st == DP_OK)
            st = open_one(out, path, head, sizeof head, bytes_of(tensor), err);
    }
    if (st != DP_OK)
        dp_tensor_file_drop(out);
    return st;
}

enum dp_status dp_tensor_file_put(struct dp_tensor_file *file, size_t index, uint64_t at,
                                  const void *elements, uint64_t count, struct dp_error *err)
{
    DP_ASSERT(index < file->tensors->count);
    const struct dp_tensor *tensor = &file->tensors->one[index];
    uint64_t bytes = type_bytes(tensor->type), all = bytes_of(tensor) / bytes;
    bool one = file->data > 0; /* all tensors are in it */
    DP_ASSERT(at <= all && count <= all - at);
    return put_bytes(&file->file[one ? 0 : index],
                     (one ? file->data + tensor->begin : DP_NPY_HEAD) + at * bytes, elements, count * bytes,
                     err);
}

enum dp_status dp_tensor_file_commit(struct dp_tensor_file *file, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < file->files; i++)
        st = dp_atomic_file_commit(&file->file[i], err);
    dp_tensor_file_drop(file);
    return st;
}

void dp_tensor_file_drop(struct dp_tensor_file *file)
{
    for (size_t i = 0; i < file->files; i++)
        dp_atomic_file_drop(&file->file[i]);
    free(file->file);
    *file = (struct dp_tensor_file){0};
}
