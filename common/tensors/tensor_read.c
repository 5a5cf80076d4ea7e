#include "common/tensors/tensor_read.h"

#include "common/base/bytes.h"
#include "common/env/read_only_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_MAX 100000000u /* the public library's limit */

/* ---- one tensor */

static uint64_t bytes_of(const char *type)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } types[] = {{"F32", 4},  {"I64", 8}, {"U64", 8},  {"F64", 8},     {"F16", 2},
                 {"BF16", 2}, {"I32", 4}, {"U32", 4},  {"I16", 2},     {"U16", 2},
                 {"I8", 1},   {"U8", 1},  {"BOOL", 1}, {"F8_E5M2", 1}, {"F8_E4M3", 1}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].name, type) == 0)
            return types[i].bytes;
    return 0;
}

static enum dp_status wrong(const char *name, const char *what, struct dp_error *err)
{
    return dp_fail(err, DP_DATA, "tensor '%.64s': %s", name, what);
}

static bool take_u64(const json_t *value, uint64_t *out)
{
    json_int_t number = json_integer_value(value);
    *out = (uint64_t)number;
    return json_is_integer(value) && number >= 0;
}

static enum dp_status take_shape(const json_t *shape, struct dp_tensor_in *t, struct dp_error *err)
{
    if (!json_is_array(shape) || json_array_size(shape) > DP_TENSOR_DIMENSIONS)
        return wrong(t->name, "its shape is no list of at most 8 numbers", err);
    t->elements = 1;
    t->dimensions = (uint32_t)json_array_size(shape);
    for (uint32_t i = 0; i < t->dimensions; i++)
        if (!take_u64(json_array_get(shape, i), &t->shape[i]) ||
            __builtin_mul_overflow(t->elements, t->shape[i], &t->elements))
            return wrong(t->name, "its shape has a number that cannot be", err);
    return DP_OK;
}

static enum dp_status take_tensor(const char *name, const json_t *value, uint64_t data_bytes,
                                  struct dp_tensor_in *t, struct dp_error *err)
{
    const json_t *offsets = json_object_get(value, "data_offsets");
    uint64_t bytes = 0;
    *t = (struct dp_tensor_in){.name = name, .type = json_string_value(json_object_get(value, "dtype"))};
    if (!json_is_object(value) || !t->type || json_array_size(offsets) != 2)
        return wrong(name, "it has no dtype, shape and data_offsets", err);
    if (bytes_of(t->type) == 0)
        return dp_fail(err, DP_DATA, "tensor '%.64s': its type '%.16s' is unknown", name, t->type);
    enum dp_status st = take_shape(json_object_get(value, "shape"), t, err);
    if (st != DP_OK)
        return st;
    if (!take_u64(json_array_get(offsets, 0), &t->begin) || !take_u64(json_array_get(offsets, 1), &t->end) ||
        t->begin > t->end)
        return wrong(name, "its data_offsets are no two ascending numbers", err);
    if (t->end > data_bytes)
        return dp_fail(err, DP_DATA,
                       "tensor '%.64s': it ends at byte %" PRIu64
                       " of the data, of which the file has %" PRIu64 ": the file is cut off",
                       name, t->end, data_bytes);
    if (__builtin_mul_overflow(t->elements, bytes_of(t->type), &bytes) || bytes != t->end - t->begin)
        return wrong(name, "it has other bytes than its shape and type need", err);
    return DP_OK;
}

/* ---- all */

static int by_place(const void *a, const void *b)
{
    const struct dp_tensor_in *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static enum dp_status check_places(const struct dp_tensor_set *set, uint64_t data_bytes, struct dp_error *err)
{
    uint64_t end = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (set->one[i].begin != end)
            return wrong(set->one[i].name,
                         set->one[i].begin < end ? "it overlaps another" : "there is a gap in front of it",
                         err);
        end = set->one[i].end;
    }
    return end == data_bytes
               ? DP_OK
               : dp_fail(err, DP_DATA, "%" PRIu64 " bytes behind the last tensor belong to none",
                         data_bytes - end);
}

static enum dp_status take_all(struct dp_tensor_set *set, const unsigned char *data, uint64_t data_bytes,
                               struct dp_error *err)
{
    json_t *header = set->header, *value;
    const char *name;
    enum dp_status st = DP_OK;
    set->one = calloc(json_object_size(header) + 1, sizeof *set->one);
    if (!set->one)
        return dp_fail(err, DP_NOMEM, "no memory for %zu tensors", json_object_size(header));
    json_object_foreach(header, name, value)
    {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        st = take_tensor(name, value, data_bytes, &set->one[set->count++], err);
        if (st != DP_OK)
            return st;
    }
    if (set->count > 0)
        qsort(set->one, set->count, sizeof *set->one, by_place);
    st = check_places(set, data_bytes, err);
    for (size_t i = 0; i < set->count; i++)
        set->one[i].data = data + set->one[i].begin;
    return st;
}

static enum dp_status parse(const unsigned char *bytes, size_t size, struct dp_tensor_set *set,
                            struct dp_error *err)
{
    json_error_t why;
    uint64_t header = size < 8 ? 0 : dp_load_u64le(bytes);
    if (size < 8)
        return dp_fail(err, DP_DATA,
                       "it has %zu bytes, and a file of tensors begins with 8 for its header's length", size);
    if (header > HEADER_MAX)
        return dp_fail(err, DP_DATA,
                       "its header would have %" PRIu64
                       " bytes, and at most %u are read: it is no file of tensors",
                       header, HEADER_MAX);
    if (header > size - 8)
        return dp_fail(err, DP_DATA,
                       "its header has %" PRIu64 " bytes, the file %zu: it is cut off, or no file of tensors",
                       header, size);
    set->header = json_loadb((const char *)bytes + 8, (size_t)header, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object((json_t *)set->header))
        return dp_fail(err, DP_DATA, "its header is no JSON object: %s",
                       set->header ? "another value" : why.text);
    return take_all(set, bytes + 8 + header, size - 8 - header, err);
}

enum dp_status dp_tensor_read_parse(const void *bytes, size_t size, struct dp_tensor_set *out,
                                    struct dp_error *err)
{
    *out = (struct dp_tensor_set){0};
    enum dp_status st = parse(bytes, size, out, err);
    if (st != DP_OK)
        dp_tensor_read_close(out);
    return st;
}

enum dp_status dp_tensor_read_open(const char *path, struct dp_tensor_set *out, struct dp_error *err)
{
    struct stat is;
    int fd = -1;
    void *map = NULL;
    *out = (struct dp_tensor_set){0};
    enum dp_status st = dp_read_only_disk_file(AT_FDCWD, path, &fd, err);
    if (st == DP_OK && fstat(fd, &is) != 0)
        st = dp_fail(err, DP_IO, "%s", strerror(errno));
    if (st == DP_OK && is.st_size > 0)
        map = mmap(NULL, (size_t)is.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) {
        map = NULL;
        st = dp_fail(err, DP_IO, "it cannot be mapped: %s", strerror(errno));
    }
    if (st == DP_OK)
        st = dp_tensor_read_parse(map ? map : "", (size_t)is.st_size, out, err);
    if (fd >= 0)
        (void)close(fd);
    if (st != DP_OK) {
        if (map)
            (void)munmap(map, (size_t)is.st_size);
        return dp_wrap(err, st, "'%.300s'", path);
    }
    out->map = map;
    out->map_bytes = (size_t)is.st_size;
    return DP_OK;
}

struct dp_tensor_in *dp_tensor_read_find(const struct dp_tensor_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->one[i].name, name) == 0)
            return &set->one[i];
    return NULL;
}

const char *dp_tensor_read_shape(const struct dp_tensor_in *tensor, char text[DP_TENSOR_SHAPE_BYTES])
{
    int n = snprintf(text, DP_TENSOR_SHAPE_BYTES, "%.16s [", tensor->type);
    for (uint32_t i = 0; i < tensor->dimensions; i++)
        n += snprintf(text + n, DP_TENSOR_SHAPE_BYTES - (size_t)n, "%s%" PRIu64, i ? ", " : "",
                      tensor->shape[i]);
    (void)snprintf(text + n, DP_TENSOR_SHAPE_BYTES - (size_t)n, "]");
    return text;
}

void dp_tensor_read_close(struct dp_tensor_set *set)
{
    free(set->one);
    json_decref(set->header);
    if (set->map)
        (void)munmap(set->map, set->map_bytes);
    *set = (struct dp_tensor_set){0};
}
