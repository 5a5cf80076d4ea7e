/* Goal: tensors of a file that somebody else changes while it is read. Method: the file is cut off, or written again, after it was opened. */
#define _GNU_SOURCE
#include "common/base/bytes.h"
#include "common/tensors/tensor_read.h"
#include "tests/lib/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER "{\"w\":{\"dtype\":\"F32\",\"shape\":[5000],\"data_offsets\":[0,20000]}}  "
#define DATA   (8 + sizeof HEADER - 1)

static char path[32];
static struct dp_tensor_set set;

static int set_up(void **state)
{
    static char bytes[DATA + 20000];
    struct dp_error err = {0};
    dp_store_u64le(bytes, sizeof HEADER - 1);
    memcpy(bytes + 8, HEADER, sizeof HEADER - 1);
    memcpy(bytes + DATA + 19996, "last", 4);
    (void)snprintf(path, sizeof path, "/tmp/dp_tensor_XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, sizeof bytes), (ssize_t)sizeof bytes);
    (void)close(fd);
    assert_int_equal(dp_tensor_read_open(path, &set, &err), DP_OK);
    assert_int_equal(set.count, 1);
    return 0;
}

static int tear_down(void **state)
{
    dp_tensor_set_close(&set);
    (void)unlink(path);
    return 0;
}

static void any_part_is_read(void **state)
{
    char shape[DP_TENSOR_SHAPE_BYTES], got[8] = "";
    struct dp_error err = {0};
    const struct dp_tensor_in *w = dp_tensor_set_find(&set, "w");
    assert_non_null(w);
    assert_string_equal(dp_tensor_set_shape(w, shape), "F32 [5000]");
    assert_int_equal(dp_tensor_set_get(&set, w, 19992, got, 8, &err), DP_OK);
    assert_memory_equal(got, "\0\0\0\0last", 8);
    assert_int_equal(dp_tensor_set_unchanged(&set, w, &err), DP_OK);
    assert_null(dp_tensor_set_find(&set, "W"));
}

/* Mapped, this would end the process with SIGBUS. */
static void a_file_that_is_cut_off_is_an_error(void **state)
{
    char got[20000];
    struct dp_error err = {0};
    const struct dp_tensor_in *w = dp_tensor_set_find(&set, "w");
    assert_int_equal(truncate(path, 4096), 0);
    assert_int_equal(dp_tensor_set_get(&set, w, 0, got, 100, &err), DP_OK);
    assert_int_equal(dp_tensor_set_get(&set, w, 0, got, sizeof got, &err), DP_DATA);
    assert_string_equal(err.text, "tensor 'w': the file was cut off at byte 4096 while it was read: use a "
                                  "file that no program is writing");
    assert_int_equal(dp_tensor_set_unchanged(&set, w, &err), DP_DATA);
}

static void a_file_that_is_written_again_is_told(void **state)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1, .tv_nsec = 1}};
    struct dp_error err = {0};
    const struct dp_tensor_in *w = dp_tensor_set_find(&set, "w");
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    assert_int_equal(dp_tensor_set_unchanged(&set, w, &err), DP_DATA);
    assert_string_equal(
        err.text,
        "tensor 'w': its file was changed while it was read: use a file that no program is writing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(any_part_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_is_cut_off_is_an_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_is_written_again_is_told, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
