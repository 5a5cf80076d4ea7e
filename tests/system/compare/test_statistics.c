/* Goal    quantiles and p values are those of the books; a mode's interval is on the scale of its quantity, and never narrower than the
 *         instrument; what is no comparison is refused.
 * Method  comparisons made in memory, beside numbers from SciPy 1.17 (stats.t, stats.norm, stats.fisher_exact). */
#include "tests/lib/test.h"

#include "deploy/compare/statistics.h"
#include "tests/system/compare/comparison_bed.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void near(double got, double right, double within)
{
    if (!(fabs(got - right) <= within))
        fail_msg("%.6f, not %.6f", got, right);
}

static void quantiles_are_those_of_the_tables(void **state)
{
    near(dp_student_quantile(0.05, 1), 12.706205, 1e-6);
    near(dp_student_quantile(0.05, 4), 2.776445, 1e-6);
    near(dp_student_quantile(0.05, 30), 2.042272, 1e-6);
    near(dp_student_quantile(0.05, 120), 1.979930, 1e-6);
    near(dp_student_quantile(0.05, 1000000), 1.959966, 1e-6);
    near(dp_student_quantile(0.0125, 4), 4.314656, 1e-6);
    near(dp_student_quantile(0.001, 2), 31.599055, 1e-6);
    near(dp_normal_quantile(0.05), 1.959964, 1e-6);
    near(dp_student_p(2, 1), 0.2951672, 1e-7);
    near(dp_student_p(-3.5, 4), 0.0248962, 1e-7);
    near(dp_student_p(0.1, 9), 0.9225364, 1e-7);
    near(dp_student_p(12, 60) * 1e17, 1.378632, 1e-6);
    near(dp_normal_p(-1.96), 0.0499958, 1e-7);
    for (size_t v = 1; v < 200; v = 2 * v + 1)
        for (double p = 0.9; p > 1e-6; p /= 3)
            near(dp_student_p(dp_student_quantile(p, v), v) / p, 1, 1e-9);
}

/* By scipy.stats.nct: where its tail above the quantile is 0.8. */
static void power_is_of_noncentral_t(void **state)
{
    near(dp_student_shift(0.05, 0.8, 4), 3.76106, 2e-4);
    near(dp_student_shift(0.0125, 0.8, 4), 5.53827, 2e-4);
    near(dp_student_shift(0.0125, 0.8, 2), 11.33809, 1e-3);
    near(dp_student_shift(0.05 / 22, 0.8, 9), 5.26676, 2e-4);
    near(dp_student_shift(0.05, 0.8, 98), 2.82941, 2e-4);
}

static void counts_are_compared_exactly(void **state)
{
    near(dp_fisher_p(5, 5, 0, 5), 0.0079365, 1e-7);
    near(dp_fisher_p(4, 5, 1, 5), 0.2063492, 1e-7);
    near(dp_fisher_p(4, 5, 5, 5), 1, 1e-12);
    near(dp_fisher_p(3, 3, 0, 3), 0.1, 1e-12);
    near(dp_fisher_p(1, 10, 7, 8), 0.0028795, 1e-7);
    near(dp_fisher_p(0, 3, 0, 5), 1, 1e-12);
}

static void an_interval_is_of_student(void **state)
{
    const double five[] = {3, 1, NAN, 2, 5, 4};
    struct dp_interval out = dp_interval_of(five, 6, 0.05);
    assert_int_equal(out.n, 5);
    near(out.mean, 3, 1e-12);
    near(out.sd, 1.581139, 1e-6);
    near(out.low, 1.036757, 1e-6);
    near(out.high, 4.963243, 1e-6);
    out = dp_interval_of(five, 1, 0.05);
    assert_int_equal(out.n, 1);
    near(out.mean, 3, 0);
    assert_true(isnan(out.low) && isnan(out.high) && isnan(out.sd));
    out = dp_interval_of(NULL, 0, 0.05);
    assert_int_equal(out.n, 0);
    assert_true(isnan(out.mean));
}

/* Three equal accuracies on 360 test examples: 1.96 standard errors of a logit are 1.96 / sqrt(360 * 0.9 * 0.1). */
/* Planted: two digits for all times. */
static void an_interval_of_noise_shows_its_size(void **state)
{
    char text[DP_COMPARE_INTERVAL_BYTES];
    const struct dp_interval noise = {.n = 2, .mean = 0.0003, .low = 1e-9, .high = 182372470.92},
                             some = {.n = 2, .mean = 0.03, .low = 0.025, .high = 0.0375};
    const enum dp_comparison_quantity seconds = DP_QUANTITY_SECONDS_TO;
    assert_string_equal(dp_compare_interval_text(&noise, dp_compare_digits(seconds, noise.mean), text),
                        "0.000300 [1e-09, 1.8e+08]");
    assert_string_equal(dp_compare_interval_text(&some, dp_compare_digits(seconds, some.mean), text),
                        "0.0300 [0.0250, 0.0375]");
    assert_int_equal(dp_compare_digits(seconds, 0.5), 2);
}

static void an_interval_is_not_narrower_than_the_test_set(void **state)
{
    static const double end[] = {0.9}, all[] = {1.0};
    json_t *root = bed_comparison(3);
    for (int s = 1; s <= 3; s++) {
        bed_add(root, "async", s, end, 1, 10);
        bed_add(root, "sync", s, all, 1, 10);
    }
    near(dp_statistics_mode(root, 0, DP_QUANTITY_METRIC).low, 0.9, 1e-12); /* it is not known */
    (void)json_object_set_new(json_array_get(json_object_get(root, "runs"), 0), "scored_examples",
                              json_integer(360));
    struct dp_interval own = dp_statistics_mode(root, 0, DP_QUANTITY_METRIC);
    near(own.low, 0.864467, 1e-6);
    near(own.high, 0.927004, 1e-6);
    near(dp_statistics_mode(root, 1, DP_QUANTITY_METRIC).mean, 1 - 0.5 / 360, 1e-12); /* half an example */
    json_decref(root);
}

static void a_target_is_reached_between_two_samples(void **state)
{
    static const double late[] = {0.5, NAN, 0.88, 0.92, 0.7}, never[] = {0.5, 0.89}, soon[] = {0.95, 0.96};
    json_t *root = bed_comparison(3);
    bed_add(root, "async", 1, late, 5, 1);
    bed_add(root, "async", 2, never, 2, 1);
    bed_fail(root, "async", 3, "x");
    bed_add(root, "sync", 1, soon, 2, 1);
    struct dp_interval own = dp_statistics_mode(root, 0, DP_QUANTITY_SECONDS_TO);
    assert_int_equal(own.n, 1);
    near(own.mean, 3.5, 1e-12);
    near(dp_statistics_mode(root, 0, DP_QUANTITY_EXAMPLES_TO).mean, 350, 1e-9);
    const json_t *run = dp_comparison_run_of(root, 0, 0);
    struct dp_comparison_span span = dp_comparison_span(root, run, DP_QUANTITY_SECONDS_TO);
    near(span.low, 3, 0);
    near(span.high, 4, 0);
    span = dp_comparison_span(root, dp_comparison_run_of(root, 1, 0), DP_QUANTITY_SECONDS_TO);
    near(span.low, 0, 0); /* by the first sample */
    near(span.high, 1, 0);
    assert_true(isnan(dp_comparison_value(root, dp_comparison_run_of(root, 0, 1), DP_QUANTITY_SECONDS_TO)));
    /* A metric that falls. */
    json_t *settings = json_object_get(root, "settings");
    (void)json_object_set_new(settings, "metric", json_string("loss"));
    (void)json_object_set_new(settings, "higher_is_better", json_false());
    (void)json_object_set_new(settings, "target", json_pack("{s:s, s:f}", "metric", "loss", "value", 0.75));
    near(dp_comparison_value(root, run, DP_QUANTITY_SECONDS_TO), 1.5, 1e-12);
    json_decref(root);
}

/* ---- reading */

static void refused(const char *text, enum dp_status right, const char *why)
{
    char dir[] = "/tmp/dp_comparison_XXXXXX", path[64];
    struct dp_comparison comparison;
    struct dp_error err;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/report.json", dir);
    FILE *file = text ? fopen(path, "w") : NULL;
    if (file) {
        (void)fputs(text, file);
        assert_int_equal(fclose(file), 0);
    }
    assert_int_equal(dp_comparison_read(dir, &comparison, &err), right);
    assert_null(comparison.root);
    if (!strstr(err.text, why))
        fail_msg("'%s' is not in: %s", why, err.text);
    (void)unlink(path);
    assert_int_equal(rmdir(dir), 0);
}

static void what_is_no_comparison_is_refused(void **state)
{
    refused(NULL, DP_NOT_FOUND, "cannot read");
    refused("{", DP_DATA, "line 1");
    refused("{}", DP_DATA, "not the report of a comparison");
    refused("{\"kind\": \"comparison\", \"format\": 2}", DP_DATA, "format 2");
    refused("{\"kind\": \"comparison\", \"format\": 1, \"settings\": {}, \"modes\": [], \"runs\": []}",
            DP_DATA, "damaged");
    refused("{\"kind\": \"comparison\", \"format\": 1, \"settings\": {}, \"modes\": [{}], \"runs\": []}",
            DP_DATA, "mode 1 has no name");
    refused("{\"kind\": \"comparison\", \"format\": 1, \"settings\": {}, \"modes\": [{\"name\": \"a\"}], "
            "\"runs\": [1]}",
            DP_DATA, "run 1 has no mode");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_those_of_the_tables),
        cmocka_unit_test(power_is_of_noncentral_t),
        cmocka_unit_test(counts_are_compared_exactly),
        cmocka_unit_test(an_interval_is_of_student),
        cmocka_unit_test(an_interval_of_noise_shows_its_size),
        cmocka_unit_test(an_interval_is_not_narrower_than_the_test_set),
        cmocka_unit_test(a_target_is_reached_between_two_samples),
        cmocka_unit_test(what_is_no_comparison_is_refused),
    };
    return cmocka_run_group_tests_name("statistics", tests, NULL, NULL);
}
