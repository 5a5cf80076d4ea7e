/* Goal    a figure that a report lacks, or has as another type, is nowhere; what the words say is what the report says.
 * Method  reports written by hand, read and put into words. */
#include "tests/lib/test.h"

#include "deploy/pages/page.h"
#include "deploy/pages/summary.h"
#include "deploy/pages/training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char place[] = "/tmp/dp_training_XXXXXX";
static char report[sizeof place + 16];

static int make_place(void **state)
{
    assert_non_null(mkdtemp(place));
    (void)snprintf(report, sizeof report, "%s/report.json", place);
    return 0;
}

static int remove_place(void **state)
{
    (void)unlink(report);
    return rmdir(place);
}

static enum dp_status read_text(const char *text, struct dp_training *training, struct dp_error *err)
{
    FILE *file = fopen(report, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    *err = (struct dp_error){0};
    return dp_training_read(place, training, err);
}

static char *summary_of(const char *text, char **warnings)
{
    struct dp_training training;
    struct dp_error err;
    assert_int_equal(read_text(text, &training, &err), DP_OK);
    char *summary = dp_page_text(dp_summary_put_text, &training);
    *warnings = dp_page_text(dp_summary_put_warnings, &training);
    dp_training_clear(&training);
    return summary;
}

static const char full[] =
    "{\"finished\": true, \"model\": \"mlp:4-2\", \"settings\": {\"workers\": 2, \"servers\": 1, "
    "\"consistency\": "
    "\"sync:1\", \"epochs\": 3, \"run\": 1}, \"data\": {\"examples\": 1200}, \"kept_epoch\": 2, \"epochs\": ["
    "{\"epoch\": 1, \"seconds\": 1, \"train_loss\": 0.5, \"validation\": {\"loss\": 0.4}},"
    "{\"epoch\": 2, \"seconds\": 2, \"train_loss\": 0.3, \"validation\": {\"loss\": 0.25}},"
    "{\"epoch\": 3, \"seconds\": 1, \"train_loss\": 0.2, \"validation\": {\"loss\": 0.35}}],"
    "\"final\": {\"test\": {\"loss\": 0.26, \"accuracy\": 0.875}}, "
    "\"throughput\": {\"examples_per_s\": 1234.4, \"seconds\": 2.9}, \"workers\": [{\"pushes\": 900}, "
    "{\"pushes\": 300}], "
    "\"dropped\": {\"pushes\": 75}, "
    "\"staleness\": {\"histogram\": [10, 20, 50, 19, 1]}, "
    "\"spent_s\": {\"compute\": 1, \"waiting_rule\": 6, \"pull\": 1, \"waiting_pull\": 1, \"waiting_new\": "
    "1, "
    "\"waiting\": 7, \"device_compute\": 99}}";

/* Planted: the sum of waits counted as a kind of its own; p99 as the last bucket. */
static void words_say_what_the_report_says(void **state)
{
    char *warnings, *text = summary_of(full, &warnings);
    assert_string_equal(
        text,
        "mlp:4-2 was trained for 3 epochs on 1,200 examples by 2 workers with 1 server, synchronously with 1 "
        "backup "
        "worker. The trained model, with the weights of epoch 2, reached accuracy 0.8750, loss 0.26000 on "
        "the test "
        "set. The best epoch by validation loss was epoch 2 (0.25000). The throughput was 1,234 examples/s "
        "over 2.9 s "
        "of training. The staleness of a push, the number of pushes of others applied between its pull and "
        "itself, "
        "was 2–3 at the median (p50) and 4–7 at p99. Of 1,200 pushes 75 came too late for their step and "
        "were dropped. It was bounded by waiting for other workers: 60% of the "
        "workers' time; next came the servers and the network (requests, waiting for rows and answers), "
        "20%.");
    assert_string_equal(warnings, "");
    free(text);
    free(warnings);
}

static void what_is_not_there_is_not_said(void **state)
{
    static const char *const cases[][3] = {
        {"{\"epochs\": []}", "A model was trained for 0 epochs. ",
         "This training is not finished: the report was written after 0 epochs. "},
        {"{\"finished\": true, \"epochs\": [7, null, {\"epoch\": \"x\", \"train_loss\": \"0.5\", "
         "\"seconds\": -1}], "
         "\"model\": 3, \"settings\": [], \"staleness\": {\"histogram\": [0, 0]}, \"spent_s\": {\"compute\": "
         "\"1\"}, "
         "\"throughput\": null, \"workers\": {}, \"final\": 1}",
         "A model was trained for 3 epochs. The trained model reached nothing that was measured. ",
         "How long 3 of the epochs took is not known, as after a store was restored; nothing is drawn over "
         "time. "},
        {"{\"finished\": false, \"ended\": \"failed\", \"error\": \"disk full\", \"settings\": {\"epochs\": "
         "9}, "
         "\"epochs\": [{\"train_loss\": 0.5, \"seconds\": 1}]}",
         "A model was trained for 1 epoch. After epoch 1 it reached loss 0.50000 on the training "
         "set. ",
         "This training is not finished: it failed after 1 of 9 epochs. disk full. "}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *warnings, *text = summary_of(cases[i][0], &warnings);
        assert_string_equal(text, cases[i][1]);
        assert_string_equal(warnings, cases[i][2]);
        free(text);
        free(warnings);
    }
}

/* A kind of time that this build does not know is in "other"; sums, the device's own clock and what is no time are in none. */
static void each_kind_of_time_has_its_place(void **state)
{
    static const double wanted[DP_SHARES] = {[DP_SHARE_COMPUTE] = 1,
                                             [DP_SHARE_REQUESTS] = 5,
                                             [DP_SHARE_RULE] = 4,
                                             [DP_SHARE_INJECTED] = 8,
                                             [DP_SHARE_OTHER] = 16.5};
    double seconds[DP_SHARES];
    json_t *one = json_loads(
        "{\"spent_s\": {\"compute\": 1, \"pull\": 2, \"push\": 3, \"waiting_rule\": 4, \"injected\": "
        "8, \"other\": 16, \"dreaming\": 0.5, \"waiting\": 4, \"device_compute\": 9, \"read\": -1, "
        "\"waiting_pull\": \"1\", \"waiting_push\": 1e300}}",
        0, NULL);
    assert_true(dp_training_shares(one, seconds));
    for (int k = 0; k < DP_SHARES; k++)
        assert_true(seconds[k] == wanted[k]);
    assert_false(dp_training_shares(NULL, seconds));
    json_decref(one);
}

static void what_is_known_of_the_origin_is_said(void **state)
{
    static const char *const cases[][2] = {
        {"{}", ""},
        {"{\"machine\": {\"cores\": \"x\", \"memory_bytes\": null}, \"version\": 3}", ""},
        {"{\"machine\": {\"cores\": 4}, \"began\": \"2026-01-01\"}", "begun 2026-01-01, 4 cores."},
        {"{\"version\": \"1.0\", \"machine\": {\"processor\": \"x%s\", \"memory_bytes\": 2147483648, "
         "\"system\": "
         "\"Linux\"}}",
         "Made with Downpour 1.0, on x%s, 2.0 GiB of memory, Linux."}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dp_training training = {.origin = json_loads(cases[i][0], 0, NULL)};
        char *text = dp_page_text(dp_summary_put_origin, training.origin);
        assert_string_equal(text, cases[i][1]);
        free(text);
        json_decref(training.origin);
    }
}

static void refused(const char *text, enum dp_status why, const char *part)
{
    struct dp_training training;
    struct dp_error err;
    assert_int_equal(read_text(text, &training, &err), why);
    assert_non_null(strstr(err.text, part));
    assert_non_null(strstr(err.text, place));
    assert_null(training.report);
}

static void what_is_no_report_is_refused(void **state)
{
    struct dp_training training;
    struct dp_error err = {0};
    refused("", DP_DATA, "is damaged (line 1");
    refused("{\"epochs\": [\n{\"epoch\": 1,", DP_DATA, "is damaged (line 2");
    refused("[1, 2]", DP_DATA, "no list of epochs");
    refused("{\"epochs\": 3}", DP_DATA, "no list of epochs");
    refused("{\"epochs\": [1e999]}", DP_DATA, "is damaged");
    assert_int_equal(unlink(report), 0);
    assert_int_equal(dp_training_read(place, &training, &err), DP_NOT_FOUND);
    assert_non_null(strstr(err.text, "there is no report in"));
    assert_int_equal(dp_training_read(report, &training, &err), DP_NOT_FOUND);
    assert_int_equal(dp_training_read("", &training, &err), DP_NOT_FOUND);
}

static void distributions_have_their_bounds(void **state)
{
    struct dp_training_histogram h;
    json_t *one = json_loads("{\"upper\": [0, 1, 3, 7, null], \"counts\": [1, 2, 3, 0, 4]}", 0, NULL),
           *shares = json_loads("{\"upper\": [0, 0.01, 0.1], \"counts\": [1, 2, 0]}", 0, NULL),
           *uneven = json_loads("{\"upper\": [0, 1], \"counts\": [1]}", 0, NULL);
    assert_true(dp_training_histogram(one, false, &h));
    assert_int_equal(h.count, 5);
    assert_string_equal(h.label[1], "1");
    assert_string_equal(h.label[2], "2–3");
    assert_string_equal(h.label[4], "8 or more");
    assert_string_equal(dp_training_quantile(&h, 0.1), "0");
    assert_string_equal(dp_training_quantile(&h, 0.5), "2–3");
    assert_string_equal(dp_training_quantile(&h, 0.99), "8 or more");
    assert_true(dp_training_histogram(shares, true, &h));
    assert_int_equal(h.count, 2);
    assert_string_equal(h.label[1], "0–1");
    assert_false(dp_training_histogram(uneven, false, &h));
    assert_false(dp_training_histogram(NULL, false, &h));
    json_decref(one);
    json_decref(shares);
    json_decref(uneven);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(words_say_what_the_report_says),
                                       cmocka_unit_test(what_is_not_there_is_not_said),
                                       cmocka_unit_test(each_kind_of_time_has_its_place),
                                       cmocka_unit_test(what_is_known_of_the_origin_is_said),
                                       cmocka_unit_test(what_is_no_report_is_refused),
                                       cmocka_unit_test(distributions_have_their_bounds)};
    return cmocka_run_group_tests_name("training", tests, make_place, remove_place);
}
