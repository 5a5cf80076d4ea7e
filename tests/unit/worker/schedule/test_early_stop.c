/* Goal: a training ends when its goal is reached or its patience is over, by each metric in its direction, and not before; what
 * a model does not have is refused.
 * Method: series of figures with the epoch at which they should end. */
#include "tests/lib/test.h"
#include "worker/schedule/early_stop.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct dp_early_stop_rule rule_of(const char *goal, uint32_t patience, const char *metric)
{
    struct dp_cluster_training training = {.patience = patience};
    (void)snprintf(training.stop_at, sizeof training.stop_at, "%s", goal);
    (void)snprintf(training.patience_metric, sizeof training.patience_metric, "%s", metric);
    return dp_early_stop_rule_of(&training);
}

/* All figures are the same number; the loss and rmse, which fall, 10 less it. */
static struct dp_figures figures_of(double value)
{
    return (struct dp_figures){.examples = 5,
                               .loss = 10 - value,
                               .rmse = 10 - value,
                               .accuracy = value / 10,
                               .auc = value / 10,
                               .hr10 = value / 10,
                               .ndcg10 = value / 10};
}

static void series_end_where_they_should(void **state)
{
    static const struct {
        const char *goal;
        uint32_t patience;
        const char *metric;
        double series[8];
        uint32_t end; /* 0: never */
        enum dp_early_stop_why why;
        uint32_t best_epoch;
    } cases[] = {
        {"auc:0.5", 0, "", {1, 4, 4.9, 5, 6}, 4, DP_EARLY_STOP_REACHED, 4},
        {"accuracy:0.5", 0, "", {5, 4, 4, 4, 4}, 1, DP_EARLY_STOP_REACHED, 1},
        {"hr@10:0.5", 0, "", {1, 2, 3, 4, 4.99, 1, 1, 1}, 0, DP_EARLY_STOP_NO, 5},
        {"ndcg@10:0.3", 0, "", {1, 2, 3.5}, 3, DP_EARLY_STOP_REACHED, 3},
        {"loss:5", 0, "", {1, 4, 4.9, 5, 6}, 4, DP_EARLY_STOP_REACHED, 4},
        {"logloss:5", 0, "", {1, 6}, 2, DP_EARLY_STOP_REACHED, 2},
        {"rmse:4", 0, "", {1, 5.9, 6}, 3, DP_EARLY_STOP_REACHED, 3},
        {"", 1, "", {1, 2, 2, 3}, 3, DP_EARLY_STOP_PATIENCE, 2}, /* as good is not better */
        {"", 2, "", {1, 2, 1, 3, 2, 2, 2}, 6, DP_EARLY_STOP_PATIENCE, 4},
        {"", 3, "auc", {4, 3, 3, 3, 9}, 4, DP_EARLY_STOP_PATIENCE, 1},
        {"", 3, "rmse", {1, 2, 3, 4, 5, 6, 7, 8}, 0, DP_EARLY_STOP_NO, 8},
        {"auc:0.5", 2, "", {1, 0, 0, 5}, 3, DP_EARLY_STOP_PATIENCE, 1},
        {"auc:0.5", 2, "loss", {1, 0, 5, 5}, 3, DP_EARLY_STOP_REACHED, 3},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct dp_early_stop_rule rule = rule_of(cases[c].goal, cases[c].patience, cases[c].metric);
        struct dp_early_stop stop = {0};
        char text[DP_EARLY_STOP_TEXT_BYTES];
        uint32_t e = 0;
        while (e < 8 && stop.why == DP_EARLY_STOP_NO) {
            struct dp_figures figures = figures_of(cases[c].series[e]);
            assert_int_equal(dp_early_stop_judge(&rule, &stop, &figures, NULL), DP_OK);
            assert_int_equal(stop.epoch, ++e);
        }
        if (stop.why != cases[c].why || (cases[c].end && e != cases[c].end) ||
            stop.best_epoch != cases[c].best_epoch)
            fail_msg("case %zu: why %d after epoch %u, best %u", c, (int)stop.why, e, stop.best_epoch);
        dp_early_stop_text(&rule, &stop, 0, text);
        assert_true((text[0] != '\0') == (stop.why != DP_EARLY_STOP_NO));
        assert_true(stop.why != DP_EARLY_STOP_REACHED || strstr(text, dp_metric_name(rule.goal.metric)));
    }
}

static void what_a_model_does_not_have_is_refused(void **state)
{
    static const struct {
        const char *metric;
        /* Bits: numbers, two classes, classes; then numbers and two classes with lists; ranked among sampled items, and among
         * all. */
        unsigned fits;
    } cases[] = {{"loss", 127},  {"logloss", 2 | 4 | 16 | 32}, {"accuracy", 2 | 4 | 16 | 32}, {"auc", 2 | 16},
                 {"rmse", 1},    {"hr@10", 8 | 16 | 32},       {"ndcg@10", 8 | 16 | 32},      {"recall", 64},
                 {"ndcg@20", 64}};
    static const struct {
        enum dp_labels labels;
        struct dp_early_stop_set set;
    } models[] = {{DP_LABELS_ANY, {0}},
                  {DP_LABELS_BINARY, {0}},
                  {DP_LABELS_CLASS, {0}},
                  {DP_LABELS_ANY, {.lists = 3}},
                  {DP_LABELS_BINARY, {.lists = 3}},
                  {DP_LABELS_BINARY, {.lists = 3, .ranked = true}},
                  {DP_LABELS_ANY, {.ranked = true, .all = true}}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (size_t m = 0; m < sizeof models / sizeof models[0]; m++)
            for (int patience = 0; patience < 2; patience++) {
                struct dp_error err = {0};
                char goal[32];
                (void)snprintf(goal, sizeof goal, "%s:0.5", cases[c].metric);
                struct dp_early_stop_rule rule =
                    patience ? rule_of("", 2, cases[c].metric) : rule_of(goal, 0, "");
                enum dp_status st = dp_early_stop_fits(&rule, models[m].labels, &models[m].set, &err);
                assert_int_equal(st, cases[c].fits >> m & 1 ? DP_OK : DP_ARGUMENT);
                assert_true(st == DP_OK || strstr(err.text, dp_metric_name(rule.metric)));
            }
}

static void no_figure_is_refused(void **state)
{
    struct dp_early_stop_rule rule = rule_of("auc:0.5", 0, ""), none = rule_of("", 0, "");
    struct dp_figures figures = figures_of(1);
    struct dp_early_stop stop = {0};
    struct dp_error err = {0};
    figures.auc = (double)NAN;
    assert_int_equal(dp_early_stop_judge(&rule, &stop, &figures, &err), DP_DATA);
    assert_non_null(strstr(err.text, "auc"));
    assert_int_equal(stop.epoch, 0);
    assert_int_equal(dp_early_stop_judge(&none, &stop, &figures, &err), DP_OK);
    assert_false(dp_early_stop_looks(&none));
}

/* What is not known may have been the best: patience counts from the next that is known. */
static void unknown_epochs_start_patience_anew(void **state)
{
    const struct dp_early_stop_rule rule = rule_of("", 2, "");
    struct dp_early_stop stop = {.epoch = 3};
    const struct dp_figures bad = figures_of(1);
    for (uint32_t e = 4; e <= 6; e++) {
        assert_int_equal(dp_early_stop_judge(&rule, &stop, &bad, NULL), DP_OK);
        assert_int_equal(stop.why, e == 6 ? DP_EARLY_STOP_PATIENCE : DP_EARLY_STOP_NO);
        assert_true(stop.epoch == e && stop.best_epoch == 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(series_end_where_they_should),
        cmocka_unit_test(what_a_model_does_not_have_is_refused),
        cmocka_unit_test(no_figure_is_refused),
        cmocka_unit_test(unknown_epochs_start_patience_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
