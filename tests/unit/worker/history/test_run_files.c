/* Goal    a columns file with the same text, and names of the same run and data, are left alone, so that they
 *         need no space; all others are written. Method  the files' inodes. */
#include "common/vocab/vocab.h"
#include "tests/lib/test.h"
#include "worker/history/run_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT "\"y\",\"a\"\nlabel,number\n"

static char dir[] = "/tmp/dp_run_files_XXXXXX", data_path[64], path[64];

static ino_t inode(void)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_ino;
}

static ino_t put_columns(const char *text)
{
    char back[64] = "";
    assert_int_equal(dp_run_files_put_columns(text, path, NULL), DP_OK);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    back[fread(back, 1, sizeof back - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);
    assert_string_equal(back, text);
    return inode();
}

static void another_text_alone_is_written(void **state)
{
    static const char *const others[] = {"\"y\",\"a\"\nlabel,number", "\"y\",\"a\"\nlabel,number\n\n",
                                         "\"y\",\"b\"\nlabel,number\n"};
    struct dp_error err = {0};
    (void)snprintf(path, sizeof path, "%s/columns", dir);
    ino_t first = put_columns(TEXT);
    assert_true(put_columns(TEXT) == first);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        first = put_columns(TEXT);
        assert_true(put_columns(others[i]) != first);
    }
    assert_int_equal(unlink(path), 0);
    (void)snprintf(path, sizeof path, "%s/none/columns", dir);
    assert_int_equal(dp_run_files_put_columns(TEXT, path, &err), DP_IO);
    assert_non_null(strstr(err.text, path));
}

static void write_data(const char *text)
{
    FILE *file = fopen(data_path, "we");
    assert_non_null(file);
    (void)fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* The inode of the file of names; first: the name of its first entry. */
static ino_t put_names(uint32_t run, const char *first)
{
    struct dp_error err = {0};
    struct dp_vocab *vocab = NULL;
    struct dp_names_source source = {.run = run};
    struct dp_dataset *data = NULL;
    const struct dp_dataset_options options = {.path = data_path,
                                               .form = DP_FORM_PAIRS,
                                               .words = true,
                                               .labels = DP_LABELS_BINARY,
                                               .window = 1,
                                               .negatives = 1,
                                               .scale = 1,
                                               .batch = 4};
    assert_int_equal(dp_dataset_open(&options, &data, &err), DP_OK);
    source.data = data;
    source.options = &options;
    assert_int_equal(dp_run_files_put_names(&source, path, &err), DP_OK);
    dp_dataset_close(&data);
    assert_int_equal(dp_vocab_open(path, run, &vocab, &err), DP_OK);
    assert_string_equal(dp_vocab_at(vocab, 0).text, first);
    dp_vocab_close(&vocab);
    return inode();
}

static void other_names_alone_are_written(void **state)
{
    (void)snprintf(data_path, sizeof data_path, "%s/data", dir);
    (void)snprintf(path, sizeof path, "%s/names", dir);
    write_data("b a b\n");
    ino_t first = put_names(1, "b");
    assert_true(put_names(1, "b") == first);
    ino_t second = put_names(2, "b");
    assert_true(second != first);
    write_data("b a a\n");
    assert_true(put_names(2, "a") != second);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(data_path), 0);
}

static int setup(void **state)
{
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(another_text_alone_is_written),
                                       cmocka_unit_test(other_names_alone_are_written)};
    return cmocka_run_group_tests_name("run_files", tests, setup, teardown);
}
