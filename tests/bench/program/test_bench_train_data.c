/* Goal: the files that 'downpour-bench train' trains on are of their formats, and the same each time.
 * Method: each kind is written twice and compared; its first bytes, its size and its lines are looked at. That the readers
 * take them is seen by bench/train-quick, which trains on each. */
#include "tests/bench/program/bench_train_data.h"

#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROWS 50

struct file {
    char *bytes;
    size_t len;
};

static struct file read_all(const char *path)
{
    struct file all = {calloc(1, 1 << 20), 0};
    FILE *file = fopen(path, "re");
    assert_non_null(all.bytes);
    assert_non_null(file);
    all.len = fread(all.bytes, 1, (1 << 20) - 1, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(unlink(path), 0);
    return all;
}

static struct file written(enum dp_bench_train_data data, uint64_t rows, struct file *labels)
{
    char path[] = "/tmp/dp-train-data-XXXXXX", second[] = "/tmp/dp-train-labels-XXXXXX";
    struct dp_error err = {0};
    assert_true(close(mkstemp(path)) == 0 && close(mkstemp(second)) == 0);
    if (dp_bench_train_data_write(data, rows, path, second, &err) != DP_OK)
        fail_msg("%s", err.text);
    *labels = read_all(second);
    return read_all(path);
}

static size_t lines(const struct file *file)
{
    size_t n = 0;
    for (size_t i = 0; i < file->len; i++)
        n += file->bytes[i] == '\n';
    return n;
}

static void each_kind(void **state)
{
    static const char *const formats[] = {"libsvm", "idx", "pairs", "criteo", "text"};
    for (int kind = DP_BENCH_TRAIN_SPARSE; kind <= DP_BENCH_TRAIN_TEXT; kind++) {
        struct file labels[2], files[2];
        for (int i = 0; i < 2; i++)
            files[i] = written((enum dp_bench_train_data)kind, ROWS, &labels[i]);
        assert_string_equal(dp_bench_train_data_format((enum dp_bench_train_data)kind), formats[kind]);
        assert_int_equal(files[0].len, files[1].len);
        assert_memory_equal(files[0].bytes, files[1].bytes, files[0].len);
        assert_int_equal(labels[0].len, labels[1].len);
        assert_memory_equal(labels[0].bytes, labels[1].bytes, labels[0].len);
        if (kind == DP_BENCH_TRAIN_IMAGES) {
            assert_int_equal(files[0].len, 16 + ROWS * 28 * 28);
            assert_int_equal(labels[0].len, 8 + ROWS);
            assert_memory_equal(files[0].bytes, "\0\0\10\3\0\0\0\62\0\0\0\34\0\0\0\34", 16);
            assert_memory_equal(labels[0].bytes, "\0\0\10\1\0\0\0\62", 8);
        } else {
            assert_int_equal(lines(&files[0]), kind == DP_BENCH_TRAIN_TEXT ? ROWS / 20 : ROWS);
        }
        for (int i = 0; i < 2; i++) {
            free(files[i].bytes);
            free(labels[i].bytes);
        }
    }
}

/* Features of a row ascend, each once, as libsvm's readers want them. */
static void features_ascend(void **state)
{
    struct file labels, file = written(DP_BENCH_TRAIN_SPARSE, 500, &labels);
    char *rest = NULL;
    for (char *line = strtok_r(file.bytes, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *at = line + 1;
        assert_true(line[0] == '0' || line[0] == '1');
        for (unsigned long last = 0; *at; at += 2) {
            unsigned long feature = strtoul(at, &at, 10);
            assert_true(feature > last && feature <= 50000 && strncmp(at, ":1", 2) == 0);
            last = feature;
        }
    }
    free(file.bytes);
    free(labels.bytes);
}

static void cannot_be_written(void **state)
{
    for (int kind = DP_BENCH_TRAIN_SPARSE; kind <= DP_BENCH_TRAIN_TEXT; kind++) {
        struct dp_error err = {0};
        assert_int_equal(
            dp_bench_train_data_write((enum dp_bench_train_data)kind, 1, "/dev/null/x", "/dev/null/y", &err),
            DP_IO);
        assert_non_null(strstr(err.text, "cannot write '/dev/null/"));
        if (access("/dev/full", W_OK) == 0) {
            assert_int_equal(dp_bench_train_data_write((enum dp_bench_train_data)kind, 2000, "/dev/full",
                                                       "/dev/null", &err),
                             DP_IO);
            assert_non_null(strstr(err.text, "No space left"));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_kind), cmocka_unit_test(features_ascend),
                                       cmocka_unit_test(cannot_be_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
