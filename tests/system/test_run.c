/* `downpour run` and `predict` as a user has them, on the digits: the report, going on, starting anew, the
 * scores. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLASSES 10
#define TEST    360u /* images of the test set */

static struct dp_process *run_digits(struct dp_place *place, const char *rate, const char *epochs,
                                     const char *extra)
{
    struct dp_process *run = dp_place_start(
        place, "downpour", "run", "--dir", dp_place_path(place, "run"), "--servers", "2", "--workers", "2",
        "--model", "mlp:64-64-10", "--train", DP_DIGITS_TRAIN, "--test", DP_DIGITS_TEST, "--scale", "0.0625",
        "--batch", "4", "--rate", "decay=cosine", "--rate", rate, "--epochs", epochs, extra, NULL);
    dp_place_ended(run, 0);
    return run;
}

static void servers_closed_cleanly(struct dp_place *place)
{
    for (int i = 0; i < 2; i++)
        assert_non_null(strstr(dp_place_read(place, dp_place_path(place, "run/log/server-%d.log", i), NULL),
                               "closed cleanly"));
}

static void learns_the_digits(void **state)
{
    struct dp_place *place = *state;
    struct dp_process *run = run_digits(place, "0.005", "12", NULL);
    const char *report = dp_place_path(place, "run/report.json");
    assert_true(dp_place_number(place, report, "final.test.accuracy") > 0.88);
    assert_true(dp_place_number(place, report, "final.test.examples") == TEST);
    assert_true(dp_place_number(place, report, "data.examples") == 1437);
    assert_true(dp_place_number(place, report, "settings.servers") == 2);
    assert_true(dp_place_number(place, report, "settings.shards") == 2);
    assert_true(dp_place_number(place, report, "settings.workers") == 2);
    assert_true(dp_place_number(place, report, "settings.batch") == 4);
    assert_true(fabs(dp_place_number(place, report, "settings.rate") - 0.005) < 1e-9);
    assert_true(dp_place_number(place, report, "settings.run") == 1);
    assert_true(dp_place_number(place, report, "epochs.11.epoch") == 12);
    assert_true(dp_place_number(place, report, "epochs.11.train_loss") <
                dp_place_number(place, report, "epochs.0.train_loss"));
    assert_true(dp_place_number(place, report, "epochs.0.test.loss") > 0);
    assert_true(dp_place_number(place, report, "throughput.examples_per_s") > 0);
    /* Each minibatch is pushed once: 360 of 4 in each epoch. */
    assert_true(dp_place_number(place, report, "staleness.pushes") == 12 * 360);
    assert_true(dp_place_number(place, report, "staleness.repeated") == 0);
    assert_true(dp_place_number(place, report, "staleness.mean") >= 0);
    assert_true(dp_place_number(place, report, "workers.0.examples") +
                    dp_place_number(place, report, "workers.1.examples") ==
                12 * 1437);
    dp_place_says(run, dp_place_text(place, "Test set: accuracy %.4f",
                                     dp_place_number(place, report, "final.test.accuracy")));
    dp_place_says(run, report);
    servers_closed_cleanly(place);
}

/* The class of the highest score in each line; scores of a line are probabilities. */
static uint32_t predicted(const char *text, int out[TEST])
{
    uint32_t lines = 0;
    for (char *at = (char *)(uintptr_t)text; *at;) {
        double sum = 0, best = -1;
        assert_true(lines < TEST);
        for (int c = 0; c < CLASSES; c++) {
            double score = strtod(at, &at);
            sum += score;
            if (score > best) {
                best = score;
                out[lines] = c;
            }
        }
        assert_true(fabs(sum - 1) < 1e-6);
        assert_int_equal(*at++, '\n');
        lines++;
    }
    return lines;
}

/* The lines in the opposite order. */
static char *turned(struct dp_place *place, const char *text, size_t size)
{
    char *out = (char *)(uintptr_t)dp_place_text(place, "%s", text), *to = out + size;
    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n") + 1;
        to -= len;
        memcpy(to, line, len);
        line += len;
    }
    return out;
}

static void predicts_in_the_files_order(void **state)
{
    struct dp_place *place = *state;
    int class[TEST];
    uint32_t right = 0;
    size_t size;
    (void)run_digits(place, "0.005", "3", NULL);
    const char *run = dp_place_path(place, "run"), *out = dp_place_path(place, "scores");
    (void)dp_place_try(place, 0, "downpour", "predict", "--from", run, "--data", DP_DIGITS_TEST, "--out",
                       out);
    const char *scores = dp_place_read(place, out, &size), *data = dp_place_read(place, DP_DIGITS_TEST, NULL);
    assert_int_equal(predicted(scores, class), TEST);
    for (uint32_t i = 0; i < TEST; i++) {
        right += strtol(data, NULL, 10) == class[i];
        data = strchr(data, '\n') + 1;
    }
    double accuracy = dp_place_number(place, dp_place_path(place, "run/report.json"), "final.test.accuracy");
    assert_true(fabs(accuracy - (double)right / TEST) < 1e-9);
    /* Opposite order in, opposite order out; to standard output. */
    size_t data_size;
    data = dp_place_read(place, DP_DIGITS_TEST, &data_size);
    const char *back = dp_place_file(place, "turned", turned(place, data, data_size), data_size);
    struct dp_process *predict = dp_place_try(place, 0, "downpour", "predict", "--from", run, "--data", back);
    assert_string_equal(dp_process_out(predict), turned(place, scores, size));
    /* Nothing was trained by it. */
    (void)dp_place_try(place, 0, "downpour", "predict", "--from", run, "--data", DP_DIGITS_TEST, "--out",
                       out);
    assert_string_equal(dp_place_read(place, out, NULL), scores);
}

static struct dp_process *try_more(struct dp_place *place, int code, const char *optimizer)
{
    return dp_place_try(place, code, "downpour", "run", "--dir", dp_place_path(place, "run"), "--model",
                        "mlp:64-64-10", "--train", DP_DIGITS_TRAIN, "--scale", "0.0625", "--epochs", "1",
                        "--optimizer", optimizer,
                        access(dp_place_path(place, "run/current"), F_OK) == 0 ? "--continue" : NULL);
}

/* The cluster file stays that of the run that the store is of. */
static void a_run_that_does_not_fit_its_store_spoils_nothing(void **state)
{
    struct dp_place *place = *state;
    const char *run = dp_place_path(place, "run"), *conf = dp_place_path(place, "run/cluster.conf");
    (void)try_more(place, 0, "sgd");
    const char *before = dp_place_read(place, conf, NULL);
    dp_place_says(try_more(place, 2, "adam"), "optimizer");
    assert_string_equal(dp_place_read(place, conf, NULL), before);
    (void)dp_place_try(place, 0, "downpour", "predict", "--from", run, "--data", DP_DIGITS_TEST);
    /* One that fits is written down. Number 2 was given to the one that did not, and is not given again. */
    dp_place_says(try_more(place, 0, "sgd"), "this is run 3");
    assert_string_not_equal(dp_place_read(place, conf, NULL), before);
    /* A command that was killed before it knew whether the store fits. */
    before = dp_place_read(place, conf, NULL);
    assert_int_equal(mkdir(dp_place_path(place, "run/runs/4"), 0777), 0);
    assert_int_equal(symlink("../1/store", dp_place_path(place, "run/runs/4/store")), 0);
    (void)dp_place_file(place, "run/runs/4/cluster.conf", "rubbish", 7);
    (void)dp_place_try(place, 0, "downpour", "predict", "--from", run, "--data", DP_DIGITS_TEST);
    (void)try_more(place, 2, "adam");
    assert_string_equal(dp_place_read(place, conf, NULL), before);
    assert_int_not_equal(access(dp_place_path(place, "run/runs/4"), F_OK), 0);
    (void)dp_place_try(place, 0, "downpour", "predict", "--from", run, "--data", DP_DIGITS_TEST);
}

static void two_runs_share_no_directory(void **state)
{
    struct dp_place *place = *state;
    const char *run = dp_place_path(place, "run");
    struct dp_process *first =
        dp_place_start(place, "downpour", "run", "--dir", run, "--model", "mlp:64-64-10", "--train",
                       DP_DIGITS_TRAIN, "--epochs", "100000", NULL);
    dp_place_awaits(first, "/100000 ");
    (void)dp_place_try(place, 2, "downpour", "run", "--dir", run, "--model", "mlp:64-64-10", "--train",
                       DP_DIGITS_TRAIN);
    (void)dp_place_try(place, 2, "downpour", "predict", "--from", run, "--data", DP_DIGITS_TEST);
    assert_int_equal(dp_process_wait(first, 0), DP_PROCESS_RUNS);
}

int main(void)
{
#define DP_RUN_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        DP_RUN_TEST(learns_the_digits),
        DP_RUN_TEST(predicts_in_the_files_order),
        DP_RUN_TEST(a_run_that_does_not_fit_its_store_spoils_nothing),
        DP_RUN_TEST(two_runs_share_no_directory),
    };
    return cmocka_run_group_tests_name("run", tests, NULL, NULL);
}
