/* Goal    the record picks what is compared by what runs left: metric, target, the rate of --lr-grid; a run that diverged or failed is
 *         never the best.
 * Method  a plan of flags, and runs that are made here. */
#include "tests/lib/test.h"

#include "deploy/compare/compare_record.h"

#include <math.h>
#include <string.h>

static struct dp_compare_plan plan;
static struct dp_compare_record record;
static struct dp_error err;

static void open_with(const char *flag, const char *value)
{
    char *argv[] = {"--model",    "mlp:64-8-10",
                    "--train",    "tests/data/digits.train.libsvm.gz",
                    "--test",     "tests/data/digits.test.libsvm.gz",
                    "--modes",    "async,sync",
                    (char *)flag, (char *)value};
    bool help;
    plan = (struct dp_compare_plan){.modes = 0};
    assert_int_equal(dp_options_parse(dp_compare_command(), flag ? 10 : 8, argv, plan.values, &help, &err),
                     DP_OK);
    assert_int_equal(dp_compare_plan_make(&plan, &err), DP_OK);
    assert_int_equal(dp_compare_record_open(&plan, flag ? 10 : 8, argv, &record, &err), DP_OK);
}

/* NaN: a diverged one, whose metric is null. */
static json_t *run_of(const char *mode, int seed, const char *metric, double first, double last)
{
    json_t *run = json_pack("{s:s, s:i, s:s, s:s, s:[{s:f, s:i}, {s:f, s:i}]}", "mode", mode, "seed", seed,
                            "status", "ok", "error", "", "samples", "seconds", 1.0, "examples", 100,
                            "seconds", 2.0, "examples", 200);
    json_t *samples = json_object_get(run, "samples");
    (void)json_object_set_new(json_array_get(samples, 0), metric, json_real(first));
    (void)json_object_set_new(json_array_get(samples, 1), metric,
                              isnan(last) ? json_null() : json_real(last));
    return run;
}

static const json_t *settings(void)
{
    return json_object_get(record.root, "settings");
}

static void near(double got, double right)
{
    if (!(fabs(got - right) <= 1e-12))
        fail_msg("%.9f, not %.9f", got, right);
}

static double target(void)
{
    return json_number_value(json_object_get(json_object_get(settings(), "target"), "value"));
}

/* "rate" is among the settings only where all runs have one. */
static void a_setting_that_differs_is_not_common(void **state)
{
    for (int other = 0; other < 2; other++) {
        open_with(NULL, NULL);
        for (int i = 0; i < 2; i++) {
            json_t *run = run_of(i ? "sync" : "async", 1, "accuracy", 0.1, 0.9);
            (void)json_object_set_new(
                run, "report",
                json_pack("{s:{s:i, s:f}}", "settings", "batch", 8, "rate", i && other ? 0.3 : 0.1));
            dp_compare_record_add(&record, run);
        }
        assert_int_equal(dp_compare_record_finish(&record, &err), DP_OK);
        assert_int_equal(json_object_get(settings(), "rate") == NULL, other);
        assert_non_null(json_object_get(settings(), "batch"));
        dp_compare_record_close(&record);
    }
}

/* 95% of the way from what it began with to what the median seed of the best mode keeps. */
static void the_target_is_of_the_best_mode(void **state)
{
    open_with(NULL, NULL);
    dp_compare_record_add(&record, run_of("async", 1, "accuracy", 0.1, 0.9));
    dp_compare_record_add(&record, run_of("async", 2, "accuracy", 0.1, 0.2)); /* it went astray */
    dp_compare_record_add(&record, run_of("async", 3, "accuracy", 0.1, 0.95));
    dp_compare_record_add(&record, run_of("sync", 1, "accuracy", 0.1, 0.8));
    dp_compare_record_add(&record, run_of("sync", 3, "accuracy", 0.1, 0.7));
    dp_compare_record_add(&record, run_of("sync", 2, "accuracy", 0.1, 0.85));
    assert_int_equal(dp_compare_record_finish(&record, &err), DP_OK);
    assert_string_equal(dp_compare_record_metric(&record), "accuracy");
    assert_true(json_is_true(json_object_get(settings(), "higher_is_better")));
    near(target(), 0.1 + 0.95 * 0.8);
    const json_t *chosen = json_object_get(settings(), "target");
    assert_string_equal(json_string_value(json_object_get(chosen, "chosen")), "automatic");
    assert_string_equal(json_string_value(json_object_get(chosen, "of")), "async");
    near(json_number_value(json_object_get(chosen, "keeps")), 0.9);
    near(json_number_value(json_object_get(chosen, "baseline")), 0.1);
    assert_true(json_is_true(json_object_get(record.root, "finished")));
    dp_compare_record_close(&record);

    open_with(NULL, NULL);
    dp_compare_record_add(&record, run_of("async", 1, "rmse", 0.9, 0.5));
    dp_compare_record_add(&record, run_of("sync", 1, "rmse", 0.9, 0.4));
    dp_compare_record_add(&record, run_of("sync", 2, "rmse", 0.9, 0.7)); /* of two the worse */
    assert_int_equal(dp_compare_record_finish(&record, &err), DP_OK);
    assert_false(json_is_true(json_object_get(settings(), "higher_is_better")));
    near(target(), 0.9 - 0.95 * 0.4);
    dp_compare_record_close(&record);
}

/* A mode with a run that diverged sets no target while another one has none; and the report's baseline goes before the first sample. */
static void a_target_is_not_of_a_mode_that_diverged(void **state)
{
    open_with(NULL, NULL);
    json_t *run = run_of("sync", 1, "accuracy", 0.1, 0.8);
    (void)json_object_set_new(run, "report",
                              json_pack("{s:{s:f, s:s}}", "constant", "accuracy", 0.2, "set", "training"));
    dp_compare_record_add(&record, run_of("async", 1, "accuracy", 0.1, 0.99));
    dp_compare_record_add(&record, run_of("async", 2, "accuracy", 0.1, NAN));
    dp_compare_record_add(&record, run);
    assert_int_equal(dp_compare_record_finish(&record, &err), DP_OK);
    near(target(), 0.2 + 0.95 * 0.6);
    dp_compare_record_close(&record);
}

/* Between its last tenth of samples it fell back: what it keeps is the worst of them. */
static void a_target_is_kept(void **state)
{
    open_with(NULL, NULL);
    json_t *run = run_of("async", 1, "accuracy", 0.1, 0.2), *samples = json_object_get(run, "samples");
    for (int i = 3; i <= 20; i++)
        (void)json_array_append_new(samples, json_pack("{s:f, s:i, s:f}", "seconds", (double)i, "examples",
                                                       100 * i, "accuracy",
                                                       i == 18   ? 0.3
                                                       : i == 19 ? 0.7
                                                                 : 0.9));
    dp_compare_record_add(&record, run);
    assert_int_equal(dp_compare_record_finish(&record, &err), DP_OK);
    near(target(), 0.1 + 0.95 * 0.6);
    dp_compare_record_close(&record);
}

/* Of pairs that are ranked, accuracy says next to nothing: most are negatives. */
static void ranks_come_before_accuracy(void **state)
{
    json_t *run = run_of("async", 1, "accuracy", 0.9, 0.95);
    json_t *samples = json_object_get(run, "samples");
    for (size_t i = 0; i < 2; i++)
        (void)json_object_set_new(json_array_get(samples, i), "hr@10", json_real(0.3));
    open_with(NULL, NULL);
    dp_compare_record_add(&record, run);
    assert_string_equal(dp_compare_record_metric(&record), "hr@10");
    dp_compare_record_close(&record);
}

static void a_given_target_stays(void **state)
{
    open_with("--target", "loss:0.25");
    dp_compare_record_add(&record, run_of("async", 1, "accuracy", 0.5, 0.9));
    assert_string_equal(dp_compare_record_metric(&record), "loss");
    assert_false(json_is_true(json_object_get(settings(), "higher_is_better")));
    assert_int_equal(dp_compare_record_finish(&record, &err), DP_OK);
    assert_true(target() == 0.25);
    dp_compare_record_close(&record);
}

/* Its last sample is better than all others: the run failed all the same, as one of another seed did. */
static void a_failed_run_has_no_end(void **state)
{
    json_t *failed = run_of("async", 2, "auc", 0.5, 0.99);
    (void)json_object_set_new(failed, "status", json_string("failed"));
    open_with(NULL, NULL);
    assert_true(isnan(dp_compare_record_end(&record, failed)));
    assert_null(dp_compare_record_metric(&record));
    dp_compare_record_add(&record, failed);
    dp_compare_record_add(&record, run_of("async", 1, "accuracy", 0.5, 0.9));
    assert_int_equal(dp_compare_record_finish(&record, &err), DP_OK);
    assert_false(
        json_is_object(json_object_get(settings(), "target"))); /* no mode ended well with every seed */
    dp_compare_record_close(&record);
}

static void add_try(size_t mode, const char *rate, int seed, double end)
{
    json_t *run = run_of("async", seed, "accuracy", 0.1, end);
    dp_compare_record_add_try(&record, mode, rate, run);
    json_decref(run);
}

static void each_mode_gets_its_best_rate(void **state)
{
    open_with("--lr-grid", "0.1,0.01,1");
    add_try(0, "0.1", 1001, 0.9);
    add_try(0, "0.01", 1001, 0.7);
    add_try(0, "1", 1001, 0.99);
    add_try(0, "1", 1002, NAN); /* it diverges on one seed */
    add_try(0, "0.1", 1002, 0.6);
    add_try(0, "0.01", 1002, 0.85);
    assert_string_equal(dp_compare_record_choose(&record, &plan, 0), "0.01");
    assert_true(json_number_value(json_object_get(json_array_get(json_object_get(record.root, "modes"), 0),
                                                  "rate")) == 0.01);
    for (int r = 0; r < 3; r++)
        add_try(1, plan.rate[r], 1001, NAN);
    assert_null(dp_compare_record_choose(&record, &plan, 1));
    dp_compare_record_close(&record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_setting_that_differs_is_not_common),
        cmocka_unit_test(the_target_is_of_the_best_mode),
        cmocka_unit_test(a_target_is_not_of_a_mode_that_diverged),
        cmocka_unit_test(a_target_is_kept),
        cmocka_unit_test(ranks_come_before_accuracy),
        cmocka_unit_test(a_given_target_stays),
        cmocka_unit_test(a_failed_run_has_no_end),
        cmocka_unit_test(each_mode_gets_its_best_rate),
    };
    return cmocka_run_group_tests_name("compare_record", tests, NULL, NULL);
}
