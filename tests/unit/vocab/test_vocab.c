/* Goal: names come back as they were written, or the file is refused by name.
 * Method: names with every byte; every byte of a file flipped and every length cut. */
#include "common/vocab/vocab.h"
#include "tests/lib/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], path[96];

static int set_up(void **state)
{
    (void)snprintf(folder, sizeof folder, "/tmp/downpour-vocab-XXXXXX");
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/names-7.tsv", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)unlink(path);
    return rmdir(folder);
}

static void write_names(const struct dp_vocab_name *names, size_t count, bool cut)
{
    struct dp_vocab_writer *writer = NULL;
    assert_int_equal(dp_vocab_begin(path, 7, 0xabcdef, &writer, NULL), DP_OK);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(dp_vocab_add(writer, &names[i], NULL), DP_OK);
    assert_int_equal(dp_vocab_commit(&writer, cut, NULL), DP_OK);
    assert_null(writer);
}

static char *read_file(size_t *len)
{
    struct stat info;
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &info), 0);
    char *bytes = malloc((size_t)info.st_size + 1);
    *len = fread(bytes, 1, (size_t)info.st_size, file);
    bytes[*len] = '\0';
    (void)fclose(file);
    return bytes;
}

static void write_file(const char *bytes, size_t len)
{
    FILE *file = fopen(path, "we");
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static const struct dp_vocab_name few[] = {{DP_VOCAB_EVERY_GROUP, 12, "the", 3},
                                           {1, UINT64_MAX, "city=a\tb", 8},
                                           {1, 5, "first", 5},
                                           {0, 5, "other", 5},
                                           {1, 5, "second", 6},
                                           {DP_VOCAB_COLUMN, 0, "age", 3}};
#define FEW (sizeof few / sizeof few[0])

/* The form is read by other programs too. */
static void bytes_of_the_file(void **state)
{
    size_t len;
    write_names(few, FEW, true);
    char *bytes = read_file(&len);
    static const char head[] = "downpour names 1\trun 7\tsource 0000000000abcdef\n"
                               "*\t12\tthe\n"
                               "1\t18446744073709551615\tcity=a\\x09b\n"
                               "1\t5\tfirst\n"
                               "0\t5\tother\n"
                               "1\t5\tsecond\n"
                               "column\t0\tage\n"
                               "end 6\tcut\tsum ";
    assert_true(len == strlen(head) + 17);
    assert_memory_equal(bytes, head, strlen(head));
    free(bytes);
    uint32_t run = 0;
    uint64_t source = 0;
    assert_true(dp_vocab_head(path, &run, &source));
    assert_true(run == 7 && source == 0xabcdef);
}

static void found_by_key_and_by_name(void **state)
{
    struct dp_vocab *v = NULL;
    write_names(few, FEW, false);
    assert_int_equal(dp_vocab_open(path, 7, &v, NULL), DP_OK);
    assert_int_equal(dp_vocab_count(v), FEW);
    for (size_t i = 0; i < FEW; i++) {
        struct dp_vocab_name name = dp_vocab_at(v, i);
        assert_true(name.group == few[i].group && name.key == few[i].key && name.len == few[i].len);
        assert_string_equal(name.text, few[i].text);
        assert_int_equal(dp_vocab_find(v, few[i].group, few[i].text), i);
    }
    assert_int_equal(dp_vocab_key(v, 1, 5), 2);
    assert_int_equal(dp_vocab_next(v, 2), 4); /* a key with two names */
    assert_int_equal(dp_vocab_next(v, 4), DP_VOCAB_NONE);
    assert_int_equal(dp_vocab_key(v, 0, 5), 3);
    assert_int_equal(dp_vocab_key(v, 2, 5), DP_VOCAB_NONE);
    assert_int_equal(dp_vocab_key(v, 3, 12), 0); /* of every group */
    assert_int_equal(dp_vocab_find(v, 3, "the"), 0);
    assert_int_equal(dp_vocab_key(v, DP_VOCAB_COLUMN, 0), 5);
    assert_int_equal(dp_vocab_key(v, DP_VOCAB_COLUMN, 12), DP_VOCAB_NONE);
    assert_int_equal(dp_vocab_find(v, 0, "first"), DP_VOCAB_NONE);
    assert_int_equal(dp_vocab_find(v, 1, "fir"), DP_VOCAB_NONE);
    dp_vocab_close(&v);
    assert_null(v);
}

static void every_byte_in_a_name(void **state)
{
    char text[256], far[DP_VOCAB_TEXT_MAX + 9];
    struct dp_vocab *v = NULL;
    for (int i = 0; i < 256; i++)
        text[i] = (char)(255 - i);
    memset(far, 1, sizeof far);
    const struct dp_vocab_name names[] = {{0, 1, text, 256}, {0, 2, "", 0}, {0, 3, far, sizeof far}};
    write_names(names, 3, false);
    assert_int_equal(dp_vocab_open(path, 7, &v, NULL), DP_OK);
    assert_int_equal(dp_vocab_at(v, 0).len, 256);
    assert_memory_equal(dp_vocab_at(v, 0).text, text, 256);
    assert_int_equal(dp_vocab_at(v, 1).len, 0);
    assert_int_equal(dp_vocab_at(v, 2).len, DP_VOCAB_TEXT_MAX);
    assert_memory_equal(dp_vocab_at(v, 2).text, far, DP_VOCAB_TEXT_MAX);
    dp_vocab_close(&v);
}

static void damage_is_refused(void **state)
{
    size_t len;
    struct dp_vocab *v = NULL;
    write_names(few, FEW, false);
    char *bytes = read_file(&len);
    for (size_t i = 0; i < len; i++) {
        struct dp_error err = {0};
        char was = bytes[i];
        bytes[i] = (char)(bytes[i] ^ 1 << i % 8);
        write_file(bytes, len);
        enum dp_status st = dp_vocab_open(path, 7, &v, &err);
        if (st != DP_DATA)
            fail_msg("byte %zu of %zu flipped: status %d", i, len, (int)st);
        assert_non_null(strstr(err.text, path));
        assert_null(v);
        bytes[i] = was;
    }
    for (size_t cut = 0; cut < len; cut++) {
        write_file(bytes, cut);
        assert_int_equal(dp_vocab_open(path, 7, &v, NULL), DP_DATA);
        assert_null(v);
    }
    write_file(bytes, len);
    assert_int_equal(dp_vocab_open(path, 7, &v, NULL), DP_OK);
    dp_vocab_close(&v);
    free(bytes);
}

static void of_another_run_or_gone(void **state)
{
    struct dp_error err = {0};
    struct dp_vocab *v = NULL;
    write_names(few, FEW, false);
    assert_int_equal(dp_vocab_open(path, 8, &v, &err), DP_DATA);
    assert_non_null(strstr(err.text, "is of run 7, not of run 8"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(dp_vocab_open(path, 7, &v, &err), DP_NOT_FOUND);
}

static void dropped_leaves_nothing(void **state)
{
    struct dp_vocab_writer *writer = NULL;
    assert_int_equal(dp_vocab_begin(path, 7, 1, &writer, NULL), DP_OK);
    assert_int_equal(dp_vocab_add(writer, &few[0], NULL), DP_OK);
    dp_vocab_drop(&writer);
    assert_int_not_equal(access(path, F_OK), 0);
    dp_vocab_drop(&writer);
}

static void similar_spellings(void **state)
{
    static const char *const words[] = {"cats", "king", "kind", "kings", "thing", "queen", "a"};
    struct dp_vocab_name names[7];
    const char *found[3];
    struct dp_vocab *v = NULL;
    for (size_t i = 0; i < 7; i++)
        names[i] = (struct dp_vocab_name){i == 0 ? 1 : 0, i, words[i], strlen(words[i])};
    write_names(names, 7, false);
    assert_int_equal(dp_vocab_open(path, 7, &v, NULL), DP_OK);
    assert_int_equal(dp_vocab_similar(v, 0, "kingz", found, 3), 3);
    assert_string_equal(found[0], "king");
    assert_string_equal(found[1], "kings");
    assert_string_equal(found[2], "kind");
    assert_int_equal(dp_vocab_similar(v, 0, "quene", found, 3), 1);
    assert_int_equal(dp_vocab_similar(v, 0, "knig", found, 1), 1);
    assert_string_equal(found[0], "king");                        /* two letters swapped */
    assert_int_equal(dp_vocab_similar(v, 0, "cat", found, 3), 0); /* of another group */
    assert_int_equal(dp_vocab_similar(v, 0, "elephant", found, 3), 0);
    assert_int_equal(dp_vocab_similar(v, 0, "", found, 3), 0);
    dp_vocab_close(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_of_the_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(found_by_key_and_by_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_byte_in_a_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damage_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(of_another_run_or_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(dropped_leaves_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(similar_spellings, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
