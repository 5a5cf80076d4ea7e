/* Goal    a columns file with the same text, and names of the same run and data, are left alone, so that they
 *         need no space; all others are written, and names grow from run to run. Method  the files' inodes,
 *         and names of earlier runs, damaged ones among them. */
#include "common/vocab/vocab.h"
#include "tests/lib/test.h"
#include "worker/history/run_files.h"
#include "worker/read/understood.h"

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

static struct dp_understood notes;

static enum dp_status try_names(uint32_t run, struct dp_error *err)
{
    struct dp_names_source source = {.run = run, .notes = &notes};
    struct dp_dataset *data = NULL;
    const struct dp_dataset_options options = {.path = data_path,
                                               .form = DP_FORM_WORDS,
                                               .labels = DP_LABELS_BINARY,
                                               .window = 1,
                                               .negatives = 1,
                                               .scale = 1,
                                               .batch = 4};
    assert_int_equal(dp_dataset_open(&options, &data, err), DP_OK);
    source.data = data;
    source.options = &options;
    enum dp_status st = dp_run_files_put_names(&source, path, err);
    dp_dataset_close(&data);
    return st;
}

/* The file has these names, in this order, parted by blanks. */
static void expect_names(uint32_t run, const char *names)
{
    struct dp_error err = {0};
    struct dp_vocab *vocab = NULL;
    char found[64] = "";
    assert_int_equal(dp_vocab_open(path, run, &vocab, &err), DP_OK);
    for (size_t i = 0; i < dp_vocab_count(vocab); i++)
        (void)snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", i ? " " : "",
                       dp_vocab_at(vocab, i).text);
    dp_vocab_close(&vocab);
    assert_string_equal(found, names);
}

/* The inode of the file of names. */
static ino_t put_names(uint32_t run, const char *names)
{
    struct dp_error err = {0};
    assert_int_equal(try_names(run, &err), DP_OK);
    expect_names(run, names);
    return inode();
}

static void other_names_alone_are_written(void **state)
{
    (void)snprintf(data_path, sizeof data_path, "%s/data", dir);
    (void)snprintf(path, sizeof path, "%s/names", dir);
    write_data("b a b\n");
    ino_t first = put_names(1, "b a");
    assert_true(put_names(1, "b a") == first);
    ino_t second = put_names(2, "b a");
    assert_true(second != first);
    write_data("b c c\n");
    assert_true(put_names(2, "c b") != second);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(data_path), 0);
}

/* As a command begins a further run: a restart of worker 0 adds nothing twice. */
static void names_of_earlier_data_stay(void **state)
{
    char was[sizeof path];
    struct dp_error err = {0};
    (void)snprintf(data_path, sizeof data_path, "%s/data", dir);
    (void)snprintf(was, sizeof was, "%s/was", dir);
    (void)snprintf(path, sizeof path, "%s/names", dir);
    write_data("b a b\n");
    (void)put_names(1, "b a");
    assert_int_equal(rename(path, was), 0);
    write_data("d c a d\n");
    assert_int_equal(dp_vocab_copy(was, path, 0, &err), DP_DATA); /* of a later run */
    assert_int_equal(dp_vocab_copy(was, path, 3, &err), DP_OK);
    expect_names(3, "b a");
    ino_t first = put_names(3, "b a d c");
    assert_true(put_names(3, "b a d c") == first);
    write_data("e a\n");
    notes.lines = 0;
    (void)put_names(4, "b a d c e");
    assert_int_equal(notes.notes, 0);
    assert_int_equal(notes.lines, 1);
    assert_string_equal(notes.line[0], "new: words 1 of 2");
    write_data("a b\n");
    (void)put_names(5, "b a d c e");
    assert_int_equal(notes.lines, 1); /* none is new */
    write_data("g h\n");              /* all new, as in a file of another thing */
    (void)put_names(6, "b a d c e g h");
    assert_int_equal(notes.notes, 1);
    assert_non_null(strstr(notes.note[0], "none of the 2 words was in an earlier file"));
    assert_int_equal(unlink(was), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(data_path), 0);
}

static void flip(long at)
{
    FILE *file = fopen(path, "r+e");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    int c = fgetc(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    (void)fputc(c ^ 1, file);
    assert_int_equal(fclose(file), 0);
}

/* Nothing of it is lost: it stays as it is. */
static void a_damaged_list_is_refused(void **state)
{
    struct stat info;
    char copy[sizeof path];
    (void)snprintf(data_path, sizeof data_path, "%s/data", dir);
    (void)snprintf(path, sizeof path, "%s/names", dir);
    (void)snprintf(copy, sizeof copy, "%s/copy", dir);
    write_data("b a b\n");
    (void)put_names(1, "b a");
    write_data("c a\n");
    assert_int_equal(stat(path, &info), 0);
    for (long at = 0; at < info.st_size; at++) {
        struct dp_error err = {0};
        ino_t first = inode();
        flip(at);
        assert_int_equal(dp_vocab_copy(path, copy, 2, &err), DP_DATA);
        assert_int_equal(access(copy, F_OK), -1);
        if (try_names(2, &err) != DP_DATA || !strstr(err.text, path) || inode() != first)
            fail_msg("with byte %ld damaged: '%s'", at, err.text);
        flip(at);
    }
    assert_int_equal(truncate(path, info.st_size / 2), 0);
    assert_int_equal(try_names(2, &(struct dp_error){0}), DP_DATA);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(data_path), 0);
}

static void two_names_with_one_key_are_refused(void **state)
{
    struct dp_error err = {0};
    struct dp_vocab *vocab = NULL;
    struct dp_vocab_writer *writer = NULL;
    (void)snprintf(data_path, sizeof data_path, "%s/data", dir);
    (void)snprintf(path, sizeof path, "%s/names", dir);
    write_data("b a b\n");
    (void)put_names(1, "b a");
    assert_int_equal(dp_vocab_open(path, 1, &vocab, &err), DP_OK);
    struct dp_vocab_name name = dp_vocab_at(vocab, 1);
    name.text = "z";
    assert_int_equal(dp_vocab_begin(path, 1, 1, &writer, &err), DP_OK);
    assert_int_equal(dp_vocab_add(writer, &name, &err), DP_OK);
    assert_int_equal(dp_vocab_commit(&writer, false, &err), DP_OK);
    dp_vocab_close(&vocab);
    assert_int_equal(try_names(2, &err), DP_DATA);
    assert_non_null(strstr(err.text, "'a' and 'z'"));
    expect_names(1, "z");
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_text_alone_is_written), cmocka_unit_test(other_names_alone_are_written),
        cmocka_unit_test(names_of_earlier_data_stay), cmocka_unit_test(a_damaged_list_is_refused),
        cmocka_unit_test(two_names_with_one_key_are_refused)};
    return cmocka_run_group_tests_name("run_files", tests, setup, teardown);
}
