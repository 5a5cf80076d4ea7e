/* Goal: the bytes of a file of tensors. Method: one written out by hand; what cannot be written. */
#include "common/base/bytes.h"
#include "common/tensors/tensor_file.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct dp_tensor_text metadata[] = {{"model", "m\"1"}};

static void add(struct dp_tensors *tensors, const char *name, enum dp_tensor_type type, uint64_t rows,
                uint64_t width)
{
    struct dp_tensor tensor = {.type = type, .rows = rows, .width = width};
    size_t index, expected = tensors->count;
    struct dp_error err = {0};
    (void)snprintf(tensor.name, sizeof tensor.name, "%s", name);
    assert_int_equal(dp_tensors_add(tensors, &tensor, &index, &err), DP_OK);
    assert_int_equal(index, expected);
}

/* Those of 8 bytes come first in the data, whatever the order; what is not put is 0. */
static void bytes_of_a_file(void **state)
{
    static const char header[] = "{\"__metadata__\":{\"model\":\"m\\\"1\"},"
                                 "\"w\":{\"dtype\":\"F32\",\"shape\":[1,3],\"data_offsets\":[24,36]},"
                                 "\"w.keys\":{\"dtype\":\"U64\",\"shape\":[1],\"data_offsets\":[0,8]},"
                                 "\"none\":{\"dtype\":\"F32\",\"shape\":[0,5],\"data_offsets\":[36,36]},"
                                 "\"step\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[8,24]}}";
    char path[] = "/tmp/dp_tensor_XXXXXX";
    unsigned char got[1024];
    struct dp_tensors tensors = {0};
    struct dp_tensor_file file;
    struct dp_error err = {0};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    add(&tensors, "w", DP_TENSOR_F32, 1, 3);
    add(&tensors, "w.keys", DP_TENSOR_U64, 1, 0);
    add(&tensors, "none", DP_TENSOR_F32, 0, 5);
    add(&tensors, "step", DP_TENSOR_I64, 2, 0);
    assert_int_equal(dp_tensor_file_open(path, &tensors, metadata, 1, &file, &err), DP_OK);
    assert_int_equal(dp_tensor_file_put(&file, 0, 1, "abcdefgh", 2, &err), DP_OK);
    assert_int_equal(dp_tensor_file_put(&file, 1, 0, "ABCDEFGH", 1, &err), DP_OK);
    assert_int_equal(dp_tensor_file_put(&file, 2, 0, NULL, 0, &err), DP_OK);
    assert_int_equal(dp_tensor_file_put(&file, 3, 1, "12345678", 1, &err), DP_OK);
    assert_int_equal(dp_tensor_file_commit(&file, &err), DP_OK);
    size_t len = sizeof header - 1, padded = (len + 7) / 8 * 8, data = 8 + padded;
    ssize_t n = read(fd, got, sizeof got); /* of before: it was replaced */
    assert_int_equal(n, 0);
    (void)close(fd);
    FILE *stream = fopen(path, "re");
    assert_non_null(stream);
    assert_int_equal(fread(got, 1, sizeof got, stream), data + 36);
    (void)fclose(stream);
    assert_true(dp_load_u64le(got) == padded);
    assert_memory_equal(got + 8, header, len);
    for (size_t i = 8 + len; i < data; i++)
        assert_int_equal(got[i], ' ');
    assert_memory_equal(got + data, "ABCDEFGH\0\0\0\0\0\0\0\00012345678\0\0\0\0abcdefgh", 36);
    dp_tensors_clear(&tensors);
    (void)unlink(path);
}

static void what_is_no_file_is_refused(void **state)
{
    struct dp_tensors tensors = {0};
    struct dp_tensor_file file;
    struct dp_error err = {0};
    add(&tensors, "w", DP_TENSOR_F32, 1, 3);
    assert_int_equal(dp_tensor_file_open("/dev/null", &tensors, metadata, 1, &file, &err), DP_ARGUMENT);
    assert_int_equal(dp_tensor_file_open("/no/such/place", &tensors, metadata, 1, &file, &err), DP_IO);
    dp_tensor_file_drop(&file);
    dp_tensors_clear(&tensors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bytes_of_a_file),
                                       cmocka_unit_test(what_is_no_file_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
