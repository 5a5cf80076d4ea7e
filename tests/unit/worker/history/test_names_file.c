/* Goal    names that are of this run and these data are left alone, all others written anew. Method  the file's inode. */
#include "common/vocab/vocab.h"
#include "tests/lib/test.h"
#include "worker/history/names_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/dp_names_XXXXXX", data_path[64], path[64];

static void write_data(const char *text)
{
    FILE *file = fopen(data_path, "we");
    assert_non_null(file);
    (void)fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* The inode of the file of names; first: the name of its first entry. */
static ino_t put(uint32_t run, const char *first)
{
    struct dp_error err = {0};
    struct stat info;
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
    assert_int_equal(dp_names_file_put(&source, path, &err), DP_OK);
    dp_dataset_close(&data);
    assert_int_equal(dp_vocab_open(path, run, &vocab, &err), DP_OK);
    assert_string_equal(dp_vocab_at(vocab, 0).text, first);
    dp_vocab_close(&vocab);
    assert_int_equal(stat(path, &info), 0);
    return info.st_ino;
}

static void others_alone_are_written(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(data_path, sizeof data_path, "%s/data", dir);
    (void)snprintf(path, sizeof path, "%s/names", dir);
    write_data("b a b\n");
    ino_t first = put(1, "b");
    assert_true(put(1, "b") == first);
    ino_t second = put(2, "b");
    assert_true(second != first);
    write_data("b a a\n");
    assert_true(put(2, "a") != second);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(data_path), 0);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(others_alone_are_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
