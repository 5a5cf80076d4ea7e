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

/* Doubled quotes are one, and only a separator follows a closing quote, however the fields are separated. */
static void quotes_are_those_of_csv(void **state)
{
    static const struct pair movies[] = {
        {"u", "Movie \"0\" (1999)"}, {"u", "Movie \"1\", a"}, {"v w", "\"\""}, {NULL, NULL}};
    static const struct pair lines[] = {{"u", "a\nb"}, {"v", "c"}, {NULL, NULL}};
    static const struct pair inches[] = {{"u", "12\" mix"}, {"v", "a"}, {NULL, NULL}};
    static const char csv[] =
        "u,\"Movie \"\"0\"\" (1999)\",1\nu, \"Movie \"\"1\"\", a\" ,2\n\"v w\",\"\"\"\"\"\"\n";
    static const struct {
        const char *text;
        unsigned line;
        const char *words;
    } bad[] = {
        {"u,i\nu,\"c\" d\n", 2, "expected a comma after a quoted field, found 'd'"},
        {"u;i\nu;\"c\"d;1\n", 2, "expected a semicolon after a quoted field, found 'd;1'"},
        {"u\ti\nu\t\"c\" d\n", 2,
         "expected a tab after a quoted field, found 'd': where quotes are text, put"},
        {"u\ti\nu\t\"c\t1\n", 2,
         "expected a closing quote (double a quote that is text, and put its field in "
         "quotes), found '\"c\\t1'"},
        {"u::i\nu::\"c\"d\n", 2, "expected '::' after a quoted field, found 'd'"},
        {"u i\nu \"c\"d\n", 2, "expected a blank after a quoted field, found 'd'"},
        {"user,user\nu,i\n", 1, "two columns are named 'user': name one of them by its number (--user"},
        {"item,user,item\ni,u,j\n", 1, "two columns are named 'item'"},
        {"u,i\nu,c \"d\"\n", 2, "expected quotes around a complete field only, each inside doubled"},
        {"u,i\nu,\"c\n", 2, "a field begins with a quote that is not closed"},
        {"{\"user\":1,\"item\":2}\n", 1, "expected 'user,item', not JSON: write a CSV first"},
        {"u,i\n[\"u\",\"i\"]\n", 2, "expected 'user,item', not JSON"},
    };
    expect(NULL, csv, movies);
    for (const char *separators = "\t; "; *separators; separators++) {
        char text[200];
        (void)snprintf(text, sizeof text,
                       "u%c\"Movie \"\"0\"\" (1999)\"%c1\nu%c\"Movie \"\"1\"\", a\"\n\"v w\"%c\"\"\"\"\"\"\n",
                       *separators, *separators, *separators, *separators);
        expect(NULL, text, movies);
    }
    expect(NULL, "u::\"Movie \"\"0\"\" (1999)\"\nu::\"Movie \"\"1\"\", a\"\n\"v w\"::\"\"\"\"\"\"\n", movies);
    expect(NULL, "u,\"a\nb\",1\nv,c,2\n", lines);
    expect(NULL, "u\t12\" mix\t1\nv\ta\n", inches);
    expect(NULL, "12\" mix\tu\na\tv\n", (struct pair[]){{"12\" mix", "u"}, {"a", "v"}, {0}});
    expect(NULL, "5 \" b::u\na::v\n", (struct pair[]){{"5 \" b", "u"}, {"a", "v"}, {0}});
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        formats_refused(options_of(), bad[i].text, bad[i].line, DP_DATA, bad[i].words);
}

static void expect_columns(const struct dp_dataset_options *options, const char *text,
                           const struct pair *pairs, const char *columns)
{
    struct dp_dataset_options o = *options;
    struct dp_understood got;
    uint32_t n = 0;
    o.path = write_text("data", text);
    struct dp_dataset *dataset = formats_open(&o);
    struct dp_batch *b = formats_filled(dataset, 0, 0);
    for (; pairs[n].user; n++) {
        assert_true(n < b->examples);
        if (formats_key(b, 0, 0, n, 0) != key_of(pairs[n].user) ||
            formats_key(b, 1, 1, n, 0) != key_of(pairs[n].item))
            fail_msg("pair %u of '%s' is not %s, %s", n, text, pairs[n].user, pairs[n].item);
    }
    assert_int_equal(dp_dataset_examples(dataset), n);
    dp_dataset_understood(dataset, &o, &got);
    if (columns)
        assert_string_equal(got.lines > 1 ? got.line[1] + strlen("columns: ") : "", columns);
}

/* Names that tell, in any order and case, with other columns between; else the first two columns. */
static void the_header_says_which_column_is_which(void **state)
{
    static const struct pair pairs[] = {{"u1", "i1"}, {"u2", "i2"}, {NULL, NULL}};
    static const struct pair numbers[] = {{"1", "8"}, {"2", "9"}, {NULL, NULL}};
    static const struct {
        const char *text, *columns;
    } named[] = {
        {"item_id,user_id\ni1,u1\ni2,u2\n", "user: 'user_id' (column 2), item: 'item_id' (column 1)"},
        {"timestamp,user_id,item_id\n5,u1,i1\n6,u2,i2\n",
         "user: 'user_id' (column 2), item: 'item_id' (column 3), time: 'timestamp' (column 1)"},
        {"SKU;Stars;Customer ID;note\ni1;5;u1;good, very\ni2;;u2;\n",
         "user: 'Customer ID' (column 3), item: 'SKU' (column 1), rating: 'Stars' (column 2); 1 other"},
        {",user,item\n0,u1,i1\n1,u2,i2\n", "user: 'user' (column 2), item: 'item' (column 3); 1 other"},
        {"[user],item\nu1,i1\nu2,i2\n", NULL},
        {"movieId\tuserId\ni1\tu1\ni2\tu2", NULL},
        {"overall,asin,reviewerID,unixReviewTime\n5,i1,u1,7\n3,i2,u2,8\n",
         "user: 'reviewerID' (column 3), item: 'asin' (column 2), rating: 'overall' (column 1), time: "
         "'unixReviewTime' (column 4)"},
        {"item_rating,user_age,item_id:token,user_id:token\n5,30,i1,u1\n3,31,i2,u2\n", NULL},
        {"product::uid\ni1::u1\ni2::u2\n", NULL},
        {"track_id user\ni1 u1\ni2 u2\n", NULL},
        {"title,user_id\ni1,u1\ni2,u2\n", NULL},
        {"u1,i1,5\nu2,i2,4\n", "user: column 1, item: column 2, rating: column 3; no header"},
        {"a,b,c\nu1,i1,5\nu2,i2,4\n", "user: 'a' (column 1), item: 'b' (column 2), rating: 'c' (column 3)"},
    };
    static const char *const whole[] = {"item,user\n8,1\n9,2\n", "item\twho\n8\t1\n9\t2\n",
                                        "ts,usr,sku\n5,1,8\n6,2,9\n", "x y\n1 8\n2 9\n",
                                        "time item user score\n1 8 1 5\n2 9 2 5\n"};
    const struct dp_dataset_options options = options_of();
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
        expect_columns(&options, named[i].text, pairs, named[i].columns);
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        expect_columns(&options, whole[i], numbers, NULL);
    formats_refused(options, "who,trackId,when\nu1,i1,x\n", 2, DP_DATA,
                    "expected a number, a date, or nothing");
    formats_refused(options, "user,item\nu1,i1,5\n", 2, DP_DATA,
                    "expected 2 columns, as the header has, found 3");
}

static void options_name_columns(void **state)
{
    static const struct pair pairs[] = {{"u1", "i1"}, {"u2", "i2"}, {NULL, NULL}};
    static const struct pair heads[] = {{"y", "x"}, {"u1", "i1"}, {"u2", "i2"}, {NULL, NULL}};
    static const char text[] = "x,note,y,z\ni1,good,u1,5\ni2,\"bad, too\",u2,4\n";
    struct dp_dataset_options options = options_of();
    options.roles[DP_PAIRS_USERS] = "y", options.roles[DP_PAIRS_ITEMS] = "x",
    options.roles[DP_PAIRS_RATINGS] = "z";
    expect_columns(&options, text, pairs,
                   "user: 'y' (column 3), item: 'x' (column 1), rating: 'z' (column 4); 1 other");
    options.roles[DP_PAIRS_USERS] = "3", options.roles[DP_PAIRS_ITEMS] = "1",
    options.roles[DP_PAIRS_RATINGS] = "";
    expect_columns(&options, "i1,good,u1,5\ni2,\"bad, too\",u2,4\n", pairs,
                   "user: column 3, item: column 1; 2 others; no header");
    expect_columns(&options, text, pairs, NULL); /* 'z' stands above a number */
    expect_columns(&options, "x,note,y\ni1,good,u1\ni2,bad,u2\n", heads, NULL); /* nothing says so */
    expect_columns(&options, "item,note,user\ni1,good,u1\ni2,bad,u2\n", pairs, NULL);
    options.roles[DP_PAIRS_USERS] = "uid";
    formats_refused(
        options, text, 1, DP_DATA,
        "--user (data.user) is 'uid', which is no column of this file: expected a name of its first "
        "line (x, note, y, z), or a number from 1 to 4");
    options.roles[DP_PAIRS_USERS] = "5";
    formats_refused(options, "1,2,3,4\n", 1, DP_DATA, "(1, 2, 3, 4), or a number from 1 to 4");
    options.roles[DP_PAIRS_USERS] = "1";
    formats_refused(options, text, 1, DP_DATA,
                    "--user and --item (data.user, data.item) are the same column");
    formats_refused(options, "0 1 2 3 4 5\n1 2\n", 0, DP_ARGUMENT,
                    "a file of format lists has no columns of users");
}

/* Another file is read by its own header, else as the training file. */
static void other_files_have_the_training_columns(void **state)
{
    static const struct pair pairs[] = {{"u1", "i1"}, {"u2", "i2"}, {NULL, NULL}};
    static const char *const others[] = {"i1,good,u1\ni2,bad,u2\n", "y,x\nu1,i1\nu2,i2\n",
                                         "x,note,y\ni1,good,u1\ni2,,u2\n", "user,item\nu1,i1\nu2,i2\n"};
    struct dp_dataset_options options = options_of();
    options.roles[DP_PAIRS_USERS] = "y", options.roles[DP_PAIRS_ITEMS] = "x";
    options.path = write_text("train", "x,note,y\ni1,good,u1\ni2,bad,u2\n");
    options.like = dp_dataset_schema(formats_open(&options));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        expect_columns(&options, others[i], pairs, NULL);
    options.roles[DP_PAIRS_USERS] = "3", options.roles[DP_PAIRS_ITEMS] = "1";
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        expect_columns(&options, others[i], pairs, NULL);
    options.roles[DP_PAIRS_USERS] = "1", options.roles[DP_PAIRS_ITEMS] = "2"; /* other than in training */
    expect_columns(&options, "u1,i1,good\nu2,i2,bad\n", pairs, NULL);
    options.roles[DP_PAIRS_USERS] = options.roles[DP_PAIRS_ITEMS] = "";
    formats_refused(options, "i1,u1\n", 1, DP_DATA,
                    "where the training file has: user: 'y' (column 3), item: 'x' (column 1); 1 other");
}

/* Ratings that differ, and are no times, are reported with their range. */
static void ratings_that_are_not_used_are_reported(void **state)
{
    static const struct {
        const char *text, *doubt;
    } files[] = {
        {"user,item,rating\n1,1,1\n1,2,-1\n2,3,0\n",
         "data: column 3 (rating, -1 .. 1) is not used: each line"},
        {"a\t1\t5\t99\na\t2\t0.5\t98\n", "data: column 3 (rating, 0.5 .. 5) is not used"},
        {"stars,item,user\n1,1,1\n5,2,1\n2,3,0\n", "data: column 1 (stars, 1 .. 5) is not used"},
        {"1,1,1\n1,2,1\n", ""},
        {"1,1,881250949\n1,2,881250950\n", ""},
        {"user,item,time\n1,1,4\n1,2,5\n", ""},
        {"user,item,genre_id\n1,1,4\n1,2,5\n", ""},
        {"1 2\n2 3\n", ""},
    };
    struct dp_dataset_options options = options_of();
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct dp_understood said;
        options.path = write_text("data", files[i].text);
        dp_dataset_understood(formats_open(&options), &options, &said);
        if (files[i].doubt[0] ? said.notes != 1 || !strstr(said.note[0], files[i].doubt) : said.notes > 0)
            fail_msg("'%s' gave '%s'", files[i].text, said.note[0]);
    }
}

/* As labels: one example a line, also where a user has all items, and of the part that is held out. */
static void ratings_are_labels(void **state)
{
    static const char text[] = "item,rating,user\na,5,u\nb,-1.5,u\nc,0,u\na,4,v\nb,3,v\n";
    static const float want[] = {5, -1.5f, 0, 4, 3};
    struct dp_dataset_options options = options_of();
    options.rated = true, options.scored = false, options.labels = DP_LABELS_ANY, options.negatives = 3;
    options.path = write_text("data", text);
    struct dp_dataset *dataset = formats_open(&options);
    struct dp_batch *b = formats_filled(dataset, 0, 0);
    float label;
    assert_int_equal(dp_dataset_examples(dataset), 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_true(b->labels[i] == want[i]);
        assert_true(dp_dataset_label(dataset, i, &label) && label == want[i]);
    }
    uint64_t digest = dp_dataset_digest(dataset);
    options.path = write_text("other", "item,rating,user\na,5,u\nb,-1.5,u\nc,0,u\na,4,v\nb,2,v\n");
    assert_true(dp_dataset_digest(formats_open(&options)) != digest);
    options.path = write_text("data", text);
    options.holdout = DP_HOLDOUT_ONE;
    float sum = 0;
    for (int part = 0; part < 2; part++) {
        options.held_test = part;
        b = formats_filled(formats_open(&options), 0, 0);
        assert_int_equal(b->examples, part ? 2 : 3);
        for (uint32_t i = 0; i < b->examples; i++)
            sum += b->labels[i];
    }
    assert_true(sum == 10.5f);
    options.holdout = DP_HOLDOUT_NONE, options.held_test = false;
    formats_refused(options, "user,item\nu,a\n", 2, DP_DATA,
                    "none of the 2 columns is one: name it (--rating, data.rating)");
    formats_refused(options, "user,item,stars\nu,a,3\nu,b,\n", 3, DP_DATA,
                    "expected a rating, a number, in column 3 (stars): leave lines without one out");
    formats_refused(options, "1 2 3\n1 3\n", 2, DP_DATA, "expected a rating, a number, in column 3:");
    options.format = "lists";
    formats_refused(options, "1 2 3\n", 0, DP_ARGUMENT, "is a file of lists, which have no ratings");
    options.format = NULL, options.scored = true;
    options.path = write_text("scored", "user,item\nu,a\n");
    assert_int_equal(dp_dataset_examples(formats_open(&options)), 1);
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
        FILES_TEST(names_in_each_way),
        FILES_TEST(names_leave_numbers_alone),
        FILES_TEST(lists_are_pairs),
        FILES_TEST(lists_are_detected_with_care),
        FILES_TEST(negatives_of_names),
        FILES_TEST(quotes_are_those_of_csv),
        FILES_TEST(the_header_says_which_column_is_which),
        FILES_TEST(options_name_columns),
        FILES_TEST(other_files_have_the_training_columns),
        FILES_TEST(ratings_that_are_not_used_are_reported),
        FILES_TEST(ratings_are_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
