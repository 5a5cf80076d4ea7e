/* Goal    the words of a comparison's page claim what statistics.h shows, and no more; failures and what was not reached are said.
 * Method  comparisons made in memory; the page is written and searched. */
#include "tests/lib/test.h"

#include "deploy/compare/compare_page.h"
#include "deploy/compare/compare_words.h"
#include "tests/system/compare/comparison_bed.h"

#include <stdlib.h>
#include <string.h>

static void says(char *text, const char *what)
{
    assert_non_null(text);
    if (!strstr(text, what))
        fail_msg("'%s' is not in: %s", what, text);
    free(text);
}

static void says_not(char *text, const char *what)
{
    assert_non_null(text);
    if (strstr(text, what))
        fail_msg("'%s' is in: %s", what, text);
    free(text);
}

static const double by_first[] = {0.95, 0.95, 0.95, 0.97}, by_third[] = {0.5, 0.6, 0.95, 0.96},
                    never[] = {0.5, 0.6, 0.7, 0.8};

/* sync reaches it two seconds later with each seed; its last accuracy differs by nothing that is shown. */
static json_t *clear_case(void)
{
    json_t *root = bed_comparison(3);
    for (int s = 1; s <= 3; s++) {
        bed_add(root, "async", s, by_first, s == 1 ? 3 : 4, 100 + s);
        bed_add(root, "sync", s, by_third, s == 2 ? 3 : 4, 50 + s);
    }
    return root;
}

static void the_first_is_named_where_it_is_shown(void **state)
{
    (void)state;
    json_t *root = clear_case();
    says(
        dp_compare_words_target(root),
        "The target is accuracy 0.9000. async reached it after 1.00 [1.00, 1.00] seconds, before all others: "
        "the next, sync, took 3.00 [3.00, 3.00] times as many.");
    says(dp_compare_words_end(root), "No difference from async is shown for sync.");
    says(dp_compare_words_speed(root), "async trained 10.20");
    says(dp_compare_words_failed(root), "");
    json_decref(root);
}

/* A rate at the edge of those tried is said to be that. */
static void rates_and_what_they_leave_open(void **state)
{
    (void)state;
    json_t *root = clear_case(), *settings = json_object_get(root, "settings");
    json_t *modes = json_object_get(root, "modes");
    says(dp_compare_words_rates(root), "All modes have one learning rate");
    (void)json_object_set_new(settings, "rates", json_pack("[f, f, f]", 0.1, 0.001, 0.01));
    (void)json_object_set_new(json_array_get(modes, 0), "rate", json_real(0.01));
    (void)json_object_set_new(json_array_get(modes, 1), "rate", json_real(0.001));
    says(dp_compare_words_rates(root),
         "seeds other than those above. sync took the least or greatest rate that was tried");
    (void)json_object_set_new(json_array_get(modes, 0), "rate", json_real(0.1));
    says(dp_compare_words_rates(root), " async, sync each took the least or greatest rate");
    (void)json_object_set_new(json_array_get(modes, 0), "rate", json_null()); /* none was found */
    says_not(dp_compare_words_rates(root), "async");
    json_decref(root);
}

/* Both are reached by a sample of the first two: whose came sooner is chance. */
static void samples_that_are_far_apart_name_nobody(void **state)
{
    (void)state;
    json_t *root = clear_case();
    json_t *settings = json_object_get(root, "settings");
    (void)json_object_set_new(settings, "sample_every_s", json_real(0.5));
    says(dp_compare_words_target(root), "before all others");
    (void)json_object_set_new(settings, "sample_every_s", json_real(0.6));
    says_not(dp_compare_words_target(root), "before all others");
    says(dp_compare_words_target(root), "too far apart to tell who was first");
    json_decref(root);
}

static void workers_are_those_of_the_modes(void **state)
{
    (void)state;
    json_t *root = bed_comparison(3);
    says(dp_compare_words_what(root), "by 4 workers with 1 server");
    (void)json_object_set_new(json_array_get(json_object_get(root, "modes"), 1), "workers", json_integer(8));
    says(dp_compare_words_what(root), "by 4 to 8 workers with 1 server");
    json_decref(root);
}

static void a_small_difference_has_its_digits(void **state)
{
    (void)state;
    json_t *root = bed_comparison(3);
    for (int s = 1; s <= 3; s++) {
        const double one = 0.9 + 0.01 * s, other = one + 0.00002 + 0.000001 * s;
        bed_add(root, "async", s, &one, 1, 100);
        bed_add(root, "sync", s, &other, 1, 100);
    }
    says(dp_compare_words_end(root), "sync differs by 0.000022 [0.000020, 0.000024] from async.");
    json_decref(root);
}

static void nobody_is_first_where_nothing_is_shown(void **state)
{
    (void)state;
    json_t *root = bed_comparison(3);
    for (int s = 1; s <= 3; s++) {
        bed_add(root, "async", s, s == 1 ? by_third : by_first, 4, 100);
        bed_add(root, "sync", s, s == 2 ? by_third : by_first, 4, 100);
    }
    says(dp_compare_words_target(root), "whether it or sync is first is not shown");
    says_not(dp_compare_words_target(root), "before all others");
    json_decref(root);
}

static void what_was_not_reached_has_no_number(void **state)
{
    (void)state;
    json_t *root = bed_comparison(3);
    for (int s = 1; s <= 3; s++) {
        bed_add(root, "async", s, s == 1 ? never : by_first, 4, 100);
        bed_add(root, "sync", s, never, 4, 100);
    }
    says(dp_compare_words_target(root), "async reached it with 2 of 3 seeds only. sync did not reach it.");
    says_not(dp_compare_words_target(root),
             "reached it after"); /* of those that reached it alone, it would be too good */
    json_decref(root);
    root = bed_comparison(1);
    bed_add(root, "async", 1, never, 4, 100);
    bed_add(root, "sync", 1, never, 4, 100);
    says(dp_compare_words_target(root), "No mode reached it");
    says(dp_compare_words_what(root), "So few seeds show no difference");
    json_decref(root);
}

static void failures_are_said(void **state)
{
    (void)state;
    json_t *root = bed_comparison(3);
    for (int s = 1; s <= 3; s++)
        bed_add(root, "async", s, by_first, 4, 100);
    bed_add(root, "sync", 2, by_third, 4, 50);
    bed_fail(root, "sync", 1, "worker 2: the loss is nan");
    (void)json_object_set_new(root, "finished", json_false());
    says(dp_compare_words_failed(root), "This comparison is not finished: 5 of 6 runs have ended.");
    says(dp_compare_words_failed(root), "sync failed with 1 of 3 seeds: worker 2: the loss is nan.");
    says(dp_compare_words_failed(root), "of their other runs");
    (void)json_object_set_new(json_array_get(json_object_get(root, "runs"), 0), "error",
                              json_string("no sample"));
    says(dp_compare_words_failed(root), "async was trained, but not scored, with 1 of 3 seeds: no sample.");
    json_decref(root);
}

/* The first is before the next, but not before the third, whose runs are spread. */
static void the_first_is_before_all_or_none(void **state)
{
    (void)state;
    json_t *root = bed_comparison(3);
    (void)json_array_append_new(
        json_object_get(root, "modes"),
        json_pack("{s:s, s:s, s:s}", "name", "ssp:1", "consistency", "ssp:1", "work", "fixed"));
    static const double late[] = {0, 0, 0, 0, 0, 0, 0, 0, 0.99};
    for (int s = 1; s <= 3; s++) {
        bed_add(root, "async", s, by_first, 4, 100);
        bed_add(root, "sync", s, by_third, 4, 100);
        bed_add(root, "ssp:1", s, s == 1 ? late : by_first, s == 1 ? 9 : 4, 100);
    }
    says(dp_compare_words_target(root), "whether it or ssp:1 is first is not shown");
    json_decref(root);
}

static void the_limit_is_that_of_the_rule(void **state)
{
    (void)state;
    json_t *root = clear_case();
    json_t *report = json_object_get(json_array_get(json_object_get(root, "runs"), 1), "report");
    (void)json_object_set_new(report, "spent_s",
                              json_pack("{s:f, s:f}", "compute", 1.0, "waiting_rule", 3.0));
    (void)json_object_set_new(report, "dropped", json_pack("{s:f}", "examples", 204.0));
    says(dp_compare_words_limit(root, 1), "spent 75% of their time waiting for others.");
    says(dp_compare_words_limit(root, 1), "% of the examples were dropped");
    says_not(dp_compare_words_limit(root, 1), "slowest");
    json_t *run = json_array_get(json_object_get(root, "runs"), 1);
    (void)json_object_set_new(run, "status", json_string("failed")); /* what it used and lost is not told */
    says_not(dp_compare_words_limit(root, 1), "dropped");
    (void)json_object_set_new(run, "status", json_string("ok"));
    (void)json_object_set_new(json_object_get(root, "settings"), "straggler", json_string("3:10x"));
    says(dp_compare_words_limit(root, 1), "Each step waits for the slowest worker");
    says(dp_compare_words_limit(root, 0), "a fixed share of it");
    json_decref(root);
}

static void a_page_shows_all_of_it(void **state)
{
    (void)state;
    static const char *const texts[] = {"No one &lt;waits&gt;.",
                                        "before all others",
                                        "<td class=\"t\">sync</td>",
                                        "Every run",
                                        "not reached",
                                        "</html>"};
    json_t *root = clear_case();
    bed_fail(root, "async", 4, "a <b> & c");
    (void)json_object_set_new(json_object_get(json_object_get(root, "settings"), "target"), "value",
                              json_real(0.9));
    char *text = NULL;
    size_t size = 0;
    struct dp_comparison comparison = {.directory = "/x", .root = root};
    for (int reached = 1; reached >= 0; reached--) {
        FILE *to = open_memstream(&text, &size);
        struct dp_compare_page page = {
            .plots = {.to = to, .root = root, .no_plots = true}, .version = "1", .comparison = &comparison};
        if (!reached)
            (void)json_object_set_new(json_object_get(json_object_get(root, "settings"), "target"), "value",
                                      json_real(2));
        dp_compare_page_write(&page);
        assert_int_equal(fclose(to), 0);
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
            if ((strstr(text, texts[i]) != NULL) != (i == 1 ? reached : i == 4 ? !reached : 1))
                fail_msg("'%s', reached: %d", texts[i], reached);
        assert_null(strstr(text, "a <b>"));
        assert_null(strstr(text, "nan"));
        free(text);
    }
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_is_named_where_it_is_shown),
        cmocka_unit_test(nobody_is_first_where_nothing_is_shown),
        cmocka_unit_test(what_was_not_reached_has_no_number),
        cmocka_unit_test(rates_and_what_they_leave_open),
        cmocka_unit_test(samples_that_are_far_apart_name_nobody),
        cmocka_unit_test(workers_are_those_of_the_modes),
        cmocka_unit_test(a_small_difference_has_its_digits),
        cmocka_unit_test(failures_are_said),
        cmocka_unit_test(the_first_is_before_all_or_none),
        cmocka_unit_test(the_limit_is_that_of_the_rule),
        cmocka_unit_test(a_page_shows_all_of_it),
    };
    return cmocka_run_group_tests_name("compare_words", tests, NULL, NULL);
}
