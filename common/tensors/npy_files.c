#include "common/tensors/npy_files.h"

#include "common/tensors/tensor_bytes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static enum dp_status open_one(const char *directory, const struct dp_tensor *tensor,
                               struct dp_atomic_file *file, struct dp_error *err)
{
    char path[4096], head[DP_NPY_HEAD];
    if (snprintf(path, sizeof path, "%s/%s.npy", directory, tensor->name) >= (int)sizeof path)
        return dp_fail(err, DP_ARGUMENT, "the path of '%s.npy' is too long", tensor->name);
    enum dp_status st = dp_atomic_file_open(path, file, err);
    if (st == DP_OK && !file->target)
        st = dp_fail(err, DP_ARGUMENT, "'%s' is no regular file: remove it, or name another directory", path);
    if (st == DP_OK)
        st = dp_tensor_bytes_reserve(file, DP_NPY_HEAD + dp_tensor_bytes(tensor), err);
    dp_npy_head(head, tensor->type, tensor->rows, tensor->width);
    return st == DP_OK ? dp_tensor_bytes_put(file, 0, head, sizeof head, err) : st;
}

enum dp_status dp_npy_files_open(const char *directory, const struct dp_tensors *tensors,
                                 struct dp_npy_files *out, struct dp_error *err)
{
    *out = (struct dp_npy_files){tensors, calloc(tensors->count + 1, sizeof *out->file)};
    enum dp_status st = out->file ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for %zu files", tensors->count);
    for (size_t i = 0; st == DP_OK && i < tensors->count; i++)
        st = open_one(directory, &tensors->one[i], &out->file[i], err);
    if (st != DP_OK)
        dp_npy_files_drop(out);
    return st;
}

enum dp_status dp_npy_files_put(struct dp_npy_files *files, size_t index, uint64_t at, const void *elements,
                                uint64_t count, struct dp_error *err)
{
    DP_ASSERT(index < files->tensors->count);
    const struct dp_tensor *tensor = &files->tensors->one[index];
    uint64_t bytes = dp_tensor_type_bytes(tensor->type), all = dp_tensor_bytes(tensor) / bytes;
    DP_ASSERT(at <= all && count <= all - at);
    return dp_tensor_bytes_put(&files->file[index], DP_NPY_HEAD + at * bytes, elements, count * bytes, err);
}

enum dp_status dp_npy_files_commit(struct dp_npy_files *files, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < files->tensors->count; i++)
        st = dp_atomic_file_commit(&files->file[i], err);
    dp_npy_files_drop(files);
    return st;
}

void dp_npy_files_drop(struct dp_npy_files *files)
{
    for (size_t i = 0; files->file && i < files->tensors->count; i++)
        dp_atomic_file_drop(&files->file[i]);
    free(files->file);
    *files = (struct dp_npy_files){0};
}
