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
#define WORD   32u

/* ---- the header: a Python dict of texts, True or False, and numbers in parentheses */

struct npy_text {
    const char *at, *end;
};

struct npy_fields {
    char descr[WORD];
    bool fortran, has_descr, has_order, has_shape;
    struct dp_tensor_in *tensor;
};

static void skip_blanks(struct npy_text *text)
{
    while (text->at < text->end && (*text->at == ' ' || *text->at == '\t' || *text->at == '\n'))
        text->at++;
}

/* Whether the character comes next; it is taken. */
static bool take(struct npy_text *text, char c)
{
    skip_blanks(text);
    if (text->at == text->end || *text->at != c)
        return false;
    text->at++;
    return true;
}

static bool take_text(struct npy_text *text, char out[WORD])
{
    char quote = take(text, '\'') ? '\'' : take(text, '"') ? '"' : '\0';
    size_t len = 0;
    if (!quote)
        return false;
    while (text->at < text->end && *text->at != quote && len + 1 < WORD)
        out[len++] = *text->at++;
    out[len] = '\0';
    return take(text, quote);
}

static bool take_bool(struct npy_text *text, bool *out)
{
    static const char *const words[] = {"False", "True"};
    skip_blanks(text);
    for (size_t i = 0; i < 2; i++) {
        size_t len = strlen(words[i]);
        if ((size_t)(text->end - text->at) >= len && memcmp(text->at, words[i], len) == 0) {
            text->at += len;
            *out = i == 1;
            return true;
        }
    }
    return false;
}

static bool take_number(struct npy_text *text, uint64_t *out)
{
    skip_blanks(text);
    const char *began = text->at;
    for (*out = 0; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++)
        if (__builtin_mul_overflow(*out, 10u, out) ||
            __builtin_add_overflow(*out, (uint64_t)(*text->at - '0'), out))
            return false;
    return text->at > began;
}

static bool take_shape(struct npy_text *text, struct dp_tensor_in *tensor)
{
    if (!take(text, '('))
        return false;
    for (tensor->dimensions = 0; !take(text, ')'); tensor->dimensions++)
        if (tensor->dimensions == DP_TENSOR_DIMENSIONS ||
            !take_number(text, &tensor->shape[tensor->dimensions]) ||
            !(take(text, ',') || (text->at < text->end && *text->at == ')')))
            return false;
    return true;
}

static bool take_field(struct npy_text *text, struct npy_fields *out)
{
    char name[WORD];
    if (!take_text(text, name) || !take(text, ':'))
        return false;
    if (strcmp(name, "descr") == 0)
        return out->has_descr = take_text(text, out->descr);
    if (strcmp(name, "fortran_order") == 0)
        return out->has_order = take_bool(text, &out->fortran);
    return strcmp(name, "shape") == 0 && (out->has_shape = take_shape(text, out->tensor));
}

static bool take_fields(struct npy_text *text, struct npy_fields *out)
{
    if (!take(text, '{'))
        return false;
    while (!take(text, '}')) {
        if (!take_field(text, out))
            return false;
        if (!take(text, ',') && (text->at == text->end || *text->at != '}'))
            return false;
    }
    skip_blanks(text);
    return text->at == text->end && out->has_descr && out->has_order && out->has_shape;
}

/* ---- what is accepted */

static enum dp_status settle_type(const struct npy_fields *fields, struct dp_tensor_in *out,
                                  struct dp_error *err)
{
    static const char *const types[][2] = {{"<f4", "F32"}, {"<i8", "I64"}, {"<u8", "U64"}};
    const char *descr = fields->descr;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(descr, types[i][0]) == 0) {
            out->type = types[i][1];
            return DP_OK;
        }
    const char *kind = descr[0] == '>'                      ? "big-endian"
                       : descr[0] == '|' && descr[1] == 'O' ? "Python objects"
                                                            : "another type";
    return dp_fail(err, DP_DATA,
                   "its elements are '%s', %s: weights must be '<f4', keys '<i8' or '<u8' (numpy.save of "
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
    struct npy_fields fields = {.tensor = out};
    enum dp_status st = find_text(bytes, size, file_bytes, &begin, &len, err);
    if (st != DP_OK)
        return st;
    struct npy_text text = {(const char *)bytes + begin, (const char *)bytes + begin + len};
    if (!take_fields(&text, &fields))
        return dp_fail(err, DP_DATA,
                       "its header is not understood: save one array of plain numbers, of at most %u "
                       "dimensions",
                       DP_TENSOR_DIMENSIONS);
    st = settle_type(&fields, out, err);
    if (st == DP_OK && fields.fortran && out->dimensions > 1)
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
