/* Goal: the bytes of a .npy file, the best of many, and what is a flag and what a word.
 * Method: NumPy's format 1.0 written out; sorting; command lines. */
#include "common/tensors/tensor_file.h"
#include "deploy/cli/options_words.h"
#include "deploy/run/best.h"
#include "deploy/weights/export_file.h"
#include "tests/lib/test.h"

#include <stdlib.h>
#include <string.h>

/* As numpy.save writes a C-ordered '<f4' matrix, read back by numpy.load (1.24): a head of a multiple of
 * 64 bytes. */
static void npy_head(void **state)
{
    static const char head[] = "\x93NUMPY\x01\x00\x76\x00"
                               "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 70000), }";
    char out[DP_NPY_HEAD + 1] = "";
    dp_npy_head(out, DP_TENSOR_F32, 3, 70000);
    assert_memory_equal(out, head, sizeof head - 1);
    for (size_t i = sizeof head - 1; i < DP_NPY_HEAD - 1; i++)
        assert_int_equal(out[i], ' ');
    assert_int_equal(out[DP_NPY_HEAD - 1], '\n');
    assert_int_equal(out[DP_NPY_HEAD], 0);
    dp_npy_head(out, DP_TENSOR_F32, UINT64_MAX, UINT64_MAX); /* the longest fits */
    assert_non_null(strstr(out + 10, ", 18446744073709551615), }"));
    assert_int_equal(out[DP_NPY_HEAD - 1], '\n');
}

static void names_beside(void **state)
{
    char path[DP_PATH_MAX + 1];
    assert_int_equal(dp_export_names_path("/a/b.npy", path, NULL), DP_OK);
    assert_string_equal(path, "/a/b.names.tsv");
    assert_int_equal(dp_export_names_path("/a/b.npz", path, NULL), DP_OK);
    assert_string_equal(path, "/a/b.npz.names.tsv");
    assert_int_equal(dp_export_names_path(".npy", path, NULL), DP_OK);
    assert_string_equal(path, ".npy.names.tsv");
}

static void best_of_many(void **state)
{
    struct dp_best best;
    static const double scores[] = {1, 3, 3, -1, 7, 3, 0, 7};
    assert_int_equal(dp_best_init(&best, 4, NULL), DP_OK);
    for (size_t i = 0; i < 8; i++)
        dp_best_offer(&best, scores[i], i);
    static const size_t expected[] = {4, 7, 1, 2}; /* of equal ones the first */
    assert_int_equal(best.count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(best.one[i].at, expected[i]);
    dp_best_clear(&best);
    assert_int_equal(dp_best_init(&best, 9, NULL), DP_OK);
    for (size_t i = 0; i < 3; i++)
        dp_best_offer(&best, scores[i], i);
    assert_int_equal(best.count, 3);
    assert_int_equal(best.one[0].at, 1);
    assert_int_equal(best.one[2].at, 0);
    dp_best_clear(&best);
}

static void words_and_flags(void **state)
{
    static const struct dp_option options[] = {{.name = "--top", .argument = "N", .help = ""},
                                               {.name = "--user", .argument = "ID", .help = ""},
                                               {.name = "--all", .help = ""}};
    static const struct dp_command command = {.name = "x", .options = options, .count = 3};
    char *const argv[] = {"DIR",  "--top",      "5", "--user", "a",    "--all",
                          "word", "--user=b c", "-", "--",     "--top"};
    static const char *const want[] = {"DIR", "word", "-", "--top"};
    struct dp_words words;
    const char *values[3];
    bool help;
    assert_int_equal(dp_words_parse(&command, "--user", 11, argv, &words, values, &help, NULL), DP_OK);
    assert_true(words.words == 4 && words.values == 2 && values[2] && !values[1]);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(words.word[i], want[i]);
    assert_string_equal(words.value[0], "a");
    assert_string_equal(words.value[1], "b c");
    assert_string_equal(values[0], "5");
    dp_words_clear(&words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(npy_head), cmocka_unit_test(names_beside),
                                       cmocka_unit_test(best_of_many), cmocka_unit_test(words_and_flags)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
