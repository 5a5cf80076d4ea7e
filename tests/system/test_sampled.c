/* Goal    Samples of a training's weights, scored when it is over, say what its own workers would have said, in every mode; they count
 *         the examples that took effect; nobody waits for them, and what fails in them fails no run.
 * Method  Short runs on the digits, and on pairs of an own making. The last sample is of the weights that stay: its metrics are the
 *         report's, where the run evaluates the same set, or where an equal run does (sync: equal bits in each run). */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define USERS 60u
#define ITEMS 40u

#define DIGITS                                                                                               \
    "--model", "mlp:64-64-10", "--train", DP_DIGITS_TRAIN, "--scale", "0.0625", "--batch", "16", "--epochs", \
        "2", "--rate", "0.005", "--workers", "2", "--durability", "process", "--inject", "pace=2ms"
#define OFTEN "--sample-every", "40ms"

static json_t *load(struct dp_place *place, const char *path)
{
    json_t *root = json_loads(dp_place_read(place, path, NULL), 0, NULL);
    assert_non_null(root);
    return root;
}

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value))
        fail_msg("there is no number '%s'", key);
    return json_number_value(value);
}

/* A report has 10 digits. */
static void assert_same(double a, double b)
{
    if (!(fabs(a - b) <= 1e-9 * fmax(fabs(a), 1e-3)))
        fail_msg("%.15g and %.15g are not the same", a, b);
}

/* Each is later than the one before. Returns the last one. */
static const json_t *last_of(const json_t *root, double examples)
{
    const json_t *samples = json_object_get(root, "samples"), *before = json_array_get(samples, 0);
    size_t n = json_array_size(samples);
    assert_true(n >= 1);
    if (number(before, "pushes") == 0)
        assert_true(number(before, "examples") == 0 && number(before, "seconds") == 0);
    for (size_t i = 1; i < n; i++) {
        const json_t *now = json_array_get(samples, i);
        assert_true(number(now, "seconds") > number(before, "seconds"));
        assert_true(number(now, "examples") >= number(before, "examples"));
        assert_true(number(now, "pushes") >= number(before, "pushes"));
        before = now;
    }
    assert_true(number(before, "examples") == examples);
    return before;
}

static void metrics_are_the_runs(void **state)
{
    struct dp_place *place = *state;
    static const char *const modes[] = {"async", "ssp:1", "sync"};
    const char *run = dp_place_path(place, "run"), *report = dp_place_path(place, "run/report.json"),
               *json = dp_place_path(place, "run/samples.json");
    double loss = NAN;
    for (size_t m = 0; m < 3; m++) {
        (void)dp_place_try(place, 0, "downpour", "run", "--fresh", "--dir", run, DIGITS, OFTEN, "--servers",
                           "2", "--consistency", modes[m], "--test", DP_DIGITS_TEST);
        json_t *root = load(place, json);
        const json_t *last = last_of(root, 2 * dp_place_number(place, report, "data.examples"));
        loss = number(last, "loss");
        assert_same(loss, dp_place_number(place, report, "final.test.loss"));
        assert_same(number(last, "accuracy"), dp_place_number(place, report, "final.test.accuracy"));
        const json_t *first = json_array_get(json_object_get(root, "samples"), 0);
        assert_true(number(first, "pushes") > 0 || number(first, "loss") > 2 * loss);
        json_decref(root);
    }
    /* The same training without any evaluation: the same bits, in a last sample that is taken at its end. */
    (void)dp_place_try(place, 0, "downpour", "run", "--fresh", "--dir", run, DIGITS, "--servers", "2",
                       "--consistency", "sync", "--score", DP_DIGITS_TEST, "--sample-every", "3600s");
    json_t *root = load(place, json), *told = load(place, report);
    assert_null(json_object_get(told, "final"));
    const json_t *last = last_of(root, 2 * dp_place_number(place, report, "data.examples"));
    assert_true(number(last, "loss") == loss);
    json_decref(told);
    json_decref(root);
    struct stat is;
    assert_true(stat(dp_place_path(place, "run/samples"), &is) != 0);
}

static void dropped_examples_do_not_count(void **state)
{
    struct dp_place *place = *state;
    const char *run = dp_place_path(place, "run"), *report = dp_place_path(place, "run/report.json");
    (void)dp_place_try(place, 0, "downpour", "run", "--dir", run, DIGITS, OFTEN, "--consistency", "sync:1",
                       "--inject", "straggler=1:6ms", "--score", DP_DIGITS_TEST);
    double all = 2 * dp_place_number(place, report, "data.examples"),
           dropped = dp_place_number(place, report, "dropped.examples");
    assert_true(dropped > 0);
    json_t *root = load(place, dp_place_path(place, "run/samples.json"));
    (void)last_of(root, all - dropped);
    json_decref(root);
}

/* ---- by examples */

#define PUSH 120.0 /* examples: 12 pushes an epoch, more than 1/16 of it each */

static json_t *samples_at_pace(struct dp_place *place, const char *pace)
{
    const char *run = dp_place_path(place, "run");
    (void)dp_place_try(place, 0, "downpour", "run", "--fresh", "--dir", run, "--model", "mlp:64-64-10",
                       "--train", DP_DIGITS_TRAIN, "--scale", "0.0625", "--batch", "120", "--epochs", "1",
                       "--rate", "0.005", "--consistency", "sync", "--durability", "process", "--inject pace",
                       pace, "--sample-every", "50ms", "--score", DP_DIGITS_TEST);
    return load(place, dp_place_path(place, "run/samples.json"));
}

static bool is_by(const json_t *sample, const char *what)
{
    return strcmp(json_string_value(json_object_get(sample, "by")), what) == 0;
}

/* The sample by examples whose count is nearest. */
static const json_t *nearest(const json_t *root, double examples)
{
    const json_t *found = NULL, *samples = json_object_get(root, "samples");
    for (size_t i = 0; i < json_array_size(samples); i++) {
        const json_t *one = json_array_get(samples, i);
        if (is_by(one, "examples") &&
            (!found || fabs(number(one, "examples") - examples) < fabs(number(found, "examples") - examples)))
            found = one;
    }
    assert_non_null(found);
    return found;
}

/* Each sample by examples of one has one in the other within a push, and most have one of the same weights. */
static void assert_samples_in(const json_t *root, const json_t *other)
{
    const json_t *samples = json_object_get(root, "samples");
    size_t n = 0, same = 0;
    for (size_t i = 0; i < json_array_size(samples); i++) {
        const json_t *one = json_array_get(samples, i), *near = nearest(other, number(one, "examples"));
        if (!is_by(one, "examples"))
            continue;
        n++;
        assert_true(fabs(number(near, "examples") - number(one, "examples")) <= PUSH);
        if (number(near, "examples") == number(one, "examples")) {
            same++;
            assert_true(number(near, "loss") == number(one, "loss"));
        }
    }
    assert_true(n >= 8 && n <= 14 && 4 * same >= 3 * n);
}

/* Two trainings of the same bits, one ten times slower: the slow one has more samples by time, but not by examples. */
static void pace_changes_no_sample_by_examples(void **state)
{
    struct dp_place *place = *state;
    json_t *fast = samples_at_pace(place, "40ms"), *slow = samples_at_pace(place, "400ms");
    assert_true(json_array_size(json_object_get(slow, "samples")) >
                2 * json_array_size(json_object_get(fast, "samples")));
    assert_samples_in(fast, slow);
    assert_samples_in(slow, fast);
    json_decref(fast);
    json_decref(slow);
}

static const char *make_pairs(struct dp_place *place)
{
    char *text = malloc(USERS * 8 * 16), *at = text;
    assert_non_null(text);
    for (uint32_t u = 0; u < USERS; u++)
        for (uint32_t i = 0; i < 8; i++)
            at += snprintf(at, 16, "%u %u\n", u, (u % 4 * 10 + i * (1 + u % 3) + u / 7) % ITEMS);
    const char *path = dp_place_file(place, "pairs", text, (size_t)(at - text));
    free(text);
    return path;
}

static void held_out_pairs_are_scored(void **state)
{
    struct dp_place *place = *state;
    static const char *const models[] = {"mf:4", "neumf:4-8-4"};
    const char *pairs = make_pairs(place), *run = dp_place_path(place, "run"),
               *report = dp_place_path(place, "run/report.json");
    for (size_t m = 0; m < 2; m++) {
        (void)dp_place_try(place, 0, "downpour", "run", "--fresh", "--dir", run, "--model", models[m],
                           "--train", pairs, "--holdout", "leave-one-out", "--epochs", "3", "--rate", "0.02",
                           "--batch", "32", "--consistency", "sync", "--workers", "2", "--servers", "2",
                           "--durability", "process");
        double loss = dp_place_number(place, report, "final.test.loss"),
               hr = dp_place_number(place, report, "final.test.hr10"),
               recall = dp_place_number(place, report, "final.test.all_items.recall@20"),
               examples = dp_place_number(place, report, "data.examples");
        (void)dp_place_try(place, 0, "downpour", "run", "--fresh", "--dir", run, "--model", models[m],
                           "--train", pairs, "--holdout", "leave-one-out", "--epochs", "3", "--rate", "0.02",
                           "--batch", "32", "--consistency", "sync", "--workers", "2", "--servers", "2",
                           "--durability", "process", "--sample-every", "20ms", "--inject", "pace=2ms");
        json_t *root = load(place, dp_place_path(place, "run/samples.json")), *told = load(place, report);
        assert_null(json_object_get(told, "final"));
        assert_true(dp_place_number(place, report, "data.examples") == examples);
        const json_t *last = last_of(root, 3 * examples);
        assert_same(number(last, "loss"), loss);
        assert_same(number(last, "hr@10"), hr);
        assert_same(number(last, "recall@20"), recall);
        json_decref(told);
        json_decref(root);
    }
}

/* What an earlier run left is not taken for this one's. */
static void samples_are_of_their_run(void **state)
{
    struct dp_place *place = *state;
    struct stat is;
    const char *run = dp_place_path(place, "run"), *json = dp_place_path(place, "run/samples.json");
    (void)dp_place_try(place, 0, "downpour", "run", "--dir", run, DIGITS, OFTEN, "--score", DP_DIGITS_TEST);
    assert_int_equal(stat(json, &is), 0);
    (void)dp_place_try(place, 0, "downpour", "run", "--dir", run, DIGITS);
    assert_true(stat(json, &is) != 0);
}

static void what_fails_fails_no_run(void **state)
{
    struct dp_place *place = *state;
    const char *run = dp_place_path(place, "run"), *pairs = make_pairs(place);
    struct dp_process *said =
        dp_place_try(place, 0, "downpour", "run", "--dir", run, DIGITS, OFTEN, "--score", pairs);
    dp_place_says(said, "the weights are not sampled: ");
    json_t *root = load(place, dp_place_path(place, "run/samples.json"));
    assert_non_null(json_string_value(json_object_get(root, "error")));
    json_decref(root);
    dp_place_says(dp_place_try(place, 2, "downpour", "run", "--dir", run, "--fresh", DIGITS, OFTEN),
                  "--sample-every: there is nothing to score the samples on: give --score FILE");
    dp_place_says(dp_place_try(place, 2, "downpour", "run", "--dir", run, "--fresh", DIGITS, OFTEN, "--score",
                               "validation"),
                  "--score validation: there is no validation set");
    dp_place_says(dp_place_try(place, 2, "downpour", "run", "--dir", run, "--fresh", "--model",
                               "mlp:64-64-10", "--train", DP_DIGITS_TRAIN, "--score", DP_DIGITS_TEST),
                  "--score needs --sample-every TIME");
}

/* Servers and workers that somebody else starts: what they do is seen, and their end is no failure. */
static void observed_by_hand(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = {
        .servers = 2, .workers = 1, .timeout_ms = 3000, .training = "pace = \"2ms\";"};
    const char *conf = dp_place_conf(place, &cluster), *keys = dp_place_path(place, "keys"),
               *samples = dp_place_path(place, "samples"), *json = dp_place_path(place, "samples.json");
    (void)dp_place_try(place, 0, "downpour-worker", "--cluster", conf, "--score-keys", keys);
    struct dp_process *server[] = {dp_place_server(place, conf, 0), dp_place_server(place, conf, 1)};
    struct dp_process *observer = dp_place_start(place, "downpour-worker", "--cluster", conf, "--observe",
                                                 samples, "--keys", keys, "--sample-every", "30", NULL);
    dp_place_ended(dp_place_worker(place, conf, 0), 0);
    for (int s = 0; s < 2; s++)
        dp_place_stops_cleanly(server[s]);
    dp_place_ended(observer, 0);
    (void)dp_place_try(place, 0, "downpour-worker", "--cluster", conf, "--score-samples", samples, "--keys",
                       keys, "--out", json);
    json_t *root = load(place, json);
    assert_true(json_array_size(json_object_get(root, "samples")) >= 1);
    json_decref(root);
    /* Keys of another model. */
    struct dp_place_cluster other = {.file = "other", .model = "mlp:64-32-10"};
    dp_place_says(dp_place_try(place, 2, "downpour-worker", "--cluster", dp_place_conf(place, &other),
                               "--score-samples", samples, "--out", json),
                  "was made for another model");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(metrics_are_the_runs, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(dropped_examples_do_not_count, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(pace_changes_no_sample_by_examples, dp_place_setup,
                                        dp_place_teardown),
        cmocka_unit_test_setup_teardown(held_out_pairs_are_scored, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(samples_are_of_their_run, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(what_fails_fails_no_run, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(observed_by_hand, dp_place_setup, dp_place_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
