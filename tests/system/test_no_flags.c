/* Goal    who gives a model, files and a label only reaches what a logistic regression that has converged reaches on the same file: 0.01
 *         of AUC, 0.02 of accuracy of several classes, with two servers and two asynchronous workers.
 * Method  a9a and imdb_bow where DOWNPOUR_DATA has them; a census-like CSV (numbers of size 1, 1,000 and 100,000, and categories)
 *         and 150 flowers of three kinds that are made here. What scikit-learn's LogisticRegression reaches stands here as a number, made by
 *             DP_WRITE=DIR build/tests/test_no_flags; tests/bench/no_flags_reference.py FORMAT TRAIN TEST
 *         And dlrm on generated clicks: two workers reach what one without overlap does. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define END_MS 180000u

#define CENSUS_AUC       0.8374
#define FLOWERS_ACCURACY 0.98
#define CLICKS_AUC       0.752 /* one worker without overlap, 3 epochs */

/* Figures are for the plain build. */
static void skip_sanitized(void)
{
    if (DP_PATIENCE > 1) {
        print_message("skipped: not under sanitizers\n");
        skip();
    }
}

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

/* Near enough (Irwin and Hall), and without libm. */
static double normal(uint64_t *state)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += uniform(state);
    return sum;
}

static FILE *begin(struct dp_place *place, const char *name, const char **path)
{
    const char *dir = getenv("DP_WRITE");
    *path = dir ? dp_place_text(place, "%s/%s", dir, name) : dp_place_path(place, "%s", name);
    FILE *file = fopen(*path, "w");
    assert_non_null(file);
    return file;
}

/* Who earns over 50,000 a year: by a share, an hourly figure, a capital with a long tail, and where one works. */
static const char *census(struct dp_place *place, const char *name, uint32_t rows, uint64_t seed)
{
    static const char *const works[] = {"private", "state", "self", "none"};
    static const double gains[] = {0.2, -0.3, 0.9, -1.4};
    const char *path;
    FILE *file = begin(place, name, &path);
    (void)fputs("share,minutes,capital,weight,work,region,income\n", file);
    for (uint32_t i = 0; i < rows; i++) {
        double share = uniform(&seed), minutes = 2400 + 600 * normal(&seed);
        double tail = uniform(&seed), capital = tail < 0.7 ? 0 : 250000 * (tail - 0.7) * uniform(&seed);
        double weight = 190000 + 90000 * normal(&seed);
        uint32_t work = (uint32_t)(uniform(&seed) * 4), region = (uint32_t)(uniform(&seed) * 12);
        double logit = -2.2 + 2.4 * (share - 0.5) + (minutes - 2400) / 700 + capital / 14000 + gains[work];
        logit += 0.1 * (double)(region % 5);
        bool over = uniform(&seed) < 1 / (1 + exp(-logit));
        (void)fprintf(file, "%.4f,%.0f,%.0f,%.0f,%s,r%u,%d\n", share, minutes, capital, weight, works[work],
                      region, over);
    }
    assert_int_equal(fclose(file), 0);
    return path;
}

/* 50 of each of three kinds, two of which are alike; means and deviations of Fisher's irises (1936). */
static const char *flowers(struct dp_place *place, const char *name, uint64_t seed)
{
    static const double mean[3][4] = {
        {5.01, 3.43, 1.46, 0.25}, {5.94, 2.77, 4.26, 1.33}, {6.59, 2.97, 5.55, 2.03}};
    static const double deviation[3][4] = {
        {0.35, 0.38, 0.17, 0.11}, {0.52, 0.31, 0.47, 0.20}, {0.64, 0.32, 0.55, 0.27}};
    const char *path;
    FILE *file = begin(place, name, &path);
    (void)fputs("sepal_length,sepal_width,petal_length,petal_width,kind\n", file);
    for (int i = 0; i < 150; i++) {
        double common = normal(&seed); /* a large flower is large in all */
        for (int c = 0; c < 4; c++)
            (void)fprintf(file, "%.1f,",
                          mean[i / 50][c] + deviation[i / 50][c] * (0.7 * common + 0.714 * normal(&seed)));
        (void)fprintf(file, "%d\n", i / 50);
    }
    assert_int_equal(fclose(file), 0);
    return path;
}

static double reached(struct dp_place *place, const char *model, const char *train, const char *test,
                      const char *label, const char *figure)
{
    struct dp_process *run =
        dp_place_start(place, "downpour", "run", "--fresh", "--dir", dp_place_path(place, "run"), "--servers",
                       "2", "--workers", "2", "--model", model, "--train", train, "--test", test,
                       label ? "--label" : NULL, label, NULL);
    (void)dp_process_wait(run, END_MS);
    dp_place_ended(run, 0);
    double value = dp_place_number(place, dp_place_path(place, "run/report.json"), figure);
    print_message("%s on %s: %s %.4f\n", model, train, figure, value);
    return value;
}

static void numbers_of_all_sizes(void **state)
{
    struct dp_place *place = *state;
    const char *train = census(place, "census.csv", 8000, 1),
               *test = census(place, "census.test.csv", 4000, 2);
    skip_sanitized();
    double auc = reached(place, "logistic", train, test, "income", "final.test.auc");
    assert_true(auc > CENSUS_AUC - 0.01);
}

static void a_small_set(void **state)
{
    struct dp_place *place = *state;
    const char *train = flowers(place, "flowers.csv", 3), *test = flowers(place, "flowers.test.csv", 4);
    skip_sanitized();
    double accuracy = reached(place, "mlp:4-16-3", train, test, "kind", "final.test.accuracy");
    assert_true(accuracy > FLOWERS_ACCURACY - 0.02);
}

static void public_set(struct dp_place *place, const char *name, double auc)
{
    const char *data = getenv("DOWNPOUR_DATA");
    skip_sanitized();
    const char *train = dp_place_text(place, "%s/%s.train.libsvm.zst", data ? data : "", name);
    const char *test = dp_place_text(place, "%s/%s.test.libsvm.zst", data ? data : "", name);
    if (!data || access(train, R_OK) != 0 || access(test, R_OK) != 0) {
        print_message("skipped: DOWNPOUR_DATA names no directory with %s\n", name);
        skip();
    }
    assert_true(reached(place, "logistic", train, test, NULL, "final.test.auc") > auc - 0.01);
}

static void yes_or_no_features(void **state)
{
    public_set(*state, "a9a", 0.9022);
}

static void counts_of_words(void **state)
{
    public_set(*state, "imdb_bow", 0.9417);
}

/* The columns' vector of dlrm, a narrow layer with a ReLU, must not end below 0 for good. */
static void dlrm_keeps_its_columns(void **state)
{
    struct dp_place *place = *state;
    const char *train = dp_place_path(place, "clicks"), *test = dp_place_path(place, "clicks.test");
    skip_sanitized();
    dp_place_try(place, 0, "downpour", "generate", "clicks", "--rows", "40000", "--features", "2000",
                 "--seed", "1", "--out", train);
    dp_place_try(place, 0, "downpour", "generate", "clicks", "--rows", "10000", "--first", "40000",
                 "--features", "2000", "--seed", "1", "--out", test);
    double auc = reached(place, "dlrm:16", train, test, NULL, "final.test.auc");
    assert_true(auc > CLICKS_AUC - 0.015);
}

int main(void)
{
#define PLACED(name) cmocka_unit_test_setup_teardown(name, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        PLACED(numbers_of_all_sizes),   PLACED(a_small_set),
        PLACED(yes_or_no_features),     PLACED(counts_of_words),
        PLACED(dlrm_keeps_its_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
