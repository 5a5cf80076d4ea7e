/* Goal: pairs of names are those of the file, however they are separated; lists are the pairs that they
 * stand for, and are detected only where they can be nothing else. */
#include "common/model/mix.h"
#include "tests/lib/test.h"
#include "tests/unit/worker/read/formats.h"
#include "worker/read/content.h"
#include "worker/read/pairs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct dp_dataset_options options_of(void)
{
    return (struct dp_dataset_options){
        .form = DP_FORM_PAIRS, .labels = DP_LABELS_BINARY, .scale = 1, .scored = true, .batch = 64};
}

static uint64_t key_of(const char *id)
{
    struct dp_name_set ids = {0};
    struct dp_error err;
    uint64_t key = 0;
    assert_int_equal(dp_pairs_key(&ids, id, strlen(id), &key, &err), DP_OK);
    dp_name_set_clear(&ids);
    return dp_mix(key);
}

struct pair {
    const char *user, *item; /* NULL: the end */
};

static void expect(const char *format, const char *text, const struct pair *pairs)
{
    struct dp_dataset_options options = options_of();
    uint32_t n = 0;
    options.format = format;
    options.path = write_text("data", text);
    struct dp_dataset *dataset = formats_open(&options);
    struct dp_batch *b = formats_filled(dataset, 0, 0);
    for (; pairs[n].user; n++) {
        assert_true(n < b->examples);
        assert_true(formats_key(b, 0, 0, n, 0) == key_of(pairs[n].user));
        assert_true(formats_key(b, 1, 1, n, 0) == key_of(pairs[n].item));
    }
    assert_int_equal(dp_dataset_examples(dataset), n);
}

static void names_in_each_way(void **state)
{
    static const struct pair plain[] = {{"alice", "matrix"}, {"bob", "7"}, {"007", "matrix"}, {NULL, NULL}};
    static const struct pair blanks[] = {{"Ann Lee", "The Matrix"}, {"Bob", "12, rue"}, {NULL, NULL}};
    static const struct pair few[] = {{"1", "B00X"}, {"2", "7"}, {NULL, NULL}};
    expect(NULL, "alice matrix\nbob 7 4.5 2010-10-19\n\n# none\n007 matrix\n", plain);
    expect(NULL, "alice,matrix,1\r\nbob , 7\r\n007,matrix,,2\r\n", plain);
    expect(NULL, "alice\tmatrix\t1\nbob\t7\t\n007\tmatrix", plain);
    expect(NULL, "alice::matrix::5\nbob::7::1\n007::matrix\n", plain);
    expect(NULL, "\"alice\";\"matrix\";\"0\"\n\"bob\";\"7\";5\n\"007\";matrix\n", plain);
    expect(NULL, "user,item,rating\nalice,matrix,1\nbob,7,1\n007,matrix,1\n", plain);
    expect(NULL, "reviewerID\tasin\nalice\tmatrix\nbob\t7\n007\tmatrix\n", plain);
    expect(NULL, "Ann Lee\tThe Matrix\nBob\t12, rue\n", blanks);
    expect(NULL, "Ann Lee,The Matrix,5\nBob,\"12, rue\",1\n", blanks);
    expect(NULL, "Ann Lee;The Matrix\nBob;12, rue\n", blanks);
    expect(NULL, "who what\n1 B00X\n2 7\n", (struct pair[]){{"who", "what"}, {"1", "B00X"}, {"2", "7"}, {0}});
    expect(NULL, "007 1\n7 1\n", (struct pair[]){{"007", "1"}, {"7", "1"}, {0}});
    expect(NULL, "1 B00X\n2 7\n", few);
    expect(NULL, "user1,item2\nuser2,item2\n", (struct pair[]){{"user1", "item2"}, {"user2", "item2"}, {0}});
}

/* The digest of a file of numbers is one that stores and caches already have. */
static void names_leave_numbers_alone(void **state)
{
    static const uint64_t pairs[3][2] = {{1, 2}, {1, 3}, {9, 3}};
    struct dp_dataset_options options = options_of();
    options.path = write_text("data", "1 2\n1 3\n9 3\n");
    struct dp_dataset *dataset = formats_open(&options);
    uint64_t digest = 0;
    for (int i = 0; i < 3; i++)
        digest = dp_content_digest(digest, dp_mix(pairs[i][0]) + pairs[i][1] * DP_HASH_GOLDEN);
    assert_true(dp_dataset_digest(dataset) == digest);
}

static void lists_are_pairs(void **state)
{
    static const struct pair want[] = {{"0", "3"}, {"0", "1"}, {"0", "4"}, {"0", "9"},
                                       {"1", "3"}, {"5", "4"}, {"5", "3"}, {NULL, NULL}};
    static const struct pair names[] = {{"u", "x"}, {"u", "y 1"}, {"v", "x"}, {NULL, NULL}};
    static const char lists[] = "0 3 1 4 9\r\n1 3\n\n# who\n2\n3 \n5\t4 3\n";
    expect(NULL, lists, want);
    expect("lists", lists, want);
    expect("pairs", "0 3\n0 1\n0 4\n0 9\n1 3\n5 4\n5 3\n", want);
    expect("lists", "u\tx\ty 1\nv\tx\n", names);
    struct dp_dataset_options options = options_of();
    formats_check(options, lists);
    options.format = "lists";
    formats_refused(options, "0 3 1\n1 -3\n", 2, DP_DATA, "the id of an item");
    formats_refused(options, "0\n1\n", 0, DP_DATA, "holds no pairs: expected lines of 'user item item ...'");
}

static void lists_are_detected_with_care(void **state)
{
    static const struct {
        const char *text;
        bool lists;
    } texts[] = {
        {"0 1 2 3 4\n1 2\n", true},
        {"# of somebody\n0 1 2 3 4\n1\n", true},
        {"0 1 2 3 4\n1 2 9 8 7\n", false}, /* may be columns */
        {"0 1 2 3\n1 2\n", false},         /* may be ratings and times */
        {"0 1 2 3 4 5\n", false},
        {"0,1,2,3,4\n1,2\n", false},
        {"0 1 2.5 3 4\n1 2\n", false},
        {"u 1 2 3 4\n1 2\n", false},
        {"1 2\n0 1 2 3 4", false}, /* the last line may go on */
        {"", false},
    };
    char text[400] = "0";
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_int_equal(dp_pairs_are_lists((const unsigned char *)texts[i].text, strlen(texts[i].text)),
                         texts[i].lists);
    for (int i = 0; i < 80; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), " %d", i);
    assert_true(dp_pairs_are_lists((const unsigned char *)text, strlen(text))); /* one line, cut */
}

/* "(user,item)" of names, and names of items behind it. */
static void negatives_of_names(void **state)
{
    static const char *const want[] = {"m", "a b", "12", "a b", "m"};
    struct dp_dataset_options options = options_of();
    const char *negatives = write_text("negatives", "(u,m)\ta b\t12\n(v w,a b)\tm\n");
    options.scored = false;
    options.negatives_path = negatives;
    options.path = write_text("data", "u,m\nv w,a b\n");
    struct dp_dataset *dataset = formats_open(&options);
    struct dp_batch *b = formats_batch(dataset);
    assert_int_equal(dp_dataset_lists(dataset), 2);
    assert_int_equal(dp_dataset_examples(dataset), sizeof want / sizeof want[0]);
    dp_dataset_fill(dataset, 0, 0, b);
    for (uint32_t i = 0; i < b->examples; i++)
        assert_true(formats_key(b, 1, 1, i, 0) == key_of(want[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILES_TEST(names_in_each_way),  FILES_TEST(names_leave_numbers_alone),
        FILES_TEST(lists_are_pairs),    FILES_TEST(lists_are_detected_with_care),
        FILES_TEST(negatives_of_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
