#include "common/tensors/tensor_set.h"

#include "common/base/full_io.h"
#include "common/env/read_only_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- sources */

static enum dp_status add(struct dp_tensor_set *set, struct dp_tensor_source source, struct dp_error *err)
{
    struct dp_tensor_source *grown = realloc(set->source, (set->sources + 1) * sizeof *grown);
    if (!grown)
        return dp_fail(err, DP_NOMEM, "no memory for %zu files", set->sources + 1);
    set->source = grown;
    set->source[set->sources++] = source;
    return DP_OK;
}

enum dp_status dp_tensor_set_open_file(struct dp_tensor_set *set, const char *path, struct dp_error *err)
{
    struct stat is;
    int fd = -1;
    enum dp_status st = dp_read_only_disk_file(AT_FDCWD, path, &fd, err);
    if (st == DP_OK && fstat(fd, &is) != 0)
        st = dp_fail(err, DP_IO, "%s", strerror(errno));
    if (st == DP_OK)
        st = add(set, (struct dp_tensor_source){fd, (uint64_t)is.st_size, is.st_mtim}, err);
    if (st != DP_OK && fd >= 0)
        (void)close(fd);
    return st;
}

enum dp_status dp_tensor_set_read(const struct dp_tensor_set *set, size_t source, uint64_t at, void *to,
                                  uint64_t size, struct dp_error *err)
{
    DP_ASSERT(source < set->sources);
    const struct dp_tensor_source *from = &set->source[source];
    DP_ASSERT(at <= from->size && size <= from->size - at);
    size_t have = dp_full_pread(from->fd, to, size, (off_t)at);
    if (have == size)
        return DP_OK;
    if (errno)
        return dp_fail(err, DP_IO, "byte %" PRIu64 " cannot be read: %s", at + have, strerror(errno));
    return dp_fail(err, DP_DATA,
                   "the file was cut off at byte %" PRIu64
                   " while it was read: use a file that no program is writing",
                   at + have);
}

/* ---- tensors */

struct dp_tensor_in *dp_tensor_set_find(const struct dp_tensor_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->one[i].name, name) == 0)
            return &set->one[i];
    return NULL;
}

enum dp_status dp_tensor_set_get(const struct dp_tensor_set *set, const struct dp_tensor_in *tensor,
                                 uint64_t at, void *to, uint64_t size, struct dp_error *err)
{
    DP_ASSERT(at <= tensor->end - tensor->begin && size <= tensor->end - tensor->begin - at);
    enum dp_status st = dp_tensor_set_read(set, tensor->source, tensor->begin + at, to, size, err);
    return st == DP_OK ? st : dp_wrap(err, st, "tensor '%.64s'", tensor->name);
}

enum dp_status dp_tensor_set_unchanged(const struct dp_tensor_set *set, const struct dp_tensor_in *tensor,
                                       struct dp_error *err)
{
    const struct dp_tensor_source *from = &set->source[tensor->source];
    struct stat is;
    if (fstat(from->fd, &is) != 0)
        return dp_fail(err, DP_IO, "tensor '%.64s': its file: %s", tensor->name, strerror(errno));
    bool same = (uint64_t)is.st_size == from->size && is.st_mtim.tv_sec == from->changed.tv_sec &&
                is.st_mtim.tv_nsec == from->changed.tv_nsec;
    return same ? DP_OK
                : dp_fail(err, DP_DATA,
                          "tensor '%.64s': its file was changed while it was read: use a file that no "
                          "program is writing",
                          tensor->name);
}

const char *dp_tensor_set_shape(const struct dp_tensor_in *tensor, char text[DP_TENSOR_SHAPE_BYTES])
{
    int n = snprintf(text, DP_TENSOR_SHAPE_BYTES, "%.16s [", tensor->type);
    for (uint32_t i = 0; i < tensor->dimensions; i++)
        n += snprintf(text + n, DP_TENSOR_SHAPE_BYTES - (size_t)n, "%s%" PRIu64, i ? ", " : "",
                      tensor->shape[i]);
    (void)snprintf(text + n, DP_TENSOR_SHAPE_BYTES - (size_t)n, "]");
    return text;
}

void dp_tensor_set_close(struct dp_tensor_set *set)
{
    for (size_t i = 0; i < set->sources; i++)
        (void)close(set->source[i].fd);
    free(set->source);
    free(set->one);
    json_decref(set->header);
    *set = (struct dp_tensor_set){0};
}
