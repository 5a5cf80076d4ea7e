/* Goal    a training that has diverged is said to have, by its report and in words that name the cause and remedies; no other is.
 * Method  the losses of a test set and of the training, by epoch, as a report holds them.
 * Planted: noise that is fitted, slow learning and small losses that waver count as divergence; a rate per worker of one worker. */
#include "tests/lib/test.h"
#include "worker/telemetry/advice.h"
#include "worker/telemetry/divergence.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EPOCHS  6
#define WORKERS 8

struct run {
    double test[EPOCHS], train[EPOCHS]; /* end with 0 */
    double constant;
    bool number; /* the model says numbers, not classes */
    uint32_t workers, left, first_epoch;
    double staleness;
    enum dp_divergence_why why;
    uint32_t epoch; /* in which it is said to have diverged */
};

struct made {
    struct dp_cluster cluster;
    struct dp_tested tested[EPOCHS];
    struct dp_epoch_stats epoch[WORKERS][EPOCHS];
    struct dp_worker_stats worker[WORKERS];
    struct dp_report report;
};

static void make(const struct run *run, struct made *m)
{
    uint32_t n = 0;
    memset(m, 0, sizeof *m);
    dp_cluster_defaults(&m->cluster);
    while (n < EPOCHS && run->test[n] != 0)
        n++;
    m->cluster.training.epochs = n;
    m->cluster.training.workers = run->workers;
    m->cluster.training.rate = 0.2;
    m->cluster.training.optimizer = dp_optimizer_defaults(DP_OPT_SGD);
    m->cluster.training.first_epoch = run->first_epoch;
    for (uint32_t w = 0; w < run->workers; w++) {
        m->worker[w] =
            (struct dp_worker_stats){.worker = w, .epochs = n, .epoch = m->epoch[w], .pushes = 100};
        m->worker[w].staleness.pushes = m->worker[w].staleness.measured = 100;
        m->worker[w].staleness.sum = (uint64_t)(100 * run->staleness);
        for (uint32_t e = 0; e < n; e++)
            m->epoch[w][e] =
                (struct dp_epoch_stats){.examples = 10, .loss_sum = 10 * run->train[e], .seconds = 1};
    }
    for (uint32_t e = 0; e < n; e++)
        m->tested[e] = (struct dp_tested){.known = true,
                                          .figures = {.examples = 10,
                                                      .loss = run->test[e],
                                                      .auc = (double)NAN,
                                                      .rmse = run->number ? run->test[e] : (double)NAN}};
    m->report = (struct dp_report){
        .cluster = &m->cluster,
        .workers = m->worker,
        .tested = m->tested,
        .epochs = n,
        .left = run->left,
        .finished = true,
        .constant = {.known = run->constant > 0,
                     .set = "test",
                     .figures = {.loss = run->constant, .rmse = run->number ? 1.0 : (double)NAN}}};
}

static const struct run runs[] = {
    /* good, slow, or overfitted */
    {{0.5, 0.3, 0.25}, {1.2, 0.4, 0.3}, 2.3, false, 4, 0, 0, 6.5, DP_DIVERGED_NO, 0},
    {{0.5, 0.6, 0.9}, {1.2, 0.4, 0.1}, 0.69, false, 4, 0, 0, 6.5, DP_DIVERGED_NO, 0},
    {{0.69, 0.689, 0.688}, {0.69, 0.6895, 0.689}, 0.02, false, 4, 0, 0, 6.5, DP_DIVERGED_NO, 0},
    {{4e6, 3e6, 2e6}, {5e6, 4e6, 3e6}, 100, true, 4, 0, 0, 6.5, DP_DIVERGED_NO, 0}, /* years */
    {{2.6}, {2.7}, 2.3, false, 8, 0, 0, 8, DP_DIVERGED_NO, 0},
    {{2.29, 2.29, 2.29}, {2.7, 2.31, 2.30}, 2.3, false, 8, 0, 0, 8, DP_DIVERGED_NO, 0}, /* slow */
    {{0.9, 0.3, 0.2}, {14, 0.4, 0.3}, 2.3, false, 8, 0, 0, 8, DP_DIVERGED_NO, 0},       /* a rough start */
    {{0.110, 0.118, 0.117}, {0.001, 0.0015, 0.0012}, 2.3, false, 4, 0, 7, 6.5, DP_DIVERGED_NO, 0},
    {{0.5, 0.3, 9}, {1.2, 0.4, 9}, 2.3, false, 4, 2, 0, 6.5, DP_DIVERGED_NO, 0}, /* the best epoch stays */
    /* diverged */
    {{0.5, 0.3, 9, 8}, {1.2, 0.4, 9, 8}, 2.3, false, 4, 0, 0, 6.5, DP_DIVERGED_GREW, 3},
    {{0.5, 0.3, 9, 8}, {1.2, 0.4, 9, 8}, 0, false, 4, 0, 5, 6.5, DP_DIVERGED_GREW, 3},
    {{616285, 500000, 300000}, {900000, 400000, 200000}, 2.3, false, 8, 0, 0, 8, DP_DIVERGED_NO_BETTER, 1},
    {{3, 2.9, 3.1}, {3, 2.9, 3}, 2.3, false, 8, 0, 0, 8, DP_DIVERGED_NO_BETTER, 1},
    {{2.302, 2.296, 2.299},
     {13.6, 2.29, 2.30},
     2.302,
     false,
     8,
     0,
     0,
     8,
     DP_DIVERGED_NO_BETTER,
     1}, /* it came to rest */
    {{900, 5, 2e5}, {9e5, 8e5, 7e5}, 1, true, 8, 0, 0, 8, DP_DIVERGED_NO_BETTER, 1},
    {{1e21, 1e20, 1e19}, {1e21, 1e20, 1e19}, 0.6, true, 4, 0, 0, 6.5, DP_DIVERGED_NO_BETTER, 1},
    {{0.5, HUGE_VAL}, {0.5, 0.4}, 0.6, false, 1, 0, 0, 1, DP_DIVERGED_NOT_FINITE, 2},
    /* labels all alike */
    {{0.02, 0.01, 0.01}, {0.02, 0.01, 0.01}, 1e-300, true, 1, 0, 1, 1, DP_DIVERGED_NO, 0},
    {{0.02, 0.03, 0.03}, {0.02, 0.03, 0.03}, 1e-300, false, 1, 0, 1, 1, DP_DIVERGED_NO, 0},
};

static void only_what_diverged_is_said_to_have(void **state)
{
    static struct made m;
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        make(&runs[i], &m);
        const struct dp_divergence d = dp_divergence_of(&m.report);
        if (d.why != runs[i].why || d.epoch != runs[i].epoch)
            fail_msg("run %zu: why %d in epoch %u, not %d in %u", i, d.why, d.epoch, runs[i].why,
                     runs[i].epoch);
        m.report.finished = false; /* more may come */
        assert_int_equal(dp_divergence_of(&m.report).why, DP_DIVERGED_NO);
        m.report.diverged = 2;
        assert_int_equal(dp_divergence_of(&m.report).why, DP_DIVERGED_NOT_FINITE);
        assert_int_equal(dp_divergence_of(&m.report).epoch, 2);
    }
}

static void stale_ones_are_told_of_asynchrony(void **state)
{
    static struct made m;
    char text[DP_ADVICE_MAX][DP_ADVICE_BYTES];
    struct run grown = runs[9];
    make(&grown, &m);
    assert_int_equal(dp_advice_of(&m.report, text), 1); /* no "more epochs", no "noise" */
    assert_non_null(strstr(text[0], "test loss grew from 0.5 in the first epoch to 8."));
    assert_non_null(strstr(text[0], "asynchrony at this rate: weights had changed by 6.5 pushes"));
    assert_non_null(strstr(text[0], "--rate 0.02 (it was 0.2), --rate warmup=N, --rate-by-staleness, "
                                    "--consistency ssp:1 or sync, --no-overlap."));
    m.cluster.training.rate_by_staleness = true;
    m.cluster.training.warmup_steps = 10;
    m.cluster.training.overlap = false;
    assert_int_equal(dp_advice_of(&m.report, text), 1);
    assert_non_null(strstr(text[0], "(it was 0.2), --consistency ssp:1 or sync."));
    make(&runs[8], &m); /* the best epoch's weights stay: it was instable all the same */
    assert_int_equal(dp_advice_of(&m.report, text), 1);
    assert_non_null(strstr(text[0], "The test loss was best after epoch 2 (0.3) and ended at 9"));
    assert_non_null(strstr(text[0], "asynchrony at this rate: weights had changed by 6.5 pushes"));
    grown.staleness = 1; /* of its own */
    grown.workers = 1;
    make(&grown, &m);
    assert_int_equal(dp_advice_of(&m.report, text), 1);
    assert_null(strstr(text[0], "asynchrony"));
    assert_non_null(strstr(text[0], "The likely cause is the rate. Try --rate 0.02 (it was 0.2)"));
    /* Adam, which takes steps of that size, and a rate of 200 times the default. */
    m.cluster.training.optimizer = dp_optimizer_defaults(DP_OPT_ADAM);
    assert_int_equal(dp_advice_of(&m.report, text), 1);
    assert_non_null(strstr(text[0], "cause is the rate. Try --rate 0.001, the default (it was 0.2), "));
    assert_true(dp_advice_rate(&m.report) == 0.001);
    make(&runs[9], &m);
    m.cluster.training.optimizer = dp_optimizer_defaults(DP_OPT_ADAM);
    assert_int_equal(dp_advice_of(&m.report, text), 1);
    assert_non_null(
        strstr(text[0], "cause is the rate, and asynchrony adds to it: weights had changed by 6.5"));
    make(&runs[11], &m);
    assert_int_equal(dp_advice_of(&m.report, text), 1);
    assert_non_null(
        strstr(text[0], "blew up: the test loss of 3e+05 is no better than the 2.3 of a constant."));
    assert_non_null(strstr(text[0], "--rate 0.02 (it was 0.2)"));
}

/* As seen on digits with 8 workers. Planted: stale ones and others alike; a slow training; small losses; what fits noise. */
static void what_is_not_fitted_is_no_noise(void **state)
{
    static const struct {
        struct run run;
        const char *wanted, *cause; /* NULL: no advice */
    } cases[] = {
        {{{1.67, 3.84, 2.13, 2.14, 2.21}, {7.08, 1.85, 2.46, 2.01, 2.13}, 2.3, false, 8, 0, 0, 10, 0, 0},
         "was best after epoch 1 (1.67) and ended at 2.21, and the training loss was no steadier.",
         "asynchrony"},
        {{{1.67, 3.84, 2.13, 2.14, 2.21}, {7.08, 1.85, 2.46, 2.01, 2.13}, 2.3, false, 1, 0, 0, 1, 0, 0},
         "was best after epoch 1",
         "cause is the rate"},
        {{{2.27, 2.52, 2.33, 2.33, 2.33}, {5.09, 3.11, 2.41, 2.33, 2.34}, 2.3, false, 8, 0, 0, 10, 0, 0},
         "test loss of 2.33 is worse than the 2.3 of a constant, and does not fall.",
         "asynchrony"},
        {{{2.27, 2.52, 2.33, 2.33, 2.33}, {5.09, 3.11, 2.41, 2.33, 2.34}, 2.3, false, 1, 0, 0, 1, 0, 0},
         "learned nothing useful",
         "another --rate"},
        {{{0.69, 0.689, 0.688}, {0.69, 0.6895, 0.689}, 0.02, false, 4, 0, 0, 6.5, 0, 0},
         "learned nothing useful", /* more slowly than 2% an epoch */
         "another --rate"},
        {{{0.94, 0.77, 0.94}, {0.8, 0.49, 0.43}, 2.3, false, 8, 0, 0, 10, 0, 0},
         "fitted noise",
         "--patience"},
        {{{0.94, 0.77, 0.94}, {0.9, 0.84, 0.82}, 2.3, false, 8, 0, 0, 10, 0, 0},
         "fitted noise",
         "--patience"},
        {{{0.1, 0.02, 0.03}, {0.1, 0.02, 0.03}, 2.3, false, 8, 0, 0, 10, 0, 0}, NULL, NULL},
        {{{0.5, 0.3, 0.31, 0.30}, {1.2, 0.4, 0.32, 0.31}, 0.69, false, 4, 0, 0, 6.5, 0, 0}, NULL, NULL},
    };
    static struct made m;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[DP_ADVICE_MAX][DP_ADVICE_BYTES];
        make(&cases[i].run, &m);
        uint32_t n = dp_advice_of(&m.report, text);
        const char *wanted = cases[i].wanted;
        if (n != (wanted != NULL) ||
            (wanted && (!strstr(text[0], wanted) || !strstr(text[0], cases[i].cause))))
            fail_msg("case %zu: %u, '%s'", i, n, n ? text[0] : "");
    }
}

static void the_report_has_it_for_programs(void **state)
{
    static struct made m;
    char *text;
    make(&runs[10], &m);
    assert_int_equal(dp_report_text(&m.report, &text, NULL), DP_OK);
    json_t *root = json_loads(text, 0, NULL), *diverged = json_object_get(root, "diverged");
    assert_int_equal(json_integer_value(json_object_get(diverged, "epoch")), 8); /* with those before */
    assert_string_equal(json_string_value(json_object_get(diverged, "why")), "grew");
    assert_string_equal(json_string_value(json_object_get(diverged, "set")), "test");
    assert_true(json_number_value(json_object_get(diverged, "loss")) == 8);
    assert_true(json_number_value(json_object_get(diverged, "reference")) == 0.5);
    json_decref(root);
    free(text);
    m.report.finished = false;
    m.report.ended = "failed";
    m.report.diverged = 3;
    assert_int_equal(dp_report_text(&m.report, &text, NULL), DP_OK);
    root = json_loads(text, 0, NULL);
    diverged = json_object_get(root, "diverged");
    assert_int_equal(json_integer_value(json_object_get(diverged, "epoch")), 8);
    assert_string_equal(json_string_value(json_object_get(diverged, "why")), "not_finite");
    assert_int_equal(json_object_size(diverged), 2);
    json_decref(root);
    free(text);
    make(&runs[0], &m);
    assert_int_equal(dp_report_text(&m.report, &text, NULL), DP_OK);
    assert_null(strstr(text, "diverged"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_what_diverged_is_said_to_have),
                                       cmocka_unit_test(stale_ones_are_told_of_asynchrony),
                                       cmocka_unit_test(what_is_not_fitted_is_no_noise),
                                       cmocka_unit_test(the_report_has_it_for_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
