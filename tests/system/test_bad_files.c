/* Goal: what files of data may have wrong is said with file, line and what to do, exit 2; or it is read as it was meant.
 * Method: small files of some formats through `downpour run`, one thing wrong in each; what may differ (ends of lines, a
 * mark of UTF-8, packing) against the same file without it; caches whose source changes; models that are not the store's. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTES(text)      (text), sizeof(text) - 1
#define MARK             "\xef\xbb\xbf"
#define PAIRS            "1 10\n1 11\n2 10\n3 12\n2 12\n"
#define INTEGERS_12      "\t-1\t\t3\t4\t5\t6\t7\t8\t9\t10\t11\t12"
#define CATEGORIES_5     "\ta\tb\tc\t\te"
#define CATEGORIES_25    CATEGORIES_5 CATEGORIES_5 CATEGORIES_5 CATEGORIES_5 CATEGORIES_5
#define ROW(label, last) label INTEGERS_12 "\t13" CATEGORIES_25 last "\n"
#define CLICKS           ROW("1", "\tx") ROW("0", "\ty") ROW("1", "\t")
#define TABLE            "y,a,city\n1,2,Rome\n0,3,Bern\n1,,\n"
#define FEATURES         "1 1:1 3:2\n0 2:1\n1 1:0.5\n0 3:1\n"

/* What a file of a format is trained with. */
enum kind { PAIR, CLICK, CSV, LIBSVM, WORD };
static const char *const models[] = {[PAIR] = "mf:4",
                                     [CLICK] = "deepfm:2-4",
                                     [CSV] = "deepfm:2-4,columns=1,fields=1",
                                     [LIBSVM] = "logistic",
                                     [WORD] = "skipgram:4"};
static const char *const goods[] = {[PAIR] = PAIRS,
                                    [CLICK] = CLICKS,
                                    [CSV] = TABLE,
                                    [LIBSVM] = FEATURES,
                                    [WORD] = "to be or not to be\nto be or not to be\nto be or not to be\n"};
#define KINDS (sizeof goods / sizeof goods[0])

static struct dp_process *run(struct dp_place *place, enum kind kind, const char *train, const char *flag,
                              const char *value)
{
    return dp_place_start(place, "downpour", "run", "--dir", dp_place_path(place, "run"), "--epochs", "1",
                          "--batch", "4", "--model", models[kind], "--train", train,
                          kind == CSV ? "--label" : "--seed", kind == CSV ? "y" : "1", flag, value, NULL);
}

struct bad {
    enum kind kind;
    const char *text;
    size_t size;
    unsigned line; /* 0: the file as a whole */
    const char *words;
};

static void refused(struct dp_place *place, const struct bad *bad, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *path = dp_place_file(place, dp_place_text(place, "bad-%zu", i), bad[i].text, bad[i].size);
        struct dp_process *process = run(place, bad[i].kind, path, NULL, NULL);
        dp_place_ended(process, 2);
        dp_place_says(process, bad[i].line ? dp_place_text(place, "%s:%u: ", path, bad[i].line)
                                           : dp_place_text(place, "%s: ", path));
        dp_place_says(process, bad[i].words);
        assert_int_not_equal(access(dp_place_path(place, "run/report.json"), F_OK), 0);
        dp_place_drop(place, &process);
    }
}
#define REFUSED(place, bad) refused((place), (bad), sizeof(bad) / sizeof(bad)[0])

/* Of each format some; all of them are the formats' own tests' (tests/unit/worker/read). */
static void each_format(void **state)
{
    static const struct bad bad[] = {
        {PAIR, BYTES(PAIRS "-4 10\n"), 6,
         "expected the id of a user, an integer from 0 or a name, found '-4'"},
        {PAIR, BYTES(PAIRS "4 1\0000\n"), 6, "byte 4 of the line is NUL"},
        {PAIR, BYTES(""), 0, "is empty: expected lines of 'user item item ...', or lines of 'user item'"},
        {CLICK, BYTES(CLICKS "1" INTEGERS_12 "\t13" CATEGORIES_5), 4, "found 19"}, /* cut */
        {CLICK, BYTES(CLICKS ROW("2", "\tx")), 4, "label 2: expected 0 or 1, or -1 or +1"},
        {CSV, BYTES(TABLE "1,2\n"), 5, "expected 3 columns, as the header has, found 2"},
        {CSV, BYTES("z,a,city\n1,2,x\n"), 1,
         "--label (data.label) is 'y', which is no column of this file; there are: z, a, city"},
        {CSV, BYTES("y,a,city\n"), 0, "holds no examples, only a header"},
        {LIBSVM, BYTES(FEATURES "1 -1:1\n"), 5, "a non-negative index, found '-1:1'"},
        {LIBSVM, BYTES(FEATURES "1 1:1 1:2\n"), 5, "found 1 twice: add up its values"},
        {LIBSVM, BYTES(FEATURES "-1 1:1\n"), 5, "the file has both -1 and 0"},
        {LIBSVM, BYTES("\xff\xfe\x31\0 \0\x31\0:\0\x31\0\n\0"), 1,
         "byte 4 of the line is NUL: is the file complete, and UTF-8"}, /* UTF-16 */
        {LIBSVM, BYTES("\x1f\x8b\x08\0\0\0\0\0\0\x03\x33"), 0, "is truncated"},
        {WORD, BYTES("one one one"), 0, "has 1 different words: expected 2 at least"},
    };
    REFUSED(*state, bad);
}

static void directories(void **state)
{
    struct dp_place *place = *state;
    const char *dir = dp_place_path(place, "dir"),
               *words = dp_place_text(place, "%s: is a directory: name a file in it", dir);
    assert_int_equal(mkdir(dir, 0777), 0);
    for (size_t k = 0; k < KINDS; k += 2) {
        struct dp_process *process = run(place, (enum kind)k, dir, NULL, NULL);
        dp_place_ended(process, 2);
        dp_place_says(process, words);
        process =
            run(place, (enum kind)k, dp_place_file(place, "good", goods[k], strlen(goods[k])), "--test", dir);
        dp_place_ended(process, 2);
        dp_place_says(process, words);
    }
}

/* The digest of what was trained on; the run is removed. */
static const char *digest_of(struct dp_place *place, enum kind kind, const char *text, size_t size)
{
    static char digest[32];
    struct dp_process *process = run(place, kind, dp_place_file(place, "good", text, size), NULL, NULL);
    dp_place_ended(process, 0);
    dp_place_drop(place, &process);
    const char *report = dp_place_read(place, dp_place_path(place, "run/report.json"), NULL);
    const char *at = strstr(report, "\"digest\"");
    assert_non_null(at);
    (void)snprintf(digest, sizeof digest, "%.28s", at);
    (void)dp_place_try(place, 0, "/bin/rm", "-rf", dp_place_path(place, "run"));
    return digest;
}

/* CR LF and UTF-8's mark are no part of the data. */
static void what_is_no_difference(void **state)
{
    struct dp_place *place = *state;
    for (size_t k = CSV; k <= LIBSVM; k++) {
        char text[4096] = MARK, plain[32];
        size_t len = strlen(MARK);
        (void)snprintf(plain, sizeof plain, "%s", digest_of(place, (enum kind)k, goods[k], strlen(goods[k])));
        for (const char *at = goods[k]; *at; at++) {
            if (*at == '\n')
                text[len++] = '\r';
            text[len++] = *at;
        }
        assert_string_equal(digest_of(place, (enum kind)k, text, len), plain);
    }
}

/* The model says whether numbers are pairs or words: ratings as they are handed out, and a text of numbers. */
static void the_model_tells_pairs_from_words(void **state)
{
    struct dp_place *place = *state;
    char plain[32];
    (void)snprintf(plain, sizeof plain, "%s", digest_of(place, PAIR, BYTES(PAIRS)));
    assert_string_equal(
        digest_of(place, PAIR, BYTES("userId,movieId,rating\n1,10,5.0\n1,11,3.5\n2,10,1\n3,12,4\n2,12,4\n")),
        plain);
    assert_string_not_equal(digest_of(place, WORD, BYTES(PAIRS PAIRS PAIRS PAIRS PAIRS)), plain);
}

static void a_cache_whose_source_changed(void **state)
{
    struct dp_place *place = *state;
    const char *cache = dp_place_path(place, "cache"), *log = dp_place_path(place, "run/log/worker-0.log");
    const char *train = dp_place_file(place, "train", BYTES(PAIRS));
    struct dp_process *process = run(place, PAIR, train, "--cache", cache);
    dp_place_ended(process, 0);
    double before = dp_place_number(place, dp_place_path(place, "run/report.json"), "data.examples");
    (void)dp_place_try(place, 0, "/bin/rm", "-rf", dp_place_path(place, "run"));
    (void)dp_place_file(place, "train", BYTES(PAIRS "1 13\n"));
    process = run(place, PAIR, train, "--cache", cache);
    dp_place_ended(process, 0);
    assert_true(dp_place_number(place, dp_place_path(place, "run/report.json"), "data.examples") > before);
    assert_non_null(strstr(dp_place_read(place, log, NULL),
                           "was made from a file that has changed since: making it again"));
    (void)dp_place_try(place, 0, "/bin/rm", "-rf", dp_place_path(place, "run"));
    (void)dp_place_file(place, "train", BYTES(PAIRS "1 -3\n")); /* and no cache hides what is wrong */
    process = run(place, PAIR, train, "--cache", cache);
    dp_place_ended(process, 2);
    dp_place_says(process, dp_place_text(place, "%s:6: ", train));
}

static void bad_files_to_predict(void **state)
{
    struct dp_place *place = *state;
    const char *out = dp_place_path(place, "scores"), *dir = dp_place_path(place, "run");
    static const struct bad bad[] = {
        {PAIR, BYTES("1 10\n1 -1\n"), 2, "found '-1'"},
        {PAIR, BYTES("user,item\n1,10,x\n"), 2, "(the line before was taken for a header)"},
        {PAIR, BYTES("1 10\n\0\0\0\0"), 2, "is NUL"},
        {PAIR, BYTES(""), 0, "is empty"},
    };
    dp_place_ended(run(place, PAIR, dp_place_file(place, "train", BYTES(PAIRS)), NULL, NULL), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *path = dp_place_file(place, "bad", bad[i].text, bad[i].size);
        struct dp_process *process =
            dp_place_try(place, 2, "downpour", "predict", "--from", dir, "--data", path, "--out", out);
        dp_place_says(process, bad[i].line ? dp_place_text(place, "%s:%u: ", path, bad[i].line) : path);
        dp_place_says(process, bad[i].words);
        assert_int_not_equal(access(out, F_OK), 0);
    }
    const char *good = dp_place_file(place, "good", BYTES("1 10\n"));
    dp_place_says(dp_place_try(place, 2, "downpour", "predict", "--from", dir, "--data", good, "--out", dir),
                  "cannot write");
}

int main(void)
{
#define DP_FILES_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        DP_FILES_TEST(each_format),
        DP_FILES_TEST(directories),
        DP_FILES_TEST(what_is_no_difference),
        DP_FILES_TEST(the_model_tells_pairs_from_words),
        DP_FILES_TEST(a_cache_whose_source_changed),
        DP_FILES_TEST(bad_files_to_predict),
    };
    return cmocka_run_group_tests_name("bad files", tests, NULL, NULL);
}
