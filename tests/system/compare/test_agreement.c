/* Goal    two comparisons agree where their intervals say so, and what they do not have in common is named.
 * Method  comparisons made in memory, one of them changed in one thing at a time. */
#include "tests/lib/test.h"

#include "deploy/compare/agreement.h"
#include "tests/system/compare/comparison_bed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *made(void)
{
    json_t *root = bed_comparison(3);
    for (int s = 1; s <= 3; s++) {
        const double async[] = {0.5, 0.95 + 0.001 * s}, sync[] = {0.5, 0.92 + 0.001 * s};
        bed_add(root, "async", s, async, 2, 100 + s);
        bed_add(root, "sync", s, sync, 2, 50 + s);
    }
    (void)json_object_set_new(
        root, "files", json_pack("[{s:s, s:s, s:s}]", "flag", "--train", "path", "a", "blake2b", "0f"));
    (void)json_object_set_new(root, "build", json_pack("{s:s}", "commit", "c1"));
    return root;
}

static char *told(const json_t *here, const json_t *there)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    dp_agreement_put(to, here, there);
    assert_int_equal(fclose(to), 0);
    return text;
}

/* Gives back both. */
static void says(json_t *here, json_t *there, const char *what)
{
    char *text = told(here, there);
    if (!strstr(text, what))
        fail_msg("'%s' is not in: %s", what, text);
    free(text);
    json_decref(here);
    json_decref(there);
}

static json_t *run_of(json_t *root, size_t run)
{
    return json_array_get(json_object_get(root, "runs"), run);
}

static void the_same_agrees(void **state)
{
    json_t *other = made(), *file = json_array_get(json_object_get(other, "files"), 0);
    (void)json_object_set_new(file, "path", json_string("elsewhere"));
    says(made(), json_incref(other), "10 of 10 results agree");
    says(made(), other, "Settings, data, build and machine are the same.");
}

static void what_differs_is_named(void **state)
{
    json_t *other = made();
    (void)json_object_set_new(json_array_get(json_object_get(other, "files"), 0), "blake2b",
                              json_string("1e"));
    says(made(), other, "  BLAKE2b of --train: 0f here, 1e there\n");
    other = made();
    (void)json_object_set_new(json_object_get(other, "settings"), "workers", json_integer(8));
    says(made(), other, "  workers: 4 here, 8 there\n");
    other = made();
    (void)json_object_set_new(json_object_get(other, "build"), "commit", json_string("c2\n"));
    says(made(), other, "  build commit: c1 here, c2? there\n");
    other = made();
    (void)json_object_set_new(json_object_get(json_object_get(run_of(other, 1), "report"), "settings"),
                              "rate", json_real(0.5));
    says(made(), other, "  sync rate: none here, 0.5 there\n");
    other = made();
    (void)json_array_remove(json_object_get(other, "modes"), 1);
    says(made(), other, "  mode: sync here, none there\n");
}

static void set_target(json_t *root, double value)
{
    (void)json_object_set_new(json_object_get(root, "settings"), "target",
                              json_pack("{s:s, s:f, s:s, s:f}", "metric", "accuracy", "value", value,
                                        "chosen", "automatic", "keeps", 0.99));
}

/* As a person reads it, and once where it is of several modes or of all. */
static void differences_are_plain(void **state)
{
    json_t *here = made(), *other = made();
    for (size_t r = 0; r < 2; r++)
        (void)json_object_set_new(json_object_get(json_object_get(run_of(other, r), "report"), "settings"),
                                  "batch", json_integer(8));
    says(json_incref(here), json_incref(other), "\n  async, sync batch: 10 here, 8 there\n");
    (void)json_object_set_new(json_object_get(here, "settings"), "batch", json_integer(10));
    (void)json_object_set_new(json_object_get(other, "settings"), "batch", json_integer(8));
    char *text = told(here, other);
    assert_non_null(strstr(text, "\n  batch: 10 here, 8 there\n"));
    assert_null(strstr(text, "sync batch"));
    free(text);
    (void)json_object_set_new(json_object_get(here, "settings"), "rates", json_pack("[f, f]", 0.01, 0.5));
    set_target(here, 0.8);
    set_target(other, 0.9);
    says(json_incref(here), json_incref(other), "\n  rates: 0.01 0.5 here, none there\n");
    says(here, other, "\n  target: accuracy 0.8 (automatic) here, accuracy 0.9 (automatic) there\n");
}

/* The other's, as it was chosen from other results. */
static void targets_that_were_chosen_are_one(void **state)
{
    json_t *here = made(), *there = made();
    set_target(here, 0.8);
    set_target(there, 0.9);
    says(json_incref(here), json_incref(there), "10 of 10 results agree");
    says(json_incref(here), json_incref(there),
         "Times and examples of both are to that of the other report: accuracy 0.9 (automatic).\n");
    (void)json_object_set_new(json_object_get(json_object_get(there, "settings"), "target"), "metric",
                              json_string("loss"));
    says(here, there, "6 of 6 results agree");
}

static void a_mean_outside_differs(void **state)
{
    json_t *other = made();
    for (size_t r = 1; r < 6; r += 2) /* sync's */
        (void)json_object_set_new(json_array_get(json_object_get(run_of(other, r), "samples"), 1), "accuracy",
                                  json_real(0.91 + 0.001 * (double)r));
    says(made(), json_incref(other), "9 of 10 results agree");
    says(made(), other, "  DIFFERS    sync, accuracy at the end: ");
}

static void a_divergence_on_one_side_differs(void **state)
{
    json_t *other = made();
    (void)json_object_set_new(run_of(other, 1), "diverged", json_true());
    says(made(), json_incref(other), "  DIFFERS    sync, diverged: 0 of 3 runs here, 1 of 3 there\n");
    says(json_incref(other), other, "  agrees     sync, diverged: 1 of 3 runs here, 1 of 3 there\n");
}

/* One seed says nothing of another; times to other targets are not compared. */
static void some_is_not_known(void **state)
{
    json_t *other = made();
    (void)json_object_set_new(json_object_get(other, "settings"), "seeds", json_pack("[i]", 1));
    says(made(), other, "0 of 0 results agree");
    other = made();
    (void)json_object_set_new(json_object_get(json_object_get(other, "settings"), "target"), "value",
                              json_real(0.8));
    says(made(), json_incref(other), "6 of 6 results agree");
    says(made(), other, "  not known  times and examples to the target: the targets differ: give both");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_agrees),        cmocka_unit_test(what_differs_is_named),
        cmocka_unit_test(differences_are_plain),  cmocka_unit_test(targets_that_were_chosen_are_one),
        cmocka_unit_test(a_mean_outside_differs), cmocka_unit_test(a_divergence_on_one_side_differs),
        cmocka_unit_test(some_is_not_known)};
    return cmocka_run_group_tests_name("agreement", tests, NULL, NULL);
}
