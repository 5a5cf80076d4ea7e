/* Goal    intervals are those of the books, differences are paired by seed, and nothing is shown that is not: too few seeds, an interval
 *         that holds 0, a target that was not reached, weights that diverged.
 * Method  comparisons made in memory, beside numbers worked out by hand (and by R's t.test). */
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
    (void)state;
    near(dp_student_t(1), 12.7062, 1e-4);
    near(dp_student_t(4), 2.7764, 1e-4);
    near(dp_student_t(30), 2.0423, 1e-4);
    near(dp_student_t(40), 2.0211, 2e-4); /* from here on by the expansion */
    near(dp_student_t(60), 2.0003, 2e-4);
    near(dp_student_t(120), 1.9799, 2e-4);
    near(dp_student_t(1000000), 1.95997, 1e-4);
}

static void an_interval_is_of_student(void **state)
{
    (void)state;
    /* t.test(c(1, 2, 3, 4, 5)): 1.036757 4.963243 */
    const double five[] = {3, 1, NAN, 2, 5, 4};
    struct dp_interval out = dp_interval_of(five, 6);
    assert_int_equal(out.n, 5);
    near(out.mean, 3, 1e-12);
    near(out.sd, 1.581139, 1e-6);
    near(out.low, 1.036757, 1e-4);
    near(out.high, 4.963243, 1e-4);
    out = dp_interval_of(five, 1);
    assert_int_equal(out.n, 1);
    near(out.mean, 3, 0);
    assert_true(isnan(out.low) && isnan(out.high) && isnan(out.sd));
    out = dp_interval_of(NULL, 0);
    assert_int_equal(out.n, 0);
    assert_true(isnan(out.mean));
}

/* What a seed does to both modes is not in their difference. */
static void differences_are_paired(void **state)
{
    (void)state;
    static const double async[3][1] = {{0.5}, {0.7}, {0.9}}, sync[3][1] = {{0.52}, {0.72}, {0.925}};
    json_t *root = bed_comparison(3);
    struct dp_interval ratio;
    for (int s = 0; s < 3; s++) { /* not in the order of the seeds */
        bed_add(root, "async", 3 - s, async[2 - s], 1, 100);
        bed_add(root, "sync", s + 1, sync[s], 1, 50);
    }
    struct dp_interval d = dp_statistics_pair(root, 1, 0, DP_QUANTITY_METRIC, &ratio);
    assert_int_equal(d.n, 3);
    near(d.mean, 0.0216667, 1e-6);
    /* sd 0.00288675, t 4.3027: half 0.0071711 */
    near(d.low, 0.0144956, 1e-6);
    near(d.high, 0.0288378, 1e-6);
    assert_true(dp_statistics_shows(&d));
    struct dp_interval own = dp_statistics_mode(root, 0, DP_QUANTITY_METRIC);
    assert_true(own.low < 0.3); /* of one mode alone it would be hidden */
    d = dp_statistics_pair(root, 1, 0, DP_QUANTITY_BATCHES_S, &ratio);
    near(ratio.mean, 0.5, 1e-9);
    near(d.mean, -5, 1e-9);
    json_decref(root);
}

static void too_little_shows_nothing(void **state)
{
    (void)state;
    static const double low[] = {0.1}, high[] = {0.9};
    struct dp_interval ratio, d;
    json_t *root = bed_comparison(2);
    for (int s = 1; s <= 2; s++) {
        bed_add(root, "async", s, low, 1, 1);
        bed_add(root, "sync", s, high, 1, 1);
    }
    d = dp_statistics_pair(root, 1, 0, DP_QUANTITY_METRIC, &ratio);
    near(d.low, 0.8, 1e-9); /* the interval does not hold 0 */
    assert_false(dp_statistics_shows(&d));
    json_decref(root);
    root = bed_comparison(3);
    for (int s = 1; s <= 3; s++) {
        bed_add(root, "async", s, s == 2 ? high : low, 1, 1);
        bed_add(root, "sync", s, s == 2 ? low : high, 1, 1);
    }
    d = dp_statistics_pair(root, 1, 0, DP_QUANTITY_METRIC, &ratio);
    assert_int_equal(d.n, 3);
    assert_false(dp_statistics_shows(&d)); /* it holds 0 */
    json_decref(root);
}

static void a_target_is_reached_by_a_sample(void **state)
{
    (void)state;
    static const double late[] = {0.5, NAN, 0.89, 0.9, 0.7}, never[] = {0.5, 0.89}, diverged[] = {0.95, NAN};
    struct dp_interval ratio;
    json_t *root = bed_comparison(3);
    bed_add(root, "async", 1, late, 5, 1);
    bed_add(root, "async", 2, never, 2, 1);
    bed_fail(root, "async", 3, "x");
    bed_add(root, "sync", 1, diverged, 2, 1);
    bed_add(root, "sync", 2, late, 5, 1);
    struct dp_interval own = dp_statistics_mode(root, 0, DP_QUANTITY_SECONDS_TO);
    assert_int_equal(own.n, 1);
    near(own.mean, 4, 0);
    near(dp_statistics_mode(root, 0, DP_QUANTITY_EXAMPLES_TO).mean, 400, 0);
    assert_int_equal(dp_statistics_mode(root, 1, DP_QUANTITY_METRIC).n, 1); /* not of the diverged one */
    assert_int_equal(dp_statistics_pair(root, 1, 0, DP_QUANTITY_SECONDS_TO, &ratio).n, 1);
    /* A metric that falls. */
    json_t *settings = json_object_get(root, "settings");
    (void)json_object_set_new(settings, "higher_is_better", json_false());
    (void)json_object_set_new(settings, "target", json_pack("{s:s, s:f}", "metric", "loss", "value", 0.5));
    near(dp_statistics_mode(root, 0, DP_QUANTITY_SECONDS_TO).mean, 2, 0);
    json_decref(root);
}

static void all_is_counted(void **state)
{
    (void)state;
    static const double good[] = {0.95};
    struct dp_error err;
    json_t *root = bed_comparison(2);
    bed_add(root, "async", 1, good, 1, 30);
    bed_add(root, "async", 2, good, 1, 50);
    bed_add(root, "sync", 1, good, 1, 20);
    bed_fail(root, "sync", 2, "x");
    assert_int_equal(dp_comparison_count(root, &err), DP_OK);
    const json_t *sync = json_array_get(json_object_get(root, "statistics"), 1);
    assert_int_equal(json_integer_value(json_object_get(sync, "runs")), 1);
    assert_int_equal(json_integer_value(json_object_get(sync, "failed")), 1);
    const json_t *to = json_object_get(sync, "seconds_to_target"),
                 *rate = json_object_get(sync, "minibatches_per_s");
    assert_int_equal(json_integer_value(json_object_get(to, "of")), 1);
    near(json_number_value(
             json_object_get(json_object_get(json_object_get(rate, "difference"), "ratio"), "mean")),
         2.0 / 3, 1e-9);
    json_decref(root);
}

/* Three pairs differ by two seconds each; a fourth run of sync did not reach the target. */
static void a_target_of_some_seeds_shows_nothing(void **state)
{
    (void)state;
    static const double soon[] = {0.95}, later[] = {0.5, 0.6, 0.95}, never[] = {0.5};
    for (int reached = 1; reached >= 0; reached--) {
        struct dp_error err;
        json_t *root = bed_comparison(4);
        for (int s = 1; s <= 4; s++) {
            bed_add(root, "async", s, soon, 1, 1);
            bed_add(root, "sync", s, s < 4 || reached ? later : never, s < 4 || reached ? 3 : 1, 1);
        }
        assert_int_equal(dp_comparison_count(root, &err), DP_OK);
        const json_t *sync = json_array_get(json_object_get(root, "statistics"), 1),
                     *difference = json_object_get(json_object_get(sync, "seconds_to_target"), "difference");
        assert_int_equal(json_integer_value(json_object_get(difference, "n")), 3 + reached);
        near(json_number_value(json_object_get(difference, "mean")), 2, 1e-9);
        assert_int_equal(json_is_true(json_object_get(difference, "shown")), reached);
        json_decref(root);
    }
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
    (void)state;
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
        cmocka_unit_test(an_interval_is_of_student),
        cmocka_unit_test(differences_are_paired),
        cmocka_unit_test(too_little_shows_nothing),
        cmocka_unit_test(a_target_is_reached_by_a_sample),
        cmocka_unit_test(all_is_counted),
        cmocka_unit_test(a_target_of_some_seeds_shows_nothing),
        cmocka_unit_test(what_is_no_comparison_is_refused),
    };
    return cmocka_run_group_tests_name("statistics", tests, NULL, NULL);
}
