/* Goal: which .npy files are read, and what is said of others. Method: heads written out, whole and
 * spoiled; a directory that npy_files wrote. */
#define _GNU_SOURCE
#include "common/base/bytes.h"
#include "common/tensors/npy_read.h"
#include "common/tensors/tensor_file.h"
#include "tests/lib/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct head {
    unsigned char bytes[512];
    size_t size;
};

/* With `data` bytes of data behind it. */
static struct head head_of(unsigned version, const char *text, size_t data)
{
    struct head h = {.size = (version == 1 ? 10 : 12) + strlen(text) + data};
    assert_true(h.size <= sizeof h.bytes);
    memcpy(h.bytes, "\x93NUMPY", 6);
    h.bytes[6] = (unsigned char)version;
    dp_store_u32le(h.bytes + 8, (uint32_t)strlen(text));
    memcpy(h.bytes + (version == 1 ? 10 : 12), text, strlen(text));
    return h;
}

static enum dp_status read_head(const struct head *h, struct dp_tensor_in *out, struct dp_error *err)
{
    unsigned char *exact = malloc(h->size + 1); /* so that a sanitizer sees what is read past it */
    assert_non_null(exact);
    memcpy(exact, h->bytes, h->size);
    enum dp_status st = dp_npy_read_head(exact, h->size, h->size, out, err);
    free(exact);
    return st;
}

static void heads_are_read(void **state)
{
    static const struct {
        unsigned version;
        const char *text;
        size_t data;
        const char *shape;
    } heads[] = {
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n", 48, "F32 [3, 4]"},
        {2, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n", 48, "F32 [3, 4]"},
        {1, "{\"shape\":(2,),\"fortran_order\":False,\"descr\":\"<i8\"}", 16, "I64 [2]"},
        {1, "{'descr': '<u8', 'fortran_order': True, 'shape': (2,), }\n", 16, "U64 [2]"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }\n", 4, "F32 []"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9223372036854775807), }\n", 0,
         "F32 [0, 9223372036854775807]"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1), }\n", 4,
         "F32 [1, 1, 1, 1, 1, 1, 1, 1]"},
    };
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        struct head h = head_of(heads[i].version, heads[i].text, heads[i].data);
        struct dp_tensor_in t;
        struct dp_error err = {0};
        char shape[DP_TENSOR_SHAPE_BYTES];
        if (read_head(&h, &t, &err) != DP_OK)
            fail_msg("%s: %s", heads[i].text, err.text);
        assert_string_equal(dp_tensor_set_shape(&t, shape), heads[i].shape);
        assert_true(t.end == h.size && t.end - t.begin == heads[i].data);
    }
}

static void what_cannot_be_is_told(void **state)
{
#define WHOLE(descr, order, shape) "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }\n"
    static const struct {
        unsigned version;
        const char *text;
        size_t data;
        const char *said;
    } heads[] = {
        {1, WHOLE("'>f4'", "False", "(3, 4)"), 48, "'>f4', big-endian"},
        {1, WHOLE("'|O'", "False", "(3, 4)"), 48, "'|O', Python objects"},
        {1, WHOLE("'<f8'", "False", "(3, 4)"), 96, "a.astype('<f4')"},
        {1, WHOLE("'<i4'", "False", "(3,)"), 12, "a.astype('<i8')"},
        {1, WHOLE("'<f2'", "False", "(3,)"), 6, "'<f2', another type"},
        {1, WHOLE("'<f4'", "True", "(3, 4)"), 48, "Fortran order"},
        {1, WHOLE("[('a', '<f4')]", "False", "(3,)"), 12, "is not understood"},
        {1, WHOLE("'<f4'", "Maybe", "(3,)"), 12, "is not understood"},
        {1, WHOLE("'<f4'", "False", "(3"), 12, "is not understood"},
        {1, WHOLE("'<f4'", "False", "(-3,)"), 12, "is not understood"},
        {1, WHOLE("'<f4'", "False", "(99999999999999999999,)"), 12, "is not understood"},
        {1, WHOLE("'<f4'", "False", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), 4, "at most 8 dimensions"},
        {1, "{'descr': '<f4', 'fortran_order': False, }\n", 4, "is not understood"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}\n", 4, "is not understood"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} more", 4, "is not understood"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1", 0, "is not understood"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (", 0, "is not understood"},
        {1, "{'descr': '<f4", 0, "is not understood"},
        {1, "", 0, "is not understood"},
        {1, WHOLE("'<f4'", "False", "(3, 4)"), 47, "has 47 bytes of data, and its shape needs 48"},
        {1, WHOLE("'<f4'", "False", "(3, 4)"), 49, "1 bytes follow its array"},
        {1, WHOLE("'<f4'", "False", "(4294967296, 4294967296)"), 8, "a number that cannot be"},
        {1, WHOLE("'<i8'", "False", "(4611686018427387904,)"), 8, "a number that cannot be"},
        {3, WHOLE("'<f4'", "False", "(3, 4)"), 48, "version 3.0"},
    };
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        struct head h = head_of(heads[i].version, heads[i].text, heads[i].data);
        struct dp_tensor_in t;
        struct dp_error err = {0};
        if (read_head(&h, &t, &err) != DP_DATA || !strstr(err.text, heads[i].said))
            fail_msg("%s %zu: %s", heads[i].text, heads[i].data, err.text);
    }
}

/* Cut off anywhere. */
static void every_shorter_file_is_refused(void **state)
{
    for (unsigned version = 1; version <= 2; version++) {
        struct head h = head_of(version, WHOLE("'<f4'", "False", "(3, 4)"), 48);
        for (h.size--; h.size > 0; h.size--) {
            struct dp_tensor_in t;
            struct dp_error err = {0};
            assert_int_equal(read_head(&h, &t, &err), DP_DATA);
        }
    }
}

static void add(struct dp_tensors *tensors, const char *name, enum dp_tensor_type type, uint64_t rows,
                uint64_t width)
{
    struct dp_tensor tensor = {.type = type, .rows = rows, .width = width};
    size_t index;
    struct dp_error err = {0};
    (void)snprintf(tensor.name, sizeof tensor.name, "%s", name);
    assert_int_equal(dp_tensors_add(tensors, &tensor, &index, &err), DP_OK);
}

static void what_was_written_is_read(void **state)
{
    char directory[] = "/tmp/dp_npy_XXXXXX", path[64], got[24], shape[DP_TENSOR_SHAPE_BYTES];
    struct dp_tensors tensors = {0};
    struct dp_tensor_file files;
    struct dp_tensor_set set;
    struct dp_error err = {0};
    assert_non_null(mkdtemp(directory));
    assert_int_equal(dp_npy_read_open(directory, &set, &err), DP_DATA);
    assert_non_null(strstr(err.text, "has no .npy file"));
    add(&tensors, "w", DP_TENSOR_F32, 2, 3);
    add(&tensors, "w.keys", DP_TENSOR_U64, 2, 0);
    assert_int_equal(dp_npy_files_open(directory, &tensors, &files, &err), DP_OK);
    assert_int_equal(dp_tensor_file_put(&files, 0, 4, "abcdefgh", 2, &err), DP_OK);
    assert_int_equal(dp_tensor_file_put(&files, 1, 1, "ABCDEFGH", 1, &err), DP_OK);
    assert_int_equal(dp_tensor_file_commit(&files, &err), DP_OK);
    (void)snprintf(path, sizeof path, "%s/w.names.tsv", directory);
    FILE *other = fopen(path, "we");
    assert_non_null(other);
    (void)fclose(other);

    assert_int_equal(dp_npy_read_open(directory, &set, &err), DP_OK);
    assert_int_equal(set.count, 2);
    const struct dp_tensor_in *w = dp_tensor_set_find(&set, "w"), *keys = dp_tensor_set_find(&set, "w.keys");
    assert_true(w && keys);
    assert_string_equal(dp_tensor_set_shape(w, shape), "F32 [2, 3]");
    assert_int_equal(dp_tensor_set_get(&set, w, 0, got, 24, &err), DP_OK);
    assert_memory_equal(got, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0abcdefgh", 24);
    assert_string_equal(dp_tensor_set_shape(keys, shape), "U64 [2]");
    assert_int_equal(dp_tensor_set_get(&set, keys, 0, got, 16, &err), DP_OK);
    assert_memory_equal(got, "\0\0\0\0\0\0\0\0ABCDEFGH", 16);
    dp_tensor_set_close(&set);

    assert_int_equal(unlink(path), 0);
    (void)snprintf(path, sizeof path, "%s/w.keys.npy", directory);
    assert_int_equal(truncate(path, 140), 0);
    assert_int_equal(dp_npy_read_open(directory, &set, &err), DP_DATA);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(dp_npy_read_open(directory, &set, &err), DP_CORRUPT);
    assert_int_equal(rmdir(path), 0);
    (void)snprintf(path, sizeof path, "%s/w.npy", directory);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
    assert_int_equal(dp_npy_read_open(directory, &set, &err), DP_NOT_FOUND);
    dp_tensors_clear(&tensors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_are_read), cmocka_unit_test(what_cannot_be_is_told),
        cmocka_unit_test(every_shorter_file_is_refused), cmocka_unit_test(what_was_written_is_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
