/* Goal    what was decided comes back from the register whole, also of a training that is longer than a value; what contradicts itself is
 *         refused, never asserted.
 * Method  a training of many epochs, packed and read after each; every shorter length of a value; values with a number changed. */
#include "tests/lib/test.h"
#include "worker/coordinate/decision.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EPOCHS 3000u

static struct dp_figures figures_of(uint32_t epoch)
{
    const double none = (double)NAN;
    return (struct dp_figures){.examples = 360,
                               .loss = 1.0 / (3 + epoch),
                               .accuracy = 1 - 1.0 / (7 + epoch),
                               .auc = none,
                               .rmse = none,
                               .hr10 = none,
                               .ndcg10 = none};
}

static void a_long_training_comes_back(void **state)
{
    const struct dp_early_stop_rule rule = {.patience = 5};
    struct dp_decision mine, theirs;
    uint32_t from = 1;
    assert_int_equal(dp_decision_init(&mine, EPOCHS, 2, NULL), DP_OK);
    assert_int_equal(dp_decision_init(&theirs, EPOCHS, 2, NULL), DP_OK);
    for (uint32_t e = 1; e <= EPOCHS; e += 1 + e / 400) {
        struct dp_figures figures = figures_of(e);
        mine.state.epoch = e - 1;
        mine.resting = e;
        assert_int_equal(dp_early_stop_judge(&rule, &mine.state, &figures, NULL), DP_OK);
        mine.figures[e - 1] = (struct dp_tested){.known = true, .figures = figures};
        char *text = dp_decision_pack(&mine);
        assert_non_null(text);
        assert_true(strlen(text) <= DP_DECISION_BYTES);
        assert_int_equal(dp_decision_unpack(text, strlen(text), &theirs, NULL), DP_OK);
        free(text);
        assert_memory_equal(&theirs.state, &mine.state, sizeof mine.state);
        assert_true(theirs.resting == e && theirs.from == mine.from && theirs.from >= from);
        from = theirs.from;
        for (uint32_t k = 1; k <= e; k++) {
            const struct dp_tested *was = &mine.figures[k - 1], *is = &theirs.figures[k - 1];
            assert_int_equal(is->known, k >= from && was->known);
            assert_true(!is->known || (is->figures.loss == was->figures.loss &&
                                       is->figures.accuracy == was->figures.accuracy));
        }
    }
    assert_in_range(from, 2, EPOCHS - 200); /* the last hundreds are there */
    dp_decision_clear(&mine);
    dp_decision_clear(&theirs);
}

static void what_is_none_is_refused(void **state)
{
    static const char right[] =
        "{\"resting\":3,\"decider\":0,\"epoch\":2,\"why\":0,\"best_epoch\":1,\"kept\":0,"
        "\"from\":1,\"figures\":[null,null]}";
    /* What is put in place of what. */
    static const char *const wrong[][2] = {{"\"decider\":0", "\"decider\":2"},
                                           {"\"resting\":3", "\"resting\":9"},
                                           {"\"why\":0", "\"why\":3"},
                                           {"\"best_epoch\":1", "\"best_epoch\":3"},
                                           {"\"kept\":0", "\"kept\":3"},
                                           {"\"kept\":0", "\"kept\":-1"},
                                           {"\"from\":1", "\"test\":[null,null,null],\"from\":1"},
                                           {"\"from\":1", "\"from\":0"},
                                           {"\"from\":1", "\"from\":4"},
                                           {"[null,null]", "[1]"},
                                           {"\"epoch\":2", "\"epoch\":9"},
                                           {"\"epoch\":2,", ""},
                                           {right, "{}"},
                                           {right, "[1]"}};
    struct dp_decision d;
    struct dp_error err = {0};
    assert_int_equal(dp_decision_init(&d, 8, 2, NULL), DP_OK);
    assert_int_equal(dp_decision_unpack(right, strlen(right), &d, &err), DP_OK);
    for (size_t size = 0; size < strlen(right); size++)
        assert_int_equal(dp_decision_unpack(right, size, &d, &err), DP_DATA);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const char *at = strstr(right, wrong[i][0]);
        char text[200];
        assert_non_null(at);
        (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - right), right, wrong[i][1],
                       at + strlen(wrong[i][0]));
        if (dp_decision_unpack(text, strlen(text), &d, &err) != DP_DATA)
            fail_msg("%s is taken", text);
    }
    dp_decision_clear(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_long_training_comes_back),
                                       cmocka_unit_test(what_is_none_is_refused)};
    return cmocka_run_group_tests_name("decision", tests, NULL, NULL);
}
