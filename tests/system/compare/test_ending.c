/* Goal    a run that diverged is told from one that ended well and from one that failed, by its report and its samples.
 * Method  runs made in memory. */
#include "tests/lib/test.h"

#include "deploy/compare/comparison.h"
#include "tests/system/compare/comparison_bed.h"

#include <string.h>

/* Of a run with these samples. baseline NaN: its report has none. */
static enum dp_ending_sign sign_of(const char *metric, const double *values, size_t count, double baseline,
                                   const char *set, int first_examples)
{
    json_t *root = bed_comparison(1), *settings = json_object_get(root, "settings");
    (void)json_object_set_new(settings, "metric", json_string(metric));
    (void)json_object_set_new(settings, "higher_is_better", json_boolean(strcmp(metric, "rmse") != 0));
    bed_add(root, "async", 1, values, count, 10);
    json_t *run = json_array_get(json_object_get(root, "runs"), 0),
           *samples = json_object_get(run, "samples");
    for (size_t i = 0; i < count; i++)
        (void)json_object_set(json_array_get(samples, i), metric,
                              json_object_get(json_array_get(samples, i), "accuracy"));
    (void)json_object_set_new(json_array_get(samples, 0), "examples", json_integer(first_examples));
    if (!isnan(baseline))
        (void)json_object_set_new(
            json_object_get(run, "report"), "constant",
            json_pack("{s:f, s:s}", strcmp(metric, "hr@10") == 0 ? "hr10" : metric, baseline, "set", set));
    struct dp_ending ending = dp_ending_of(root, run);
    assert_int_equal(ending.outcome,
                     ending.sign == DP_ENDING_NONE ? DP_COMPARISON_GOOD : DP_COMPARISON_DIVERGED);
    assert_int_equal(dp_ending_is_whole(root, 0), ending.sign == DP_ENDING_NONE);
    json_decref(root);
    return ending.sign;
}

static void an_end_is_held_against_its_begin_and_a_constant(void **state)
{
    static const struct {
        const char *metric;
        double values[4];
        size_t count;
        double baseline;
        const char *set;
        int first_examples;
        enum dp_ending_sign sign;
    } cases[] = {
        {"accuracy", {0.1, 0.5, 0.9, 0.85}, 4, 0.11, "test", 0, DP_ENDING_NONE},
        {"accuracy", {0.1, 0.5, 0.9, 0.85}, 4, NAN, "", 0, DP_ENDING_NONE},
        {"accuracy", {0.1, 0.5, NAN}, 3, 0.11, "test", 0, DP_ENDING_NOT_FINITE},
        {"accuracy", {0.1, NAN, 0.5}, 3, 0.11, "test", 0, DP_ENDING_NONE},
        {"rmse", {3.7, 1e5, 6.7e10}, 3, 1.12, "test", 0, DP_ENDING_BASELINE},
        {"rmse", {3.7, 1.5, 1.14}, 3, 1.12, "test", 0, DP_ENDING_BASELINE},
        {"rmse", {3.7, 1.5, 1.14}, 3, 1.12, "training", 0, DP_ENDING_NONE}, /* of another set: within 5% */
        {"accuracy", {0.05, 0.3, 0.09}, 3, 0.1, "test", 0, DP_ENDING_BASELINE},
        {"hr@10", {0.05, 0.3, 0.09}, 3, 0.1, "test", 0, DP_ENDING_BASELINE},
        {"accuracy", {0.3, 0.5, 0.29}, 3, 0.1, "test", 0, DP_ENDING_BEGIN},
        {"accuracy", {0.3, 0.5, 0.29}, 3, 0.1, "test", 100, DP_ENDING_NONE}, /* it had been trained */
        {"accuracy", {0.1, 0.1, 0.1}, 3, 0.104, "training", 0, DP_ENDING_BEGIN},
        {"accuracy", {0.1, 0.1, 0.1}, 3, NAN, "", 0, DP_ENDING_BEGIN}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(sign_of(cases[i].metric, cases[i].values, cases[i].count, cases[i].baseline,
                                 cases[i].set, cases[i].first_examples),
                         cases[i].sign);
}

static void what_did_not_end_has_failed_or_says_that_it_diverged(void **state)
{
    static const double up[] = {0.1, 0.9};
    json_t *root = bed_comparison(3);
    bed_fail(root, "async", 1, "training has diverged in epoch 3");
    bed_fail(root, "async", 2, "no such file");
    bed_add(root, "async", 3, up, 2, 10);
    json_t *runs = json_object_get(root, "runs");
    (void)json_object_set_new(json_array_get(runs, 0), "diverged", json_true());
    assert_int_equal(dp_ending_of(root, json_array_get(runs, 0)).sign, DP_ENDING_STOPPED);
    assert_int_equal(dp_comparison_outcome(root, json_array_get(runs, 1)), DP_COMPARISON_FAILED);
    assert_int_equal(dp_comparison_outcome(root, NULL), DP_COMPARISON_FAILED);
    assert_int_equal(dp_ending_count(root, 0, DP_COMPARISON_DIVERGED), 1);
    assert_int_equal(dp_ending_count(root, 0, DP_COMPARISON_GOOD), 1);
    (void)json_object_set_new(json_array_get(runs, 2), "diverged",
                              json_true()); /* with samples that do not show it */
    assert_int_equal(dp_ending_count(root, 0, DP_COMPARISON_DIVERGED), 2);
    (void)json_object_del(json_array_get(runs, 2), "diverged");
    (void)json_object_set_new(json_array_get(runs, 2), "samples", json_array()); /* it was not scored */
    assert_int_equal(dp_ending_count(root, 0, DP_COMPARISON_FAILED), 2);
    assert_false(dp_ending_is_whole(root, 1)); /* it has no runs */
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_end_is_held_against_its_begin_and_a_constant),
        cmocka_unit_test(what_did_not_end_has_failed_or_says_that_it_diverged),
    };
    return cmocka_run_group_tests_name("ending", tests, NULL, NULL);
}
