/* The public data sets of DOWNPOUR_DATA, few epochs: what is reached lies near the figures of a long
 * training. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A sanitizer has seen all there is to see in one. */
#define EPOCHS (DP_PATIENCE > 1 ? "1" : "2")

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

static double train(struct dp_place *place, const char *train, const char *test, const char *model,
                    const char *batch, const char *rate, const char *epochs, const char *figure)
{
    (void)dp_place_try(place, 0, "downpour", "run", "--dir", dp_place_path(place, "run"), "--servers", "2",
                       "--workers", "2", "--model", model, "--train", train, "--test", test, "--batch", batch,
                       "--rate", rate, "--epochs", epochs);
    double reached = dp_place_number(place, dp_place_path(place, "run/report.json"), figure);
    print_message("%s %.4f\n", figure, reached);
    return reached;
}

static void a9a(void **state)
{
    struct dp_place *place = *state;
    const char *file = data_set(place, "a9a.train.libsvm.zst"),
               *test = data_set(place, "a9a.test.libsvm.zst");
    if (!file || !test)
        skip();
    assert_true(train(place, file, test, "logistic", "64", "0.005", EPOCHS, "final.test.auc") > 0.895);
}

static void imdb_bow(void **state)
{
    struct dp_place *place = *state;
    const char *file = data_set(place, "imdb_bow.train.libsvm.zst"),
               *test = data_set(place, "imdb_bow.test.libsvm.zst");
    if (!file || !test)
        skip();
    assert_true(train(place, file, test, "logistic", "64", "0.003", "1", "final.test.auc") > 0.93);
    assert_true(dp_place_number(place, dp_place_path(place, "run/report.json"), "final.test.accuracy") >
                0.85);
}

static void mnist(void **state)
{
    struct dp_place *place = *state;
    const char *file = data_set(place, "mnist.train-images-idx3-ubyte.gz"),
               *test = data_set(place, "mnist.t10k-images-idx3-ubyte.gz");
    if (!file || !test)
        skip();
    assert_true(train(place, file, test, "mlp:784-256-128-10", "128", "0.001", EPOCHS,
                      "final.test.accuracy") > (DP_PATIENCE > 1 ? 0.92 : 0.95));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a9a, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(imdb_bow, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(mnist, dp_place_setup, dp_place_teardown),
    };
    return cmocka_run_group_tests_name("larger data", tests, NULL, NULL);
}
