/* The public data sets of DOWNPOUR_DATA, and generated clicks, few epochs: what is reached lies near the figures of a long
 * training, and the model that has more to say is the better one. DP_LONG=1: those long trainings, with the settings of README.md (Measured). */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <stdlib.h>
#include <unistd.h>

/* NULL, and the test skips, unless it is there. */
static const char *data_set(struct dp_place *place, const char *name)
{
    const char *data = getenv("DOWNPOUR_DATA");
    if (!data) {
        print_message("skipped: DOWNPOUR_DATA names no directory with %s\n", name);
        return NULL;
    }
    const char *path = dp_place_text(place, "%s/%s", data, name);
    if (access(path, R_OK) != 0) {
        print_message("skipped: no %s\n", path);
        return NULL;
    }
    return path;
}

/* Figures are for the plain build. */
static bool is_sanitized(void)
{
    if (DP_PATIENCE > 1)
        print_message("skipped: not under sanitizers\n");
    return DP_PATIENCE > 1;
}

/* Longer than other waits: ctest has the deadline of all. */
#define LONG_MS (60u * 60 * 1000)

static bool is_long(void)
{
    return getenv("DP_LONG") != NULL && DP_PATIENCE == 1;
}

struct files {
    const char *train, *test;
};

struct flags {
    const char *batch, *rate, *epochs, *decay;
    bool normalize;
    const char *optimizer;
};

/* Two workers on two servers; a figure of the test set. */
static double train(struct dp_place *place, struct files files, const char *model, struct flags flags,
                    const char *figure)
{
    struct dp_process *run = dp_place_start(
        place, "downpour", "run", "--fresh", "--dir", dp_place_path(place, "run"), "--servers", "2",
        "--workers", "2", "--model", model, "--train", files.train, "--test", files.test, "--batch",
        flags.batch, "--rate", flags.rate, "--epochs", flags.epochs, "--rate decay",
        flags.decay ? flags.decay : "none", "--optimizer", flags.optimizer ? flags.optimizer : "adam",
        flags.normalize ? "--normalize" : NULL, NULL);
    (void)dp_process_wait(run, LONG_MS);
    dp_place_ended(run, 0);
    double reached = dp_place_number(place, dp_place_path(place, "run/report.json"), figure);
    print_message("%s: %s %.4f\n", model, figure, reached);
    return reached;
}

static struct files imdb(struct dp_place *place)
{
    return (struct files){data_set(place, "imdb_bow.train.libsvm.zst"),
                          data_set(place, "imdb_bow.test.libsvm.zst")};
}

/* Sums of words say nearly all: with pairs the same is reached sooner, and in the end not less, if their factors are held down: they are
 * many, and fit noise. (The standard error of an AUC of these 25,000 rows is 0.0013.) */
static void imdb_pairs_of_words(void **state)
{
    struct dp_place *place = *state;
    const struct files files = imdb(place);
    const struct flags whole = {"64", "0.02", "8", "cosine", true, NULL};
    const struct flags sums = is_long() ? whole : (struct flags){"64", "0.01", "2", NULL, true, NULL},
                       pairs = is_long() ? whole : (struct flags){"64", "0.02", "2", NULL, true, "adagrad"};
    if (!files.train || !files.test || is_sanitized())
        skip();
    double lr = train(place, files, "logistic", sums, "final.test.auc"),
           fm = train(place, files, is_long() ? "fm:8,l2=0.001" : "fm:8", pairs, "final.test.auc");
    assert_true(lr > (is_long() ? 0.956 : 0.94));
    assert_true(fm >= lr);
}

/* Rows of a hidden model, the same on every machine; further rows of it to test on. */
static struct files clicks(struct dp_place *place, const char *features, const char *rows,
                           const char *test_rows)
{
    const struct files files = {dp_place_path(place, "clicks"), dp_place_path(place, "further")};
    (void)dp_place_try(place, 0, "downpour", "generate", "clicks", "--seed", "1", "--features", features,
                       "--rows", rows, "--out", files.train);
    (void)dp_place_try(place, 0, "downpour", "generate", "clicks", "--seed", "1", "--features", features,
                       "--rows", test_rows, "--first", rows, "--out", files.test);
    return files;
}

/* That model has pairs of categories, which a sum lacks. */
static void generated_clicks(void **state)
{
    struct dp_place *place = *state;
    const struct flags sums = {"256", "0.001", "4", "cosine", false, NULL},
                       pairs = {"256", "0.001", "3", "cosine", false, NULL};
    if (is_sanitized())
        skip();
    const struct files files = clicks(place, "10000", "200000", "50000");
    double lr = train(place, files, "logistic", sums, "final.test.loss"),
           deepfm = train(place, files, "deepfm:8-64-32", pairs, "final.test.loss");
    assert_true(lr < 0.5);
    assert_true(deepfm < lr);
}

/* Of a logistic regression in one process that has converged on these rows, with the l2 that is best on the test rows:
 * tests/bench/clicks_reference.py. */
#define CLICKS_CONVERGED 0.4584

static void a_million_clicks(void **state)
{
    struct dp_place *place = *state;
    const struct flags sums = {"512", "0.002", "6", "cosine", false, NULL},
                       pairs = {"512", "0.001", "3", "cosine", false, NULL};
    if (!is_long()) {
        print_message("skipped: with DP_LONG=1, without sanitizers\n");
        skip();
    }
    const struct files files = clicks(place, "100000", "1000000", "200000");
    double lr = train(place, files, "logistic", sums, "final.test.loss"),
           deepfm = train(place, files, "deepfm:8-64-32", pairs, "final.test.loss");
    assert_true(lr <= 1.01 * CLICKS_CONVERGED);
    assert_true(deepfm < lr);
}

static void mnist(void **state)
{
    struct dp_place *place = *state;
    const struct files files = {data_set(place, "mnist.train-images-idx3-ubyte.gz"),
                                data_set(place, "mnist.t10k-images-idx3-ubyte.gz")};
    const struct flags flags = {"128", "0.001", "1", NULL, false, NULL};
    if (!files.train || !files.test)
        skip();
    assert_true(train(place, files, "mlp:784-256-128-10", flags, "final.test.accuracy") > 0.92);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(imdb_pairs_of_words, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(generated_clicks, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(a_million_clicks, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(mnist, dp_place_setup, dp_place_teardown),
    };
    return cmocka_run_group_tests_name("larger data", tests, NULL, NULL);
}
