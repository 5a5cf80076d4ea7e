/* Each setting of a training reaches a sane result: optimizers, asynchrony, bf16, activations, losses. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A sanitizer has seen all there is to see in fewer. */
#define SLACK  (DP_PATIENCE > 1 ? 0.1 : 0)
#define EPOCHS (DP_PATIENCE > 1 ? "3" : "6")

/* Two workers on two servers; up to five more words. The last test figure of that name. */
static double train_digits(struct dp_place *place, const char *model, const char *rate, const char *a,
                           const char *b, const char *c, const char *d, const char *e)
{
    (void)dp_place_try(place, 0, "downpour", "run", "--dir", dp_place_path(place, "run"), "--fresh",
                       "--servers", "2", "--workers", "2", "--model", model, "--train", DP_DIGITS_TRAIN,
                       "--test", DP_DIGITS_TEST, "--scale", "0.0625", "--batch", "16", "--epochs", EPOCHS,
                       "--rate", rate, a, b, c, d, e);
    double accuracy = dp_place_number(place, dp_place_path(place, "run/report.json"), "final.test.accuracy");
    print_message("%s %s %s: accuracy %.4f\n", model, a ? a : "", b ? b : "", accuracy);
    return accuracy;
}

static void each_optimizer_learns(void **state)
{
    static const char *const settings[][2] = {{"sgd", "0.15"},   {"momentum", "0.03"}, {"adagrad", "0.03"},
                                              {"adam", "0.005"}, {"adamw", "0.005"},   {"ftrl", "0.15"}};
    struct dp_place *place = *state;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        double accuracy = train_digits(place, "mlp:64-64-10", settings[i][1], "--optimizer", settings[i][0],
                                       NULL, NULL, NULL);
        if (!(accuracy > 0.75 - SLACK))
            fail_msg("%s reached %f", settings[i][0], accuracy);
    }
}

static void fetches_and_pushes_now_and_then(void **state)
{
    struct dp_place *place = *state;
    double accuracy =
        train_digits(place, "mlp:64-64-10", "0.002", "--fetch-every", "4", "--push-every", "3", NULL);
    assert_true(accuracy > 0.7 - SLACK);
    /* 90 minibatches a pass: 45 of each worker, 15 groups of 3. */
    assert_true(dp_place_number(place, dp_place_path(place, "run/report.json"), "staleness.pushes") ==
                (DP_PATIENCE > 1 ? 3 : 6) * 30);
}

static void bf16_values_do(void **state)
{
    assert_true(train_digits(*state, "mlp:64-64-10", "0.003", "--bf16", NULL, NULL, NULL, NULL) >
                0.78 - SLACK);
}

/* One worker pushes four times for each pull, without overlap: 0, 1, 2 and 3 pushes of its own came in between, which changed all
 * rows of a dense model. 90 minibatches are 22 times four, and two. */
static void the_rate_is_divided_by_the_staleness(void **state)
{
    struct dp_place *place = *state;
    const char *report = dp_place_path(place, "run/report.json");
    (void)dp_place_try(place, 0, "downpour", "run", "--dir", dp_place_path(place, "run"), "--no-overlap",
                       "--model", "mlp:64-32-10", "--train", DP_DIGITS_TRAIN, "--scale", "0.0625", "--batch",
                       "16", "--epochs", "1", "--fetch-every", "4", "--rate-by-staleness");
    assert_true(fabs(dp_place_number(place, report, "staleness.mean") - (22 * 6 + 1) / 90.0) < 1e-6);
    assert_true(fabs(dp_place_number(place, report, "staleness.rate_divided_by") - (22 * 7 + 2) / 90.0) <
                1e-6);
    assert_true(fabs(dp_place_number(place, report, "staleness.changed") - (22 * 3 + 1) / 90.0) < 1e-6);
    assert_true(dp_place_number(place, report, "staleness.changed_histogram.counts.12") == 22 * 3 + 1);
}

static void rates_rise_and_fall(void **state)
{
    struct dp_place *place = *state;
    assert_true(train_digits(place, "mlp:64-64-10", "0.005", "--rate", "warmup=50,decay=linear", NULL, NULL,
                             NULL) > 0.78 - SLACK);
    assert_true(train_digits(place, "mlp:64-64-10", "0.005", "--rate", "decay=inverse-sqrt", NULL, NULL,
                             NULL) > 0.7 - SLACK);
}

static void other_activations_learn(void **state)
{
    struct dp_place *place = *state;
    assert_true(train_digits(place, "mlp:64-32-32-10,activation=tanh", "0.005", NULL, NULL, NULL, NULL,
                             NULL) > 0.78 - SLACK);
    assert_true(train_digits(place, "mlp:64-64-10,activation=sigmoid", "0.005", NULL, NULL, NULL, NULL,
                             NULL) > 0.7 - SLACK);
}

/* y = 2 x1 - x2 + 0.5, which a net without a hidden layer holds exactly. */
static void regression_finds_a_line(void **state)
{
    struct dp_place *place = *state;
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    for (int i = 0; i < 2000; i++) {
        double x1 = (i * 37 % 200) / 100.0 - 1, x2 = (i * 91 % 200) / 100.0 - 1;
        fprintf(file, "%.6f 1:%.6f 2:%.6f\n", 2 * x1 - x2 + 0.5, x1, x2);
    }
    assert_int_equal(fclose(file), 0);
    const char *data = dp_place_file(place, "line", text, size);
    free(text);
    (void)dp_place_try(place, 0, "downpour", "run", "--dir", dp_place_path(place, "run"), "--servers", "2",
                       "--workers", "2", "--model", "mlp:2-1,loss=squared", "--train", data, "--test", data,
                       "--batch", "16", "--epochs", "8", "--rate", "0.02");
    assert_true(dp_place_number(place, dp_place_path(place, "run/report.json"), "final.test.rmse") < 0.1);
    static const char two[] = "0 1:0 2:0\n0 1:1 2:-1\n";
    struct dp_process *predict =
        dp_place_try(place, 0, "downpour", "predict", "--from", dp_place_path(place, "run"), "--data",
                     dp_place_file(place, "two", two, strlen(two)));
    double at_origin = 0, at_corner = 0;
    assert_int_equal(sscanf(dp_process_out(predict), "%lf\n%lf\n", &at_origin, &at_corner), 2);
    assert_true(fabs(at_origin - 0.5) < 0.2);
    assert_true(fabs(at_corner - 3.5) < 0.3);
}

/* The loss of an epoch, each minibatch's before its step, and the pushes. */
static void one_epoch(struct dp_place *place, const char *batch, const char *rate, const char *accumulate,
                      double *loss, double *pushes)
{
    const char *report = dp_place_path(place, "run/report.json");
    (void)dp_place_try(place, 0, "downpour", "run", "--dir", dp_place_path(place, "run"), "--fresh",
                       "--no-overlap", "--model", "mlp:64-32-10", "--train", DP_DIGITS_TRAIN, "--scale",
                       "0.0625", "--epochs", "1", "--optimizer", "sgd", "--batch", batch, "--rate", rate,
                       "--accumulate", accumulate);
    *loss = dp_place_number(place, report, "epochs.0.train_loss");
    *pushes = dp_place_number(place, report, "staleness.pushes");
}

/* 1,437 digits: 90 minibatches of 16, pushed by fours, are 23 of 64. The last push holds two, the first of which is larger, so
 * the rows after it differ; the losses are those before. */
static void accumulated_minibatches_are_a_large_one(void **state)
{
    double loss[3], pushes[3];
    one_epoch(*state, "64", "0.2", "1", &loss[0], &pushes[0]);
    one_epoch(*state, "16", "0.05", "4", &loss[1], &pushes[1]);
    one_epoch(*state, "16", "0.05", "4", &loss[2], &pushes[2]);
    assert_true(pushes[0] == 23 && pushes[1] == 23);
    assert_true(fabs(loss[1] - loss[0]) < 1e-5 * loss[0]);
    assert_true(loss[2] == loss[1]);
}

/* The test loss after `epochs` of sgd, and the pushes. */
static double shared_loss(struct dp_place *place, const char *threads, const char *workers, const char *mode,
                          const char *epochs)
{
    const char *report = dp_place_path(place, "run/report.json");
    (void)dp_place_try(place, 0, "downpour", "run", "--dir", dp_place_path(place, "run"), "--fresh",
                       "--model", "mlp:64-32-10", "--train", DP_DIGITS_TRAIN, "--test", DP_DIGITS_TEST,
                       "--scale", "0.0625", "--batch", "16", "--optimizer", "sgd", "--rate", "0.02",
                       "--push-every", "15", "--fetch-every", "15", "--workers", workers, "--consistency",
                       mode, "--threads", threads, "--epochs", epochs);
    assert_true(dp_place_number(place, report, "settings.threads") == strtod(threads, NULL));
    /* 90 minibatches are 6 groups of 15. */
    assert_true(dp_place_number(place, report, "staleness.pushes") == 6 * strtod(epochs, NULL));
    return dp_place_number(place, report, "final.test.loss");
}

static void threads_reach_what_one_reaches(void **state)
{
    double one = shared_loss(*state, "1", "1", "async", EPOCHS);
    double three = shared_loss(*state, "3", "1", "async", EPOCHS);
    double both = shared_loss(*state, "2", "2", "ssp:0", EPOCHS);
    /* They train on the CPU; scores may come from anywhere. */
    (void)dp_place_try(*state, 0, "downpour", "predict", "--from", dp_place_path(*state, "run"), "--data",
                       DP_DIGITS_TEST, "--device", "auto");
    print_message("test loss of one thread %.4f, of three %.4f, of two in two workers %.4f\n", one, three,
                  both);
    assert_true(three < 1.1 * one && both < 1.3 * one);
}

static void settings_from_a_cluster_file(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = {.servers = 2, .epochs = 3, .training = "overlap = false; seed = 9;"};
    const char *conf = dp_place_conf(place, &cluster), *report = dp_place_path(place, "r.json");
    (void)dp_place_try(place, 0, "downpour", "run", "--cluster", conf, "--dir", dp_place_path(place, "run"),
                       "--epochs", "1", "--report", report);
    assert_true(dp_place_number(place, report, "settings.epochs") == 1);
    assert_true(dp_place_number(place, report, "settings.servers") == 2);
    assert_true(dp_place_number(place, report, "settings.seed") == 9);
}

int main(void)
{
#define DP_SETTINGS_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        DP_SETTINGS_TEST(each_optimizer_learns),
        DP_SETTINGS_TEST(fetches_and_pushes_now_and_then),
        DP_SETTINGS_TEST(bf16_values_do),
        DP_SETTINGS_TEST(the_rate_is_divided_by_the_staleness),
        DP_SETTINGS_TEST(rates_rise_and_fall),
        DP_SETTINGS_TEST(other_activations_learn),
        DP_SETTINGS_TEST(regression_finds_a_line),
        DP_SETTINGS_TEST(accumulated_minibatches_are_a_large_one),
        DP_SETTINGS_TEST(threads_reach_what_one_reaches),
        DP_SETTINGS_TEST(settings_from_a_cluster_file),
    };
    cmocka_set_test_filter(getenv("DP_TEST"));
    return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
