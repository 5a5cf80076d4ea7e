/* Goal    the words of a comparison's page claim what claims.h shows, and no more; runs that did not end well come first, and what was not
 *         reached is said. The first sentence answers the question.
 * Method  comparisons made in memory; the page is written and searched. */
#include "tests/lib/test.h"

#include "deploy/compare/compare_page.h"
#include "deploy/compare/compare_words.h"
#include "deploy/pages/page.h"
#include "tests/system/compare/comparison_bed.h"

#include <stdlib.h>
#include <string.h>

/* What one of the functions writes of a comparison. */
static char *said(void (*put)(FILE *to, const void *claims), const json_t *root)
{
    struct dp_claims claims;
    struct dp_error err = {0};
    assert_int_equal(dp_claims_of(root, &claims, &err), DP_OK);
    char *text = dp_page_text(put, &claims);
    dp_claims_clear(&claims);
    return text;
}

static char *limit_of(const json_t *root, size_t mode)
{
    return dp_page_text(dp_compare_put_limit, &(struct dp_compare_limit){root, mode});
}

static char *page_of(const json_t *root)
{
    struct dp_compare_page page = {.directory = "/x"};
    struct dp_error err = {0};
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    struct dp_page_maker maker = {.to = to};
    assert_int_equal(dp_claims_of(root, &page.claims, &err), DP_OK);
    dp_compare_page_write(&maker, &page);
    dp_claims_clear(&page.claims);
    assert_int_equal(fclose(to), 0);
    return text;
}

static void holds(char *text, const char *what)
{
    assert_non_null(text);
    if (!strstr(text, what))
        fail_msg("'%s' is not in: %s", what, text);
    free(text);
}

static void lacks(char *text, const char *what)
{
    assert_non_null(text);
    if (strstr(text, what))
        fail_msg("'%s' is in: %s", what, text);
    free(text);
}

static void says(void (*put)(FILE *to, const void *claims), const json_t *root, const char *what)
{
    holds(said(put, root), what);
}

static void says_not(void (*put)(FILE *to, const void *claims), const json_t *root, const char *what)
{
    lacks(said(put, root), what);
}

static const double by_second[] = {0.5, 0.95, 0.95, 0.97}, by_fourth[] = {0.5, 0.6, 0.7, 0.95, 0.96},
                    never[] = {0.5, 0.6, 0.7, 0.8};

/* sync reaches it two seconds later with each seed; its last accuracy differs by nothing that is shown. */
static json_t *clear_case(void)
{
    json_t *root = bed_comparison(3);
    for (int s = 1; s <= 3; s++) {
        bed_add(root, "async", s, by_second, s == 1 ? 3 : 4, 100 + s);
        bed_add(root, "sync", s, by_fourth, s == 2 ? 4 : 5, 50 + s);
    }
    return root;
}

static void the_first_is_named_where_it_is_shown(void **state)
{
    json_t *root = clear_case();
    says(dp_compare_put_answer, root,
         "async reached accuracy 0.9 sooner than sync, 2.01 [1.50, 4.00] times as fast, and no difference at "
         "the end is shown (accuracy higher by 0.007 [");
    says(dp_compare_put_answer, root, "), at one rate for all modes.");
    says(dp_compare_put_target, root,
         "The target is accuracy 0.9. Seconds to it: 1.89 [1.00, 2.00] (async), 3.80 [3.00, 4.00] (sync). "
         "Examples to it: 189 [100, 200] (async), 380 [300, 400] (sync). sync needed 2.01 [1.50, 4.00] times "
         "as many "
         "examples as async.");
    says(dp_compare_put_end, root, "No difference from async at the end is shown for sync.");
    says(dp_compare_put_speed, root,
         "Applied examples a second: async 102 [100, 105]; sync 52 [50, 55], 0.51 [");
    says(dp_compare_put_failed, root, "");
    says(dp_compare_put_brackets, root, "for the 4 claims that this page could make (Holm's method)");
    json_decref(root);
}

/* A rate at the edge of those tried is said to be that. */
static void rates_and_what_they_leave_open(void **state)
{
    json_t *root = clear_case(), *settings = json_object_get(root, "settings");
    json_t *modes = json_object_get(root, "modes");
    says(dp_compare_put_rates, root, "All modes have one learning rate");
    (void)json_object_set_new(settings, "rates", json_pack("[f, f, f]", 0.1, 0.001, 0.01));
    (void)json_object_set_new(json_array_get(modes, 0), "rate", json_real(0.01));
    (void)json_object_set_new(json_array_get(modes, 1), "rate", json_real(0.001));
    says(dp_compare_put_rates, root,
         "seeds other than those above. sync took the least rate that was tried: a smaller one may suit it "
         "better (--lr-grid).");
    says(dp_compare_put_answer, root, " sync took the least rate that was tried");
    says_not(dp_compare_put_answer, root, "greatest");
    (void)json_object_set_new(json_array_get(modes, 0), "rate", json_real(0.1));
    says(dp_compare_put_answer, root,
         " async took the greatest rate that was tried: a greater one may suit it better (--lr-grid). sync "
         "took the least rate");
    (void)json_object_set_new(json_array_get(modes, 1), "rate", json_real(0.1));
    says(dp_compare_put_answer, root,
         " All modes took the greatest rate that was tried: a greater one may suit some better (--lr-grid).");
    (void)json_object_set_new(json_array_get(modes, 0), "rate", json_null()); /* none was found */
    says_not(dp_compare_put_rates, root, "async");
    (void)json_object_set_new(json_array_get(modes, 1), "settings", json_pack("{s:s}", "rate", "0.001"));
    (void)json_object_set_new(settings, "grid_share", json_real(0.2));
    says(dp_compare_put_rates, root, "Each mode without a rate in its name has the rate that ended best");
    says(dp_compare_put_rates, root, "scored on 20% of the training file");
    says_not(dp_compare_put_rates, root, "sync"); /* was not tried */
    (void)json_object_set_new(settings, "rates", json_array());
    says(dp_compare_put_rates, root, "Modes have the rates that were given for them.");
    json_decref(root);
}

/* At which rates, in the first sentence. */
static void the_race_is_said(void **state)
{
    json_t *root = clear_case(), *settings = json_object_get(root, "settings"),
           *modes = json_object_get(root, "modes");
    (void)json_object_set_new(settings, "rates", json_pack("[f, f, f]", 0.1, 0.001, 0.01));
    says(dp_compare_put_answer, root, "), each at the best of three rates.");
    (void)json_object_set_new(json_array_get(modes, 0), "settings", json_pack("{s:s}", "rate", "0.01"));
    says(dp_compare_put_answer, root, "), each at the best of three rates or at the rate given for it.");
    (void)json_object_set_new(settings, "rates", json_array());
    (void)json_object_set_new(json_array_get(modes, 0), "rate", json_real(0.01));
    says(dp_compare_put_answer, root, "), each at the rate given for it.");
    json_decref(root);
}

/* The same gap between samples, the same with each seed: no order, and no size of it. */
static void samples_that_are_far_apart_name_nobody(void **state)
{
    static const double just[] = {0.5, 0.905, 0.95, 0.97};
    json_t *root = bed_comparison(3);
    for (int s = 1; s <= 3; s++) {
        bed_add(root, "async", s, by_second, 4, 100);
        bed_add(root, "sync", s, just, 4, 100);
    }
    says(dp_compare_put_answer, root,
         "No difference between async and sync is shown, at one rate for all modes");
    says(dp_compare_put_answer, root,
         "The samples of the weights lie too far apart to say more about the time");
    says_not(dp_compare_put_answer, root, "times");
    says_not(dp_compare_put_target, root, "needed");
    json_decref(root);
}

/* The lower it is the better: the faster mode ended worse by its seeds, or it did not. */
static void a_metric_that_falls_is_read_as_one(void **state)
{
    for (int worse = 0; worse < 2; worse++) {
        json_t *root = bed_comparison(3), *settings = json_object_get(root, "settings");
        (void)json_object_set_new(settings, "metric", json_string("rmse"));
        (void)json_object_set_new(settings, "higher_is_better", json_false());
        (void)json_object_set_new(
            settings, "target",
            json_pack("{s:s, s:f, s:s}", "metric", "rmse", "value", 1.0, "chosen", "given"));
        for (int s = 1; s <= 3; s++) {
            const double soon[] = {1.5, 0.99, 0.9 + 0.1 * worse - 0.0001 * s},
                         late[] = {1.5, 1.4, 1.3, 0.99, 0.9 + 0.0001 * s};
            bed_add(root, "async", s, soon, 3, 100 + s);
            bed_add(root, "sync", s, late, 5, 50 + s);
        }
        for (size_t r = 0; r < 6; r++) {
            json_t *samples = json_object_get(json_array_get(json_object_get(root, "runs"), r), "samples"),
                   *sample;
            size_t i;
            json_array_foreach(samples, i, sample)(void)
                json_object_set(sample, "rmse", json_object_get(sample, "accuracy"));
        }
        says(dp_compare_put_answer, root, "async reached RMSE 1 sooner than sync, ");
        says(dp_compare_put_answer, root,
             worse ? " but ended worse (RMSE higher by 0.0996 ["
                   : " and ended no worse, within 0.00010 (RMSE lower by 0.00040 [-0.00010, 0.00090])");
        json_decref(root);
    }
}

static void workers_are_those_of_the_modes(void **state)
{
    json_t *root = bed_comparison(3);
    says(dp_compare_put_what, root, "by 4 workers with 1 server");
    (void)json_object_set_new(json_array_get(json_object_get(root, "modes"), 1), "workers", json_integer(8));
    says(dp_compare_put_what, root, "by 4 to 8 workers with 1 server");
    json_decref(root);
}

/* An interval that excludes 0 does not look as if it held it. */
static void a_small_difference_has_its_digits(void **state)
{
    json_t *root = bed_comparison(3);
    for (int s = 1; s <= 3; s++) {
        const double one = 0.9 + 0.01 * s, other = one + 0.00012 - 0.00001 * s;
        bed_add(root, "async", s, &one, 1, 100);
        bed_add(root, "sync", s, &other, 1, 100);
    }
    says(dp_compare_put_end, root, "sync is higher by 0.0001");
    says_not(dp_compare_put_end, root, "[0.0000,");
    json_decref(root);
}

static void nobody_is_first_where_nothing_is_shown(void **state)
{
    json_t *root = bed_comparison(3);
    for (int s = 1; s <= 3; s++) {
        bed_add(root, "async", s, s == 1 ? by_fourth : by_second, 4, 100 + s);
        bed_add(root, "sync", s, s == 2 ? by_fourth : by_second, 4, 100 - s);
    }
    says(dp_compare_put_answer, root,
         "No difference between async and sync is shown, at one rate for all modes: sync ended with accuracy "
         "different by 0.00 [");
    says(dp_compare_put_answer, root, " The times vary too much between seeds to be compared");
    says(dp_compare_put_answer, root,
         "With three seeds a difference of a factor of more than ten in time and about 0.17 in accuracy "
         "would have been seen in four of five comparisons.");
    says_not(dp_compare_put_answer, root, "sooner");
    json_decref(root);
}

static void what_was_not_reached_has_no_number(void **state)
{
    json_t *root = bed_comparison(3);
    for (int s = 1; s <= 3; s++) {
        bed_add(root, "async", s, s == 1 ? never : by_second, 4, 100);
        bed_add(root, "sync", s, never, 4, 100);
    }
    says(dp_compare_put_answer, root,
         "sync did not reach accuracy 0.9 with any of three seeds; async reached it with 2 of 3 seeds, "
         "which may be chance (Fisher's exact test, p = 0.4), at one rate for all modes.");
    says(dp_compare_put_target, root,
         "async reached it with 2 of 3 seeds. sync reached it with 0 of 3 seeds.");
    says_not(dp_compare_put_target, root,
             "Seconds"); /* of those that reached it alone, it would be too good */
    json_decref(root);
    root = bed_comparison(3);
    for (int s = 1; s <= 3; s++) {
        bed_add(root, "async", s, s == 1 ? never : by_second, 4, 100);
        bed_add(root, "sync", s, by_second, 4, 100);
    }
    says(dp_compare_put_answer, root,
         "async reached accuracy 0.9 with 2 of 3 seeds; sync reached it with all three, which may be chance");
    json_decref(root);
}

static void failures_are_said(void **state)
{
    json_t *root = bed_comparison(3);
    for (int s = 1; s <= 3; s++)
        bed_add(root, "async", s, by_second, 4, 100);
    bed_add(root, "sync", 2, by_fourth, 4, 50);
    bed_fail(root, "sync", 1, "worker 2: cannot connect");
    (void)json_object_set_new(root, "finished", json_false());
    says(dp_compare_put_failed, root,
         "sync failed with 1 of the 2 seeds that were tried: worker 2: cannot connect.");
    says(dp_compare_put_failed, root, "This comparison is not finished: 5 of 6 runs have ended.");
    json_t *first = json_array_get(json_object_get(root, "runs"), 0);
    (void)json_object_set_new(first, "error", json_string("no sample"));
    (void)json_object_set_new(first, "samples", json_array());
    says(dp_compare_put_failed, root, "async failed with 1 of 3 seeds: no sample.");
    says(dp_compare_put_answer, root, "");
    json_decref(root);
}

static void seeds_that_were_not_tried_are_said(void **state)
{
    static const double diverged[] = {0.5, NAN};
    json_t *root = bed_comparison(3);
    bed_add(root, "async", 1, diverged, 2, 100);
    bed_fail(root, "sync", 1, "x");
    says(dp_compare_put_failed, root,
         "async diverged with the one seed that was tried: its last weights are not finite. sync failed with "
         "the one seed that was tried: x. The other seeds were not tried.");
    (void)json_object_del(json_object_get(root, "settings"), "target");
    says(dp_compare_put_target, root, "No target is chosen, as no mode ended well with every seed");
    json_decref(root);
}

static json_t *three_modes(void)
{
    json_t *root = bed_comparison(3);
    (void)json_array_append_new(
        json_object_get(root, "modes"),
        json_pack("{s:s, s:s, s:s}", "name", "ssp:1", "consistency", "ssp:1", "work", "fixed"));
    return root;
}

/* The first is before the next, but not before the third, whose runs are spread. */
static void the_first_is_before_all_or_none(void **state)
{
    static const double late[] = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.99},
                        later[] = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.95};
    json_t *root = three_modes();
    for (int s = 1; s <= 3; s++) {
        bed_add(root, "async", s, by_second, 4, 100 + s);
        bed_add(root, "sync", s, by_fourth, 5, 100 - s);
        bed_add(root, "ssp:1", s, s == 1 ? late : by_second, s == 1 ? 9 : 4, 100 + s * s);
    }
    says(dp_compare_put_answer, root,
         "Which of async and ssp:1 reached accuracy 0.9 first is not shown; async was 2.01 [1.50, 4.00] "
         "times as fast as sync, at one rate for all modes.");
    says_not(dp_compare_put_answer, root, "before all others");
    json_decref(root);
    root = three_modes();
    for (int s = 1; s <= 3; s++) {
        bed_add(root, "async", s, by_fourth, 5, 100 + s);
        bed_add(root, "sync", s, by_second, 4, 100 - s);
        bed_add(root, "ssp:1", s, later, 7, 100 + s * s);
    }
    says(dp_compare_put_answer, root,
         "sync reached accuracy 0.9 before all others, 2.01 [1.50, 4.00] times as fast as async, the next, "
         "and 3.65 [3.00, 7.00] times as fast as ssp:1, the last");
    json_decref(root);
}

/* A mode that reached it with some seeds only is not left out of those that may be the first. */
static void counts_name_nobody(void **state)
{
    json_t *root = three_modes();
    for (int s = 1; s <= 3; s++) {
        bed_add(root, "async", s, by_second, 4, 100 + s);
        bed_add(root, "sync", s, s == 1 ? never : by_second, 4, 100 - s);
        bed_add(root, "ssp:1", s, never, 4, 100 + s * s);
    }
    says(dp_compare_put_answer, root,
         "Which of async and sync reached accuracy 0.9 first is not shown, at one rate for all modes.");
    says(dp_compare_put_answer, root, " ssp:1 did not reach it with any seed, which may be chance");
    json_decref(root);
}

/* What a mode was trained on stands next to its end. */
static void what_was_dropped_is_said(void **state)
{
    json_t *root = clear_case();
    for (size_t i = 1; i < 6; i += 2) {
        json_t *report = json_object_get(json_array_get(json_object_get(root, "runs"), i), "report");
        (void)json_object_set_new(report, "applied", json_pack("{s:i, s:i}", "examples", 75, "planned", 100));
        (void)json_object_set_new(report, "dropped", json_pack("{s:i, s:i}", "late", 20, "not_computed", 5));
    }
    says(dp_compare_put_end, root,
         "sync was trained on 75% of its examples: the gradients of 20.0% of its examples came too late, "
         "and those of 5.0% were not computed.");
    holds(limit_of(root, 1), "The gradients of 20.0% of its examples came too late");
    says_not(dp_compare_put_end, root, "async was trained");
    json_decref(root);
}

/* The metric counts the order of predictions alone, so it can be fine while their sizes are not. */
static void a_loss_far_above_the_constant_is_said(void **state)
{
    for (int above = 0; above < 2; above++) {
        json_t *root = clear_case(), *run;
        size_t i;
        json_array_foreach(json_object_get(root, "runs"), i, run)
        {
            json_t *samples = json_object_get(run, "samples");
            (void)json_object_set_new(
                json_object_get(run, "report"), "constant",
                json_pack("{s:f, s:f, s:s}", "accuracy", 0.1, "loss", 0.6931, "set", "test"));
            (void)json_object_set_new(json_array_get(samples, json_array_size(samples) - 1), "loss",
                                      json_real(i % 2 == 0 ? 0.3
                                                : above    ? 72552.0
                                                           : 0.8));
        }
        const char *wanted =
            " The loss of sync at the end (72,552) is worse than a constant prediction's (0.6931): "
            "its rate is too high.";
        if (above)
            says(dp_compare_put_answer, root, wanted);
        else
            says_not(dp_compare_put_answer, root, "constant");
        says_not(dp_compare_put_answer, root, "The loss of async");
        json_decref(root);
    }
}

/* Where no mode is shown to be the first, the ends are compared all the same. */
static void the_end_is_said_where_no_mode_is_first(void **state)
{
    static const double late[] = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.99};
    json_t *root = three_modes();
    for (int s = 1; s <= 3; s++) {
        const double one[] = {0.5, 0.95, 0.95, 0.97}, other[] = {0.5, 0.95, 0.95, 0.97 + 0.0001 * s};
        bed_add(root, "async", s, one, 4, 100 + s);
        bed_add(root, "sync", s, other, 4, 100 - s);
        bed_add(root, "ssp:1", s, s == 1 ? late : by_second, s == 1 ? 9 : 4, 100 + s * s);
    }
    says(dp_compare_put_answer, root,
         "sync ended no worse than async, within 0.00057 (accuracy higher by "
         "0.00020 [-0.00057, 0.00097]). No difference "
         "from async at the end is shown for ssp:1.");
    json_decref(root);
}

static void short_trainings_have_no_times(void **state)
{
    json_t *root = clear_case(), *run;
    size_t i;
    json_array_foreach(json_object_get(root, "runs"), i, run)(void) json_object_set_new(
        json_object_get(json_object_get(run, "report"), "throughput"), "seconds", json_real(0.2));
    says(dp_compare_put_answer, root,
         "These trainings are too short to compare times (0.2 s): use more data, epochs or --inject pace. No "
         "difference at the end is shown.");
    says_not(dp_compare_put_answer, root, "sooner");
    says_not(dp_compare_put_target, root, "Seconds");
    json_decref(root);
}

/* They differ by less than their spread, and the interval is of a few samples. */
static void few_samples_have_no_times(void **state)
{
    static const double third[] = {0.5, 0.6, 0.95, 0.96}, other[] = {0.5, 0.7, 0.89, 0.95};
    json_t *root = bed_comparison(5);
    for (int s = 1; s <= 5; s++) {
        bed_add(root, "async", s, s == 2 ? other : third, 4, 100 + s);
        bed_add(root, "sync", s, s == 1 ? other : third, 4, 100 - s);
    }
    says(dp_compare_put_answer, root, " With 4 samples a training times cannot be compared: take more");
    says_not(dp_compare_put_answer, root, "times as long");
    json_decref(root);
}

/* Four digits say nothing of a metric without a range. */
static void numbers_have_the_digits_that_count(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {1e-7, "0.000000100"}, {0.97, "0.9700"}, {12296555.03, "12,296,555"}, {0, "0.0000"}, {12.3, "12.30"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[DP_COMPARE_INTERVAL_BYTES];
        int digits = dp_compare_digits(DP_QUANTITY_METRIC, cases[i].value);
        assert_string_equal(dp_compare_number_text(cases[i].value, digits, text), cases[i].text);
    }
    const struct dp_interval large = {.n = 3, .mean = -12345678.9, .low = -20000000, .high = -1234567};
    char text[DP_COMPARE_INTERVAL_BYTES];
    assert_string_equal(dp_compare_by_text(&large, text), "lower by 12,345,679 [1,234,567, 20,000,000]");
}

static void the_limit_is_that_of_the_rule(void **state)
{
    json_t *root = clear_case();
    json_t *report = json_object_get(json_array_get(json_object_get(root, "runs"), 1), "report");
    (void)json_object_set_new(report, "spent_s",
                              json_pack("{s:f, s:f}", "compute", 1.0, "waiting_rule", 3.0));
    (void)json_object_set_new(report, "applied", json_pack("{s:i, s:i}", "examples", 75, "planned", 100));
    (void)json_object_set_new(report, "dropped", json_pack("{s:i, s:i}", "late", 0, "not_computed", 25));
    holds(limit_of(root, 1), "spent 75% of their time waiting for others.");
    holds(limit_of(root, 1), "The gradients of 25.0% of its examples were not computed.");
    lacks(limit_of(root, 1), "slowest");
    json_t *run = json_array_get(json_object_get(root, "runs"), 1);
    (void)json_object_set_new(run, "status", json_string("failed")); /* what it used and lost is not told */
    lacks(limit_of(root, 1), "not computed");
    (void)json_object_set_new(run, "status", json_string("ok"));
    (void)json_object_set_new(json_object_get(root, "settings"), "straggler", json_string("3:10x"));
    holds(limit_of(root, 1), "Each step waits for the slowest worker");
    holds(limit_of(root, 0), "a fixed share of it");
    json_decref(root);
}

static void a_page_shows_all_of_it(void **state)
{
    static const char *const texts[] = {"No one &lt;waits&gt;.",     "sooner than sync, ",
                                        "<td class=\"t\">sync</td>", "Every run",
                                        "not reached</td>",          "</html>"};
    json_t *root = clear_case();
    bed_fail(root, "async", 4, "a <b> & c");
    (void)json_object_set_new(json_object_get(json_object_get(root, "settings"), "target"), "value",
                              json_real(0.9));
    for (int reached = 1; reached >= 0; reached--) {
        if (!reached)
            (void)json_object_set_new(json_object_get(json_object_get(root, "settings"), "target"), "value",
                                      json_real(2));
        char *text = page_of(root);
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
            if ((strstr(text, texts[i]) != NULL) != (i == 1 ? reached : i == 4 ? !reached : 1))
                fail_msg("'%s', reached: %d", texts[i], reached);
        assert_null(strstr(text, "a <b>"));
        assert_null(strstr(text, "nan"));
        free(text);
    }
    json_decref(root);
}

/* Tries are scored on another set, which may have another metric. */
static void rates_have_the_metric_of_their_tries(void **state)
{
    json_t *root = clear_case(), *settings = json_object_get(root, "settings");
    (void)json_object_set_new(settings, "rates", json_pack("[f, f]", 0.1, 0.01));
    (void)json_object_set_new(settings, "grid_metric", json_string("hr@10"));
    holds(page_of(root), "<th>HR@10 at the end</th>");
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_is_named_where_it_is_shown),
        cmocka_unit_test(nobody_is_first_where_nothing_is_shown),
        cmocka_unit_test(what_was_not_reached_has_no_number),
        cmocka_unit_test(rates_and_what_they_leave_open),
        cmocka_unit_test(the_race_is_said),
        cmocka_unit_test(samples_that_are_far_apart_name_nobody),
        cmocka_unit_test(a_metric_that_falls_is_read_as_one),
        cmocka_unit_test(workers_are_those_of_the_modes),
        cmocka_unit_test(a_small_difference_has_its_digits),
        cmocka_unit_test(failures_are_said),
        cmocka_unit_test(seeds_that_were_not_tried_are_said),
        cmocka_unit_test(the_first_is_before_all_or_none),
        cmocka_unit_test(counts_name_nobody),
        cmocka_unit_test(what_was_dropped_is_said),
        cmocka_unit_test(a_loss_far_above_the_constant_is_said),
        cmocka_unit_test(the_end_is_said_where_no_mode_is_first),
        cmocka_unit_test(short_trainings_have_no_times),
        cmocka_unit_test(few_samples_have_no_times),
        cmocka_unit_test(numbers_have_the_digits_that_count),
        cmocka_unit_test(the_limit_is_that_of_the_rule),
        cmocka_unit_test(a_page_shows_all_of_it),
        cmocka_unit_test(rates_have_the_metric_of_their_tries),
    };
    return cmocka_run_group_tests_name("compare_words", tests, NULL, NULL);
}
