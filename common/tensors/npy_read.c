#include "common/tensors/npy_read.h"

#include "common/base/bytes.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENDING ".npy"

/* ---- the header: a Python dict of texts, True or False, and numbers in parentheses */

/* As JSON: other quotes, brackets and words, and no comma after the last element. */
static json_t *read_dict(const char *text, size_t len)
{
    char *json = malloc(len + 1);
    for (size_t i = 0; json && i < len; i++) {
        size_t next = i + 1;
        while (next < len && strchr(" \t\n", text[next]))
            next++;
        bool last = next < len && strchr(")]}", text[next]);
        bool word = (len - i >= 4 && memcmp(text + i, "True", 4) == 0) ||
                    (len - i >= 5 && memcmp(text + i, "False", 5) == 0);
        json[i] = text[i] == '\'' ? '"' : text[i] == '(' ? '[' : text[i] == ')' ? ']' : text[i];
        if (word)
            json[i] = text[i] == 'T' ? 't' : 'f';
        else if (text[i] == ',' && last)
            json[i] = ' ';
    }
    json_t *dict = json ? json_loadb(json, len, JSON_REJECT_DUPLICATES, NULL) : NULL;
    free(json);
    return dict;
}

static bool take_shape(const json_t *shape, struct dp_tensor_in *tensor)
{
    bool good = json_is_array(shape) && json_array_size(shape) <= DP_TENSOR_DIMENSIONS;
    tensor->dimensions = good ? (uint32_t)json_array_size(shape) : 0;
    for (uint32_t i = 0; good && i < tensor->dimensions; i++) {
        const json_t *number = json_array_get(shape, i);
        good = json_is_integer(number) && json_integer_value(number) >= 0;
        tensor->shape[i] = (uint64_t)json_integer_value(number);
    }
    return good;
}

/* ---- what is accepted */

static enum dp_status settle_type(const char *descr, struct dp_tensor_in *out, struct dp_error *err)
{
    static const char *const types[][2] = {{"<f4", "F32"}, {"<i8", "I64"}, {"<u8", "U64"}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(descr, types[i][0]) == 0) {
            out->type = types[i][1];
            return DP_OK;
        }
    const char *kind = descr[0] == '>'                      ? "big-endian"
                       : descr[0] == '|' && descr[1] == 'O' ? "Python objects"
                                                            : "another type";
    return dp_fail(err, DP_DATA,
                   "its elements are '%.32s', %s: weights must be '<f4', keys '<i8' or '<u8' (numpy.save of "
                   "a.astype('<f4') or a.astype('<i8'))",
                   descr, kind);
}

static enum dp_status settle_size(uint64_t data, uint64_t file_bytes, struct dp_tensor_in *out,
                                  struct dp_error *err)
{
    uint64_t bytes = 0;
    out->elements = 1;
    for (uint32_t i = 0; i < out->dimensions; i++)
        if (__builtin_mul_overflow(out->elements, out->shape[i], &out->elements))
            return dp_fail(err, DP_DATA, "its shape has a number that cannot be");
    if (__builtin_mul_overflow(out->elements, strcmp(out->type, "F32") == 0 ? 4u : 8u, &bytes))
        return dp_fail(err, DP_DATA, "its shape has a number that cannot be");
    if (bytes > file_bytes - data)
        return dp_fail(err, DP_DATA,
                       "it has %" PRIu64 " bytes of data, and its shape needs %" PRIu64
                       ": the file is cut off, write it again",
                       file_bytes - data, bytes);
    if (bytes < file_bytes - data)
        return dp_fail(err, DP_DATA, "%" PRIu64 " bytes follow its array: save one array a file (numpy.save)",
                       file_bytes - data - bytes);
    out->begin = data;
    out->end = data + bytes;
    return DP_OK;
}

/* Where the header's text begins and how long it is. */
static enum dp_status find_text(const unsigned char *bytes, size_t size, uint64_t file_bytes, size_t *begin,
                                uint64_t *len, struct dp_error *err)
{
    if (size < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return dp_fail(err, DP_DATA, "it is no .npy file: write it with numpy.save");
    if (bytes[6] < 1 || bytes[6] > 2 || bytes[7] != 0)
        return dp_fail(
            err, DP_DATA,
            "its format is version %u.%u, and this build reads 1.0 and 2.0: save an array of plain numbers",
            bytes[6], bytes[7]);
    *begin = bytes[6] == 1 ? 10 : 12;
    if (size < *begin)
        return dp_fail(err, DP_DATA, "it is cut off in its header: write it again");
    *len = bytes[6] == 1 ? bytes[8] + 256u * bytes[9] : dp_load_u32le(bytes + 8);
    if (*len > DP_NPY_HEAD_MAX - *begin && file_bytes >= DP_NPY_HEAD_MAX)
        return dp_fail(err, DP_DATA, "its header has more than %u bytes: save an array of plain numbers",
                       DP_NPY_HEAD_MAX);
    return *len <= size - *begin ? DP_OK
                                 : dp_fail(err, DP_DATA, "it is cut off in its header: write it again");
}

enum dp_status dp_npy_read_head(const void *bytes, size_t size, uint64_t file_bytes, struct dp_tensor_in *out,
                                struct dp_error *err)
{
    size_t begin = 0;
    uint64_t len = 0;
    DP_ASSERT(size <= file_bytes && (size == file_bytes || size == DP_NPY_HEAD_MAX));
    *out = (struct dp_tensor_in){0};
    enum dp_status st = find_text(bytes, size, file_bytes, &begin, &len, err);
    if (st != DP_OK)
        return st;
    const char *descr = NULL;
    int fortran = 0;
    json_t *shape = NULL, *dict = read_dict((const char *)bytes + begin, len);
    if (json_unpack(dict, "{s:s, s:b, s:o!}", "descr", &descr, "fortran_order", &fortran, "shape", &shape) !=
            0 ||
        !take_shape(shape, out))
        st = dp_fail(err, DP_DATA,
                     "its header is not understood: save one array of plain numbers, of at most %u "
                     "dimensions",
                     DP_TENSOR_DIMENSIONS);
    if (st == DP_OK)
        st = settle_type(descr, out, err);
    json_decref(dict);
    if (st == DP_OK && fortran && out->dimensions > 1)
        st = dp_fail(err, DP_DATA,
                     "it is in Fortran order, and only C order is read: save numpy.ascontiguousarray(a)");
    return st == DP_OK ? settle_size(begin + len, file_bytes, out, err) : st;
}

/* ---- the directory */

static int is_npy(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name), end = strlen(ENDING);
    return len > end && strcmp(entry->d_name + len - end, ENDING) == 0;
}

/* The next tensor. The set's header has the names, a list of texts. */
static enum dp_status add_file(struct dp_tensor_set *set, const char *directory, const char *file,
                               struct dp_error *err)
{
    struct dp_tensor_in *t = &set->one[set->count];
    char *path = NULL, *head = malloc(DP_NPY_HEAD_MAX);
    json_t *name = json_stringn_nocheck(file, strlen(file) - strlen(ENDING));
    if (asprintf(&path, "%s/%s", directory, file) < 0)
        path = NULL;
    bool room = path && head && name && json_array_append(set->header, name) == 0;
    enum dp_status st =
        room ? dp_tensor_set_open_file(set, path, err) : dp_fail(err, DP_NOMEM, "no memory for a tensor");
    if (st == DP_OK) {
        uint64_t bytes = set->source[set->sources - 1].size,
                 part = bytes < DP_NPY_HEAD_MAX ? bytes : DP_NPY_HEAD_MAX;
        st = dp_tensor_set_read(set, set->sources - 1, 0, head, part, err);
        if (st == DP_OK)
            st = dp_npy_read_head(head, (size_t)part, bytes, t, err);
    }
    if (st == DP_OK) {
        t->name = json_string_value(name);
        t->source = set->sources - 1;
        set->count++;
    }
    json_decref(name);
    free(head);
    free(path);
    return st == DP_OK ? st : dp_wrap(err, st, "'%.200s/%.100s'", directory, file);
}

enum dp_status dp_npy_read_open(const char *directory, struct dp_tensor_set *out, struct dp_error *err)
{
    struct dirent **files = NULL;
    *out = (struct dp_tensor_set){.directory = true};
    int count = scandir(directory, &files, is_npy, alphasort);
    if (count < 0)
        return dp_fail(err, errno == ENOENT ? DP_NOT_FOUND : DP_IO, "'%.300s': %s", directory,
                       strerror(errno));
    out->one = calloc((size_t)count + 1, sizeof *out->one);
    out->header = json_array();
    enum dp_status st = !out->one || !out->header ? dp_fail(err, DP_NOMEM, "no memory for %d tensors", count)
                        : count == 0              ? dp_fail(err, DP_DATA,
                                                            "'%.200s' has no .npy file: name a directory with one for "
                                                                         "each table of the model, as 'downpour export' writes it",
                                                            directory)
                                                  : DP_OK;
    for (int i = 0; st == DP_OK && i < count; i++)
        st = add_file(out, directory, files[i]->d_name, err);
    for (int i = 0; i < count; i++)
        free(files[i]);
    free(files);
    if (st != DP_OK)
        dp_tensor_set_close(out);
    return st;
}
