/* Goal: a training ends when its goal is reached or its patience is over, by each metric in its direction, and not before; what
 * a model does not have is refused.
 * Method: series of figures with the epoch at which they should end; every byte length of a packed state. */
#include "tests/lib/test.h"
#include "worker/stop.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct dp_stop_rule rule_of(const char *goal, uint32_t patience, const char *metric)
{
    struct dp_cluster_training training = {.patience = patience};
    (void)snprintf(training.stop_at, sizeof training.stop_at, "%s", goal);
    (void)snprintf(training.patience_metric, sizeof training.patience_metric, "%s", metric);
    return dp_stop_rule_of(&training);
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
    (void)state;
    static const struct {
        const char *goal;
        uint32_t patience;
        const char *metric;
        double series[8];
        uint32_t end; /* 0: never */
        enum dp_stop_why why;
        uint32_t best_epoch;
    } cases[] = {
        {"auc:0.5", 0, "", {1, 4, 4.9, 5, 6}, 4, DP_STOP_REACHED, 4},
        {"accuracy:0.5", 0, "", {5, 4, 4, 4, 4}, 1, DP_STOP_REACHED, 1},
        {"hr@10:0.5", 0, "", {1, 2, 3, 4, 4.99, 1, 1, 1}, 0, DP_STOP_NO, 5},
        {"ndcg@10:0.3", 0, "", {1, 2, 3.5}, 3, DP_STOP_REACHED, 3},
        {"loss:5", 0, "", {1, 4, 4.9, 5, 6}, 4, DP_STOP_REACHED, 4},
        {"logloss:5", 0, "", {1, 6}, 2, DP_STOP_REACHED, 2},
        {"rmse:4", 0, "", {1, 5.9, 6}, 3, DP_STOP_REACHED, 3},
        {"", 1, "", {1, 2, 2, 3}, 3, DP_STOP_PATIENCE, 2}, /* as good is not better */
        {"", 2, "", {1, 2, 1, 3, 2, 2, 2}, 6, DP_STOP_PATIENCE, 4},
        {"", 3, "auc", {4, 3, 3, 3, 9}, 4, DP_STOP_PATIENCE, 1},
        {"", 3, "rmse", {1, 2, 3, 4, 5, 6, 7, 8}, 0, DP_STOP_NO, 8},
        {"auc:0.5", 2, "", {1, 0, 0, 5}, 3, DP_STOP_PATIENCE, 1},
        {"auc:0.5", 2, "loss", {1, 0, 5, 5}, 3, DP_STOP_REACHED, 3},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct dp_stop_rule rule = rule_of(cases[c].goal, cases[c].patience, cases[c].metric);
        struct dp_stop stop = {0};
        unsigned char bytes[DP_STOP_BYTES];
        char text[DP_STOP_TEXT_BYTES];
        uint32_t e = 0;
        while (e < 8 && stop.why == DP_STOP_NO) {
            struct dp_figures figures = figures_of(cases[c].series[e]);
            assert_int_equal(dp_stop_judge(&rule, &stop, ++e, &figures, NULL), DP_OK);
            struct dp_stop back = {0}; /* as another worker has it */
            dp_stop_pack(&stop, bytes);
            assert_int_equal(dp_stop_unpack(bytes, sizeof bytes, &back, NULL), DP_OK);
            assert_true(back.epoch == e && back.why == stop.why && back.value == stop.value &&
                        back.best == stop.best && back.best_epoch == stop.best_epoch);
            stop = back;
        }
        if (stop.why != cases[c].why || (cases[c].end && e != cases[c].end) ||
            stop.best_epoch != cases[c].best_epoch)
            fail_msg("case %zu: why %d after epoch %u, best %u", c, (int)stop.why, e, stop.best_epoch);
        dp_stop_text(&rule, &stop, 0, text);
        assert_true((text[0] != '\0') == (stop.why != DP_STOP_NO));
        assert_true(stop.why != DP_STOP_REACHED || strstr(text, dp_metric_name(rule.goal.metric)));
    }
}

static void what_a_model_does_not_have_is_refused(void **state)
{
    (void)state;
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
        struct dp_stop_set set;
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
                struct dp_stop_rule rule = patience ? rule_of("", 2, cases[c].metric) : rule_of(goal, 0, "");
                enum dp_status st = dp_stop_fits(&rule, models[m].labels, &models[m].set, &err);
                assert_int_equal(st, cases[c].fits >> m & 1 ? DP_OK : DP_ARGUMENT);
                assert_true(st == DP_OK || strstr(err.text, dp_metric_name(rule.metric)));
            }
}

static void no_figure_and_no_state_are_refused(void **state)
{
    (void)state;
    struct dp_stop_rule rule = rule_of("auc:0.5", 0, ""), none = rule_of("", 0, "");
    struct dp_figures figures = figures_of(1);
    struct dp_stop stop = {0};
    struct dp_error err = {0};
    unsigned char bytes[DP_STOP_BYTES + 1] = {0};
    figures.auc = (double)NAN;
    assert_int_equal(dp_stop_judge(&rule, &stop, 1, &figures, &err), DP_DATA);
    assert_non_null(strstr(err.text, "auc"));
    assert_int_equal(dp_stop_judge(&none, &stop, 1, &figures, &err), DP_OK);
    assert_false(dp_stop_looks(&none));
    dp_stop_pack(&stop, bytes);
    for (size_t size = 0; size <= sizeof bytes; size++)
        assert_int_equal(dp_stop_unpack(bytes, size, &stop, NULL), size == DP_STOP_BYTES ? DP_OK : DP_DATA);
    bytes[8] = 9;
    assert_int_equal(dp_stop_unpack(bytes, DP_STOP_BYTES, &stop, NULL), DP_DATA);
}

/* Figures that were lost may have been the best: patience counts from the next that are known. */
static void lost_figures_start_patience_anew(void **state)
{
    (void)state;
    const struct dp_stop_rule rule = rule_of("", 2, "");
    struct dp_stop kept = {0}, lost = {0};
    const struct dp_figures good = figures_of(5), bad = figures_of(1);
    assert_int_equal(dp_stop_judge(&rule, &kept, 1, &good, NULL), DP_OK);
    dp_stop_begun(&lost, 4);
    assert_true(lost.epoch == 3 && lost.judged == 0 && lost.why == DP_STOP_NO);
    assert_int_equal(dp_stop_learn(&lost, &kept, NULL), DP_OK);
    assert_true(lost.epoch == 3 && lost.judged == 1 && lost.best_epoch == 1 && lost.best == kept.best);
    for (uint32_t e = 4; e <= 6; e++) {
        unsigned char bytes[DP_STOP_BYTES];
        assert_int_equal(dp_stop_judge(&rule, &lost, e, &bad, NULL), DP_OK);
        assert_int_equal(lost.why, e == 6 ? DP_STOP_PATIENCE : DP_STOP_NO);
        assert_true(lost.best_epoch == 1 && lost.lost == 3 && lost.judged == e);
        dp_stop_pack(&lost, bytes);
        lost = (struct dp_stop){0};
        assert_int_equal(dp_stop_unpack(bytes, sizeof bytes, &lost, NULL), DP_OK);
    }
    struct dp_stop none = {0};
    dp_stop_begun(&none, 3);
    for (uint32_t e = 3; e <= 5; e++)
        assert_int_equal(dp_stop_judge(&rule, &none, e, e == 3 ? &good : &bad, NULL), DP_OK);
    assert_true(none.why == DP_STOP_PATIENCE && none.best_epoch == 3);
}

/* What is learned, in any order and twice, is the same; a verdict that was given is not forgotten for one that was concluded. */
static void what_is_known_does_not_grow_less(void **state)
{
    (void)state;
    const struct dp_stop_rule rule = rule_of("loss:7", 3, "");
    struct dp_stop said[4] = {{0}};
    for (uint32_t e = 1; e <= 3; e++) {
        const struct dp_figures figures = figures_of(e);
        said[e] = said[e - 1];
        assert_int_equal(dp_stop_judge(&rule, &said[e], e, &figures, NULL), DP_OK);
    }
    assert_int_equal(said[3].why, DP_STOP_REACHED);
    for (unsigned order = 0; order < 256; order++) {
        struct dp_stop state_ = {0};
        for (unsigned i = 0; i < 4; i++) {
            unsigned which = order >> 2 * i & 3;
            if (which == 0)
                dp_stop_begun(&state_, 3);
            else
                assert_int_equal(dp_stop_learn(&state_, &said[which], NULL), DP_OK);
        }
        assert_int_equal(dp_stop_learn(&state_, &said[3], NULL), DP_OK);
        assert_true(state_.epoch == 3 && state_.why == DP_STOP_REACHED && state_.judged == 3 &&
                    state_.best_epoch == 3 && state_.lost == 0);
    }
    struct dp_stop wrong = said[3];
    unsigned char bytes[DP_STOP_BYTES];
    wrong.judged = 4;
    dp_stop_pack(&wrong, bytes);
    assert_int_equal(dp_stop_unpack(bytes, sizeof bytes, &wrong, NULL), DP_DATA);
}

/* Not by turns one and the other, for ever. */
static void two_verdicts_on_an_epoch_are_an_error(void **state)
{
    (void)state;
    struct dp_error err = {0};
    struct dp_stop on = {.epoch = 4, .judged = 4, .value = 1};
    const struct dp_stop before = on, end = {.epoch = 4, .why = DP_STOP_PATIENCE, .judged = 4, .value = 2},
                         later = {.epoch = 5, .why = DP_STOP_REACHED, .judged = 5},
                         none = {.why = DP_STOP_NO};
    assert_int_equal(dp_stop_learn(&on, &none, &err), DP_OK);
    assert_int_equal(dp_stop_learn(&on, &end, &err), DP_DATA);
    assert_non_null(strstr(err.text, "two verdicts on epoch 4: 'go on' and 'patience is over'"));
    assert_true(on.epoch == before.epoch && on.why == before.why && on.value == before.value);
    assert_int_equal(dp_stop_learn(&on, &later, &err), DP_OK);
    assert_int_equal(dp_stop_learn(&on, &end, &err), DP_OK); /* of an epoch behind: it went on */
    assert_true(on.epoch == 5 && on.why == DP_STOP_REACHED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(series_end_where_they_should),
        cmocka_unit_test(what_a_model_does_not_have_is_refused),
        cmocka_unit_test(no_figure_and_no_state_are_refused),
        cmocka_unit_test(lost_figures_start_patience_anew),
        cmocka_unit_test(what_is_known_does_not_grow_less),
        cmocka_unit_test(two_verdicts_on_an_epoch_are_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
