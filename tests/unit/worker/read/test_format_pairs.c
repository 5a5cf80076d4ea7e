/* Goal: pairs, their sampled items and their ranked lists are what the file and the numbers say.
 * Method: a small file whose pairs are known; each sampled item is checked against what the user met, and counted. */
#include "common/model/mix.h"
#include "tests/lib/test.h"
#include "tests/unit/worker/read/formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* User u (0 .. 6) meets item i (of 11, ids 100 + 3 i) where (u * 5 + i * 7) % 4 == 0; user 2 also a pair twice. */
#define USERS 7u
#define ITEMS 11u

static bool met(uint32_t u, uint32_t i)
{
    return (u * 5 + i * 7) % 4 == 0 || i == u;
}

static uint64_t user_key(uint32_t u)
{
    return dp_mix(1000 - (uint64_t)u);
}

static uint64_t item_key(uint32_t i)
{
    return dp_mix(100 + 3 * (uint64_t)i);
}

static uint32_t pairs_text(char *text, size_t size)
{
    uint32_t pairs = 0;
    size_t len = (size_t)snprintf(text, size, "# a comment\n\n");
    for (uint32_t u = 0; u < USERS; u++)
        for (uint32_t i = 0; i < ITEMS; i++)
            for (uint32_t times = met(u, i) + (uint32_t)(u == 2 && i == 2); times > 0; times--, pairs++)
                len +=
                    (size_t)snprintf(text + len, size - len, u % 2 ? "%u %u\r\n" : "\t%u\t%u 4.5\t-12e1 \n",
                                     1000 - u, 100 + 3 * i);
    return pairs;
}

static struct dp_dataset_options options_of(enum dp_data_form form)
{
    return (struct dp_dataset_options){.form = form,
                                       .labels = form == DP_FORM_PAIRS ? DP_LABELS_BINARY : DP_LABELS_ANY,
                                       .scale = 1,
                                       .negatives = 3,
                                       .shuffle = true,
                                       .seed = 9,
                                       .batch = 10};
}

struct where {
    uint32_t user, item;
};

static struct where where_of(uint64_t user, uint64_t item)
{
    struct where w = {USERS, ITEMS};
    for (uint32_t u = 0; u < USERS; u++)
        if (user_key(u) == user)
            w.user = u;
    for (uint32_t i = 0; i < ITEMS; i++)
        if (item_key(i) == item)
            w.item = i;
    assert_true(w.user < USERS && w.item < ITEMS);
    return w;
}

/* Counts of one epoch: how often each pair came as met, and as sampled. */
struct counts {
    uint32_t met[USERS][ITEMS], sampled[USERS][ITEMS];
};

static void count_epoch(const struct dp_dataset *dataset, uint32_t epoch, struct counts *counts)
{
    struct dp_batch *b = formats_batch(dataset);
    for (uint64_t n = 0; n < dp_dataset_batches(dataset); n++) {
        dp_dataset_fill(dataset, epoch, n, b);
        for (uint32_t i = 0; i < b->examples; i++) {
            struct where w = where_of(formats_key(b, 0, 0, i, 0), formats_key(b, 1, 1, i, 0));
            assert_true(b->list[0].values[i] == 1 && b->list[1].values[i] == 1);
            assert_int_equal(b->labels[i] == 1, met(w.user, w.item));
            if (b->labels[i] == 1)
                counts->met[w.user][w.item]++;
            else
                counts->sampled[w.user][w.item]++;
            if (b->room.lists == 3) {
                struct where other = where_of(formats_key(b, 0, 0, i, 0), formats_key(b, 1, 2, i, 0));
                assert_false(met(other.user, other.item));
                counts->sampled[other.user][other.item]++;
            }
        }
    }
}

/* User 2 has all items, and user 1 all that are left then. */
static void users_with_all_items_are_left_out(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_PAIRS);
    char text[4096];
    struct dp_understood said;
    uint32_t pairs = pairs_text(text, sizeof text);
    size_t len = strlen(text);
    for (uint32_t i = 0; i < ITEMS; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "1 %u\n2 %u\n", 100 + 3 * i, 100 + 3 * i);
    (void)snprintf(text + len, sizeof text - len, "1 1\n2 1\n2 2\n");
    options.path = write_text("full", text);
    struct dp_dataset *dataset = formats_open(&options);
    struct counts all = {0};
    assert_int_equal(dp_dataset_examples(dataset), 4 * pairs);
    count_epoch(dataset, 0, &all); /* fails at a user or an item of theirs */
    dp_dataset_understood(dataset, &options, &said);
    assert_int_equal(said.notes, 1);
    assert_non_null(strstr(said.note[0], "all items are left out, as none can be sampled for them: 2"));
}

static void each_pair_and_its_sampled_items(void **state)
{
    enum { EPOCHS = 600 };
    char text[4096];
    uint32_t pairs = pairs_text(text, sizeof text);
    for (int form = DP_FORM_PAIRS; form <= DP_FORM_TRIPLES; form++) {
        struct dp_dataset_options options = options_of((enum dp_data_form)form);
        options.path = write_text("pairs", text);
        struct dp_dataset *dataset = formats_open(&options);
        uint32_t each = form == DP_FORM_PAIRS ? 3 : 1;
        struct counts all = {0};
        assert_int_equal(dp_dataset_examples(dataset), form == DP_FORM_PAIRS ? 4 * pairs : pairs);
        for (uint32_t epoch = 0; epoch < EPOCHS; epoch++)
            count_epoch(dataset, epoch, &all);
        for (uint32_t u = 0; u < USERS; u++) {
            uint32_t of_user = 0, unmet = 0;
            for (uint32_t i = 0; i < ITEMS; i++) {
                uint32_t times = met(u, i) + (uint32_t)(u == 2 && i == 2);
                assert_int_equal(all.met[u][i], EPOCHS * times);
                of_user += times;
                unmet += !met(u, i);
            }
            /* Uniform: each count within 6 deviations of its mean. */
            double mean = (double)EPOCHS * each * of_user / unmet;
            for (uint32_t i = 0; i < ITEMS; i++)
                if (!met(u, i) &&
                    ((double)all.sampled[u][i] - mean) * ((double)all.sampled[u][i] - mean) > 36 * mean)
                    fail_msg("user %u, item %u: drawn %u times, expected about %g", u, i, all.sampled[u][i],
                             mean);
        }
        formats_check(options, text);
    }
}

/* The seed and the epoch change what is sampled; the same numbers give the same. */
static void sampling_hangs_on_the_numbers(void **state)
{
    char text[4096];
    (void)pairs_text(text, sizeof text);
    struct dp_dataset_options options = options_of(DP_FORM_PAIRS);
    options.shuffle = false;
    options.path = write_text("pairs", text);
    struct dp_dataset *a = formats_open(&options);
    options.seed = 10;
    struct dp_dataset *b = formats_open(&options);
    struct dp_batch *x = formats_batch(a), *y = formats_batch(b);
    dp_dataset_fill(a, 0, 0, x);
    dp_dataset_fill(a, 0, 0, y);
    formats_same_batch(x, y);
    for (int k = 0; k < 2; k++) {
        uint32_t differ = 0;
        dp_dataset_fill(k ? a : b, k ? 1 : 0, 0, y);
        for (uint32_t i = 0; i < x->examples; i++) {
            assert_true(formats_key(x, 0, 0, i, 0) == formats_key(y, 0, 0, i, 0));
            bool same = formats_key(x, 1, 1, i, 0) == formats_key(y, 1, 1, i, 0);
            assert_true(same || x->labels[i] == 0);
            differ += !same;
        }
        assert_true(differ > 0);
    }
}

/* Lists in the file's order, minibatches cut anywhere; in both forms. */
static void lists_are_kept_together(void **state)
{
    static const struct {
        uint64_t user, item;
        float label;
        uint32_t list;
    } want[] = {{7, 5, 1, 0}, {7, 9, 0, 0}, {7, 0, 0, 0}, {3, 5, 1, 1},
                {3, 6, 0, 1}, {7, 9, 1, 2}, {7, 5, 0, 2}};
    enum { N = sizeof want / sizeof want[0] };
    const char *negatives = write_text("negatives", "(7,5)\t9\t0\r\n\n(3,5) 6\n(7,9)\t5");
    for (int form = DP_FORM_PAIRS; form <= DP_FORM_TRIPLES; form++) {
        struct dp_dataset_options options = options_of((enum dp_data_form)form);
        options.path = write_text("test", "7\t5\t1\t0\n3 5 1 0\n7 9\n");
        options.negatives_path = negatives;
        options.shuffle = false;
        options.batch = 2;
        struct dp_dataset *dataset = formats_open(&options);
        struct dp_batch *b = formats_batch(dataset);
        assert_int_equal(dp_dataset_examples(dataset), N);
        assert_int_equal(dp_dataset_lists(dataset), 3);
        for (uint32_t i = 0; i < N; i++) {
            dp_dataset_fill(dataset, 0, i / 2, b);
            assert_true(formats_key(b, 0, 0, i % 2, 0) == dp_mix(want[i].user));
            assert_true(formats_key(b, 1, 1, i % 2, 0) == dp_mix(want[i].item));
            assert_true(b->labels[i % 2] == want[i].label);
            assert_int_equal(dp_dataset_list_of(dataset, i), want[i].list);
        }
        formats_check(options, "7\t5\t1\t0\n3 5 1 0\n7 9\n");
    }
}

/* For prediction pairs are taken as they are. */
static void scored_pairs_are_not_joined_by_others(void **state)
{
    for (int form = DP_FORM_PAIRS; form <= DP_FORM_TRIPLES; form++) {
        struct dp_dataset_options options = options_of((enum dp_data_form)form);
        options.path = write_text("data", "1 2\n1 2\n1 3\n"); /* user 1 met all: nothing is sampled */
        options.scored = true;
        options.shuffle = false;
        struct dp_dataset *dataset = formats_open(&options);
        struct dp_batch *b = formats_batch(dataset);
        assert_int_equal(dp_dataset_examples(dataset), 3);
        dp_dataset_fill(dataset, 0, 0, b);
        assert_true(formats_key(b, 1, 1, 2, 0) == dp_mix(3));
    }
}

static void bad_files_are_refused(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_PAIRS);
    static const struct {
        const char *text;
        unsigned line;
        const char *words;
    } bad[] = {
        {"1 2\n-1 3\n", 2, "expected the id of a user, an integer from 0 or a name, found '-1'"},
        {"1 2\n1 -3\n", 2, "expected the id of an item, an integer from 0 or a name, found '-3'"},
        {"1 2\n1\n", 2, "expected the id of an item, an integer from 0 or a name, found ''"},
        {"1.5 2\n", 1, "found '1.5'"},
        {"1 2 good\n", 1, "expected a number, a date, or nothing, after user and item, found 'good'"},
        {"1 2 nan\n", 1, "found 'nan'"},
        {"a b\nc\n", 2, "expected the id of an item, an integer from 0 or a name, found ''"},
        {"a,b\nc d\n", 2, "expected the id of an item, an integer from 0 or a name, found ''"},
        {"\ta\t3\n", 1, "expected the id of a user, an integer from 0 or a name, found ''"},
        {"#\n\n", 0, "holds no pairs"},
        {"1 2\n4 2\n\n1 4\n4 4\n", 5, "user 4 has all 2 items, as has each other user"},
        {"", 0, "is empty"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        options.format = "pairs";
        formats_refused(options, bad[i].text, bad[i].line, DP_DATA, bad[i].words);
    }
    options.form = DP_FORM_SPARSE;
    formats_refused(options, "1 2\n", 0, DP_ARGUMENT, "gives no lists of features");
    options.format = "libsvm";
    options.negatives_path = "x";
    formats_refused(options, "1 2:1\n", 0, DP_ARGUMENT, "leave out the file of negatives 'x'");
}

/* Two ways to write the same, the first as pairs; the format is to be told. */
static void same_pairs(const char *plain, const char *other)
{
    struct dp_dataset_options options = options_of(DP_FORM_PAIRS);
    options.path = write_text("plain", plain);
    options.format = "pairs";
    struct dp_dataset *a = formats_open(&options);
    options.path = write_text("other", other);
    options.format = "auto";
    struct dp_dataset *b = formats_open(&options);
    formats_same(a, b, 0);
}

/* As ratings are handed out: parted by commas, with names above them. And UTF-8's mark is no data. */
static void ratings_are_pairs(void **state)
{
    static const char plain[] = "1 296\n1 306\n2 296\n7 5\n";
    static const char *const others[] = {
        "userId,movieId,rating,timestamp\n1,296,5.0,1147880044\n1,306,3.5,1147868817\n2,296,5,1\n7,5,-1e1,"
        "0\n",
        "1,296\r\n1, 306\r\n2 ,296,\r\n7,5\r\n",
        "# from somewhere\n\n \"user\" , item\n1\t296\n1 306\n2,296 4\n7 5,4",
        "user_id:token\titem_id:token\n1\t296\n1\t306\n2\t296\n7\t5\n",
        "u;i\n1;296\n1;306\n2;296\n7;5\n",
        "u i\n1 296\n1 306\n2 296\n7 5\n",
        "1::296::5::978300760\n1::306::3::978302109\n2::296::3::1\n7::5::1::2\n",
        "\"1\";\"296\";\"0\"\n\"1\";\"306\";\"5\"\n2;296;\n7;5;2010-10-19T23:55:27Z\n",
        "\xef\xbb\xbf"
        "1 296\n1 306\n2 296\n7 5\n",
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        same_pairs(plain, others[i]);
}

/* Without a format named the model says whether it wants pairs: what are none are refused, and not trained on as words. */
static void what_is_no_pairs_is_refused(void **state)
{
    static const struct {
        const char *text;
        unsigned line;
        const char *words;
    } bad[] = {
        {"the quick brown fox\njumps over the lazy dog\n", 2,
         "expected a number, a date, or nothing, after user and item, found 'the' (the line before was taken "
         "for a header): pairs are lines"},
        {"to be, or not to be,\nthat is\n", 2,
         "expected the id of an item, an integer from 0 or a name, found ''"},
        {"1,,2\n", 1, "expected the id of an item, an integer from 0 or a name, found '': pairs are lines"},
        {"1,2,x\n", 1, "expected a number, a date, or nothing, after user and item, found 'x'"},
        {"u,i\n1,2\n3\n", 3, ":3: expected the id of an item, an integer from 0 or a name, found ''"},
        {"(1,2) 7 8\n(2,2) 5\n", 1, "found '(1'"},
        {"-1 2\n", 1, ":1: expected the id of a user, an integer from 0 or a name, found '-1'"},
        {"1 2 3 4 5\n2 2 3 4 5\n", 1,
         "5 numbers in a line: if these are a user and its items, give the format 'lists'"},
        {"user,item\n", 0, "holds no pairs: expected lines of 'user item' or 'user,item'"},
        {"", 0, "is empty: expected lines of 'user item item ...', or lines of 'user item' or 'user,item'"},
    };
    for (int form = DP_FORM_PAIRS; form <= DP_FORM_TRIPLES; form++) {
        struct dp_dataset_options options = options_of((enum dp_data_form)form);
        options.window = 2;
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
            formats_refused(options, bad[i].text, bad[i].line, DP_DATA, bad[i].words);
    }
}

/* And a model of words reads any text as words, also one of numbers. */
static void words_may_be_numbers(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_PAIRS);
    static const char *const texts[] = {
        "12 7 9 4\n12 9 1 7\n", "1 2\n2 3\n", "user, item\n1, 2\n", "(1,2) 7 8\n", "to be\n1 2\n",
        "1984 was a year\n",    "# 1 2\n"};
    options.window = 2;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        options.path = write_text("words", texts[i]);
        options.form = DP_FORM_WORDS;
        options.format = NULL;
        struct dp_dataset *told = formats_open(&options);
        options.format = "text";
        struct dp_dataset *named = formats_open(&options);
        formats_same(told, named, 0);
    }
    options.form = DP_FORM_WORDS;
    options.format = NULL;
    formats_refused(options, "", 0, DP_DATA, "is empty: expected any text");
}

static void bad_lists_are_refused(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_PAIRS);
    const char *path = write_text("test", "7 5\n3 5\n");
    options.path = path;
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"(7,5) 1\n(3,6) 1\n", "/negatives:2: expected (3,5), which is pair 2, found '(3,6)'"},
        {"(7,5) 1\n(3,55) 1\n", "/negatives:2: expected (3,5)"},
        {"7 5 1\n", "/negatives:1: expected (7,5)"},
        {"(7,5) 1\n(3,5)\n", "/negatives:2: expected items that 5 is ranked among, found none"},
        {"(7,5) 1\n(3,5) 6 5\n", "/negatives:2: item 5 is to be ranked among others, found among them"},
        {"(7,5) 1\n(3,5) 6 -5\n", "/negatives:2: expected the id of an item"},
        {"(7,5) 1\n(3,5) 6\n(3,5) 6\n", "/negatives:3: a line too many: the file of pairs has 2"},
        {"(7,5) 1\n", "/negatives: ends after 1 lines"},
        {"", "/negatives: ends after 0 lines"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct dp_error err = {0};
        struct dp_dataset *dataset;
        options.negatives_path = write_text("negatives", bad[i].text);
        assert_int_equal(dp_dataset_open(&options, &dataset, &err), DP_DATA);
        if (!strstr(err.text, bad[i].words))
            fail_msg("'%s', expected '%s'", err.text, bad[i].words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILES_TEST(users_with_all_items_are_left_out),
        FILES_TEST(each_pair_and_its_sampled_items),
        FILES_TEST(sampling_hangs_on_the_numbers),
        FILES_TEST(lists_are_kept_together),
        FILES_TEST(scored_pairs_are_not_joined_by_others),
        FILES_TEST(bad_files_are_refused),
        FILES_TEST(ratings_are_pairs),
        FILES_TEST(what_is_no_pairs_is_refused),
        FILES_TEST(words_may_be_numbers),
        FILES_TEST(bad_lists_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
