/* nearest: a mistyped word finds the one that was meant, and a word like none finds none. */
#include "tests/lib/test.h"

#include "common/config/nearest.h"

static const char *const words[] = {"--servers", "--workers", "--rate", "--rate-end", "--epochs", "--l2"};

static const char *near(const char *word)
{
    return dp_nearest(word, words, sizeof words / sizeof words[0]);
}

static void mistyped_words_find_their_neighbour(void **state)
{
    assert_string_equal(near("--epoch"), "--epochs");
    assert_string_equal(near("--severs"), "--servers");
    assert_string_equal(near("--wrokers"), "--workers"); /* letters swapped */
    assert_string_equal(near("--rate"), "--rate");
    assert_string_equal(near("--ratee"), "--rate");
    assert_string_equal(near("--rateend"), "--rate-end");
    assert_string_equal(near("--ep"), "--epochs"); /* a beginning */
}

static void words_like_none_find_none(void **state)
{
    assert_null(near("--quantum-flux"));
    assert_null(near(""));
    assert_null(dp_nearest("x", words, 0));
    static const char longer[] =
        "--a-word-that-is-longer-than-any-table-of-distances-in-here-has-room-for-it";
    assert_null(near(longer));
    static const char *const wide[] = {longer};
    assert_null(dp_nearest("--a-word-that-is-longer", wide, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistyped_words_find_their_neighbour),
        cmocka_unit_test(words_like_none_find_none),
    };
    return cmocka_run_group_tests_name("nearest", tests, NULL, NULL);
}
