#include "common/tensors/tensor_read.h"

#include "common/base/bytes.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

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
        return wrong(name, "its number of bytes does not fit its shape and type", err);
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
    return end == data_bytes ? DP_OK
                             : dp_fail(err, DP_DATA, "%" PRIu64 " bytes after the last tensor belong to none",
                                       data_bytes - end);
}

/* data: where the data begin in the file. Offsets become places in the file. */
static enum dp_status take_all(struct dp_tensor_set *set, uint64_t data, uint64_t data_bytes,
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
    for (size_t i = 0; i < set->count; i++) {
        set->one[i].begin += data;
        set->one[i].end += data;
    }
    return st;
}

static enum dp_status read_header(struct dp_tensor_set *set, uint64_t bytes, struct dp_error *err)
{
    json_error_t why;
    char *text = malloc((size_t)bytes + 1);
    if (!text)
        return dp_fail(err, DP_NOMEM, "no memory for a header of %" PRIu64 " bytes", bytes);
    enum dp_status st = dp_tensor_set_read(set, 0, 8, text, bytes, err);
    if (st == DP_OK) {
        set->header = json_loadb(text, (size_t)bytes, JSON_REJECT_DUPLICATES, &why);
        if (!json_is_object((json_t *)set->header))
            st = dp_fail(err, DP_DATA, "its header is no JSON object: %s",
                         set->header ? "another value" : why.text);
    }
    free(text);
    return st;
}

/* Of the set's only source. */
static enum dp_status parse(struct dp_tensor_set *set, struct dp_error *err)
{
    unsigned char head[8];
    uint64_t size = set->source[0].size, header = 0;
    if (size < sizeof head)
        return dp_fail(
            err, DP_DATA,
            "it has %" PRIu64 " bytes, and a file of tensors begins with 8 for its header's length", size);
    enum dp_status st = dp_tensor_set_read(set, 0, 0, head, sizeof head, err);
    if (st != DP_OK)
        return st;
    header = dp_load_u64le(head);
    if (header > HEADER_MAX)
        return dp_fail(err, DP_DATA,
                       "its header would have %" PRIu64
                       " bytes, and at most %u are read: it is no file of tensors",
                       header, HEADER_MAX);
    if (header > size - sizeof head)
        return dp_fail(err, DP_DATA,
                       "its header has %" PRIu64 " bytes, the file %" PRIu64
                       ": it is cut off, or no file of tensors",
                       header, size);
    st = read_header(set, header, err);
    return st == DP_OK ? take_all(set, sizeof head + header, size - sizeof head - header, err) : st;
}

enum dp_status dp_tensor_read_open(const char *path, struct dp_tensor_set *out, struct dp_error *err)
{
    *out = (struct dp_tensor_set){0};
    enum dp_status st = dp_tensor_set_open_file(out, path, err);
    if (st == DP_OK)
        st = parse(out, err);
    if (st == DP_OK)
        return st;
    dp_tensor_set_close(out);
    return dp_wrap(err, st, "'%.300s'", path);
}
