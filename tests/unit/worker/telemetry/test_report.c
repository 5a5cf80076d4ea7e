/* Goal    the report holds what was reached, under the keys that scripts read; what was not measured has
 * none. Method  a training that never was, its JSON read back. */
#include "tests/lib/test.h"
#include "worker/telemetry/report.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct made {
    struct dp_cluster cluster;
    struct dp_cluster_server server;
    struct dp_worker_stats workers[2];
    struct dp_epoch_stats epochs[2][2];
    struct dp_tested tested[2];
    struct dp_report report;
};

static void make(struct made *m)
{
    memset(m, 0, sizeof *m);
    dp_cluster_defaults(&m->cluster);
    m->server = (struct dp_cluster_server){.host = "h", .port = 1, .shards = 3};
    m->cluster.server_count = 1;
    m->cluster.server = &m->server;
    (void)snprintf(m->cluster.model, sizeof m->cluster.model, "logistic");
    (void)snprintf(m->cluster.data.train, sizeof m->cluster.data.train, "a \"quoted\" name");
    m->cluster.training.workers = 2;
    m->cluster.training.epochs = 2;
    m->cluster.training.batch = 8;
    m->cluster.training.push_every = 3;
    m->cluster.training.seed = UINT64_MAX;
    m->cluster.training.optimizer = dp_optimizer_defaults(DP_OPT_ADAM);
    for (uint32_t w = 0; w < 2; w++) {
        m->workers[w] =
            (struct dp_worker_stats){.worker = w, .epochs = 2, .epoch = m->epochs[w], .pushes = 5};
        m->workers[w].staleness = (struct dp_staleness){.pushes = 5,
                                                        .measured = 10,
                                                        .sum = 10 * w,
                                                        .max = 4 * w,
                                                        .gaps = 10 * w,
                                                        .gap_sum = 15 * w,
                                                        .gap_max = 3 * w};
        m->workers[w].staleness.fine[w] = 5;
        m->workers[w].staleness.own_sum = 5 * w;
        m->workers[w].staleness.own_max = w;
        if (w == 1) {
            dp_staleness_begin(&m->workers[w].staleness);
            m->workers[w].staleness.rows = 200;
            m->workers[w].staleness.changed_rows = 50;
            m->workers[w].staleness.changed.count[5] = 5;
            m->workers[w].staleness.gap.count[2] = 5;
            m->workers[w].staleness.divided = 4;
            m->workers[w].staleness.divisor_sum = 10;
        }
        m->workers[w].times.seconds[DP_PHASE_COMPUTE] = 1.5;
        m->workers[w].times.seconds[DP_PHASE_WAITING_PULL] = 0.25;
        m->workers[w].times.seconds[DP_PHASE_WAITING_DEVICE] = w;
        m->workers[w].times.seconds[DP_PHASE_WAITING_RULE] = 2;
        m->epochs[w][0] = (struct dp_epoch_stats){.loss_sum = 30, .examples = 100 - 50 * w, .seconds = 2 - w};
        m->epochs[w][1] =
            (struct dp_epoch_stats){.loss_sum = 15, .examples = 100 - 50 * w, .begun = 2, .seconds = 2 - w};
    }
    m->tested[1] = (struct dp_tested){
        .known = true,
        .figures = {.examples = 10, .loss = 0.5, .accuracy = 0.75, .auc = (double)NAN, .rmse = (double)NAN}};
    m->report = (struct dp_report){.cluster = &m->cluster,
                                   .examples = 150,
                                   .digest = 0xabc,
                                   .workers = m->workers,
                                   .tested = m->tested,
                                   .epochs = 2,
                                   .finished = true};
}

static double number_at(const json_t *root, const char *a, const char *b)
{
    const json_t *value = json_object_get(json_object_get(root, a), b);
    if (!json_is_number(value))
        fail_msg("%s.%s is missing", a, b);
    return json_number_value(value);
}

static void test_text(void **state)
{
    struct made m;
    make(&m);
    char *text;
    assert_int_equal(dp_report_text(&m.report, &text, NULL), DP_OK);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    assert_string_equal(json_string_value(json_object_get(root, "model")), "logistic");
    const json_t *data = json_object_get(root, "data");
    assert_string_equal(json_string_value(json_object_get(data, "train")), "a \"quoted\" name");
    assert_string_equal(json_string_value(json_object_get(data, "digest")), "0000000000000abc");
    assert_null(json_object_get(data, "test"));
    assert_true(number_at(root, "settings", "shards") == 3);
    const json_t *seed = json_object_get(json_object_get(root, "settings"), "seed");
    assert_string_equal(json_string_value(seed), "18446744073709551615");
    const json_t *optimizer = json_object_get(json_object_get(root, "settings"), "optimizer");
    assert_true(json_number_value(json_object_get(optimizer, "beta2")) == 0.999);
    assert_null(json_object_get(optimizer, "l1"));

    const json_t *first = json_array_get(json_object_get(root, "epochs"), 0);
    assert_true(fabs(json_number_value(json_object_get(first, "train_loss")) - 0.4) < 1e-9);
    assert_true(json_number_value(json_object_get(first, "seconds")) == 2);
    assert_true(json_number_value(json_object_get(first, "examples")) == 150);
    assert_true(json_number_value(json_object_get(first, "examples_per_s")) == 75);
    assert_true(json_is_true(json_object_get(root, "finished")));
    assert_null(json_object_get(root, "ended"));
    assert_null(json_object_get(first, "test"));
    const json_t *last = json_object_get(json_object_get(root, "final"), "test");
    assert_true(json_number_value(json_object_get(last, "accuracy")) == 0.75);
    assert_null(json_object_get(last, "auc"));

    assert_true(number_at(root, "throughput", "examples_per_s") == 75); /* 300 in 4 s */
    assert_true(number_at(root, "spent_s", "compute") == 3);
    assert_true(number_at(root, "spent_s", "waiting_pull") == 0.5);
    assert_true(number_at(root, "spent_s", "waiting_rule") == 4);
    assert_true(number_at(root, "spent_s", "waiting") == 5.5);
    const json_t *one = json_array_get(json_object_get(root, "workers"), 0);
    assert_true(number_at(one, "spent_s", "waiting") == 2.25);
    const json_t *staleness = json_object_get(root, "staleness");
    assert_true(number_at(staleness, "clock_gap", "mean") == 1.5);
    assert_true(number_at(staleness, "clock_gap", "max") == 3);
    assert_null(json_object_get(json_object_get(one, "staleness"), "clock_gap"));
    const json_t *gaps = json_object_get(json_object_get(staleness, "clock_gap"), "histogram");
    assert_true(json_integer_value(json_array_get(json_object_get(gaps, "counts"), 2)) == 5);
    assert_true(number_at(root, "staleness", "changed") == 0.25);
    const json_t *shares = json_object_get(json_object_get(staleness, "changed_histogram"), "counts");
    assert_true(json_integer_value(json_array_get(shares, 5)) == 5 && json_array_size(shares) == 13);
    assert_true(number_at(root, "staleness", "rate_divided_by") == 2.5);
    assert_null(json_object_get(json_object_get(one, "staleness"), "changed"));
    assert_null(json_object_get(json_object_get(one, "staleness"), "rate_divided_by"));
    assert_true(number_at(root, "staleness", "mean") == 0.5);
    assert_true(number_at(root, "staleness", "max") == 4);
    assert_true(number_at(staleness, "own", "mean") == 0.5 && number_at(staleness, "own", "max") == 1);
    assert_true(number_at(root, "staleness", "p50") == 0 && number_at(root, "staleness", "p90") == 1);
    assert_true(number_at(staleness, "examples", "mean") == 12); /* pushes of 3 minibatches of 8 */
    assert_true(number_at(staleness, "examples", "p50") == 0 &&
                number_at(staleness, "examples", "p99") == 24);
    assert_true(number_at(root, "staleness", "pushes") == 10);
    assert_int_equal(json_array_size(json_object_get(json_object_get(root, "staleness"), "histogram")), 2);
    assert_int_equal(json_array_size(json_object_get(root, "workers")), 2);
    json_decref(root);
    free(text);
}

/* Leased work: 150 examples of which worker 1 did 40 again, 25 of them known to be repeated; in the second
 * epoch a killed worker's count of 30 is lost. Planted: the sum of the workers; the repeated ones not
 * taken off; those known to be repeated taken off twice. */
static void examples_of_leased_work_are_those_applied(void **state)
{
    struct made m;
    make(&m);
    m.cluster.training.work = DP_CLUSTER_LEASED;
    m.epochs[1][0].examples += 40;
    m.workers[1].repeated_examples = 25;
    m.epochs[1][1].examples -= 30;
    char *text;
    assert_int_equal(dp_report_text(&m.report, &text, NULL), DP_OK);
    json_t *root = json_loads(text, 0, NULL);
    static const double twice[] = {40, 0};
    for (size_t e = 0; e < 2; e++) {
        const json_t *epoch = json_array_get(json_object_get(root, "epochs"), e);
        assert_true(json_number_value(json_object_get(epoch, "examples")) == 150);
        assert_true(json_number_value(json_object_get(epoch, "examples_done_twice")) == twice[e]);
        assert_true(json_number_value(json_object_get(epoch, "examples_per_s")) == 75);
    }
    assert_true(number_at(root, "throughput", "examples_per_s") == (300 - 30) / 4.0);
    json_decref(root);
    free(text);
    m.cluster.training.work =
        DP_CLUSTER_FIXED; /* each example has one worker: a number that is off is shown */
    assert_int_equal(dp_report_examples(&m.report, 0), 190);
    assert_int_equal(dp_report_done_twice(&m.report, 0), 0);
}

/* A watcher must not take what is reached so far for the end. */
static void while_it_goes_on(void **state)
{
    struct made m;
    make(&m);
    char *text;
    const struct dp_early_stop_rule rule = {.patience = 1};
    const struct dp_early_stop stop = {.epoch = 1, .best_epoch = 1};
    m.tested[0] = m.tested[1];
    m.report.finished = false;
    m.report.epochs = 1;
    m.report.rule = &rule;
    m.report.stop = &stop;
    assert_int_equal(dp_report_text(&m.report, &text, NULL), DP_OK);
    json_t *root = json_loads(text, 0, NULL);
    assert_true(json_is_false(json_object_get(root, "finished")));
    assert_int_equal(json_array_size(json_object_get(root, "epochs")), 1);
    assert_non_null(json_object_get(json_array_get(json_object_get(root, "epochs"), 0), "test"));
    assert_null(json_object_get(root, "final"));
    assert_null(json_object_get(root, "stop"));
    assert_null(json_object_get(root, "ended"));
    json_decref(root);
    free(text);

    m.report.epochs = 0; /* nor before the first epoch */
    m.report.ended = "failed";
    m.report.error = "a cause";
    assert_int_equal(dp_report_text(&m.report, &text, NULL), DP_OK);
    root = json_loads(text, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(root, "epochs")), 0);
    assert_string_equal(json_string_value(json_object_get(root, "ended")), "failed");
    assert_string_equal(json_string_value(json_object_get(root, "error")), "a cause");
    json_decref(root);
    free(text);
}

static struct dp_speed speed_of(const struct made *m)
{
    struct dp_speed speed;
    assert_int_equal(dp_report_speed(&m->report, &speed, NULL), DP_OK);
    return speed;
}

/* Goal    the speed is what was reached, not what would have been had all begun together. */
static void test_speed(void **state)
{
    struct made m;
    make(&m);
    /* Worker 0 trains from 1000 to 1002 and 1003 to 1005, evaluating between; worker 1 within that. */
    m.epochs[0][0].begun = 1000;
    m.epochs[0][1].begun = 1003;
    m.epochs[1][0].begun = 1000.5;
    m.epochs[1][1].begun = 1003.5;
    assert_true(speed_of(&m).seconds == 4 && speed_of(&m).examples_per_s == 75);
    /* While the one evaluates the other trains. */
    m.epochs[1][0].begun = 1002;
    assert_true(speed_of(&m).seconds == 5 && speed_of(&m).examples_per_s == 60);
    /* One after the other. */
    m.epochs[1][0].begun = 1005;
    m.epochs[1][1].begun = 1006;
    assert_true(speed_of(&m).seconds == 6 && speed_of(&m).examples_per_s == 50);
    /* Of one epoch, too. */
    double seconds;
    struct dp_error err;
    assert_int_equal(dp_report_seconds(&m.report, 0, &seconds, &err), DP_OK);
    assert_true(seconds == 3);
    m.epochs[1][0].begun = 1000.5;
    assert_int_equal(dp_report_seconds(&m.report, 0, &seconds, &err), DP_OK);
    assert_true(seconds == 2);
    /* What was there already was not trained now. */
    m.workers[1].repeated_examples = 100;
    assert_true(speed_of(&m).examples == 200);
}

/* Planted: in every mode; the sum is that of the last worker. */
static void test_dropped(void **state)
{
    struct made m;
    char *text;
    make(&m);
    assert_int_equal(dp_report_text(&m.report, &text, NULL), DP_OK);
    assert_null(strstr(text, "\"dropped\""));
    free(text);
    (void)strcpy(m.cluster.training.consistency, "sync");
    assert_int_equal(dp_report_text(&m.report, &text, NULL), DP_OK);
    assert_null(strstr(text, "\"dropped\""));
    free(text);
    (void)strcpy(m.cluster.training.consistency, "sync:1");
    m.workers[0].dropped = (struct dp_dropped){.pushes = 2, .partly = 1, .examples = 20, .passed = 8};
    m.workers[1].dropped = (struct dp_dropped){.pushes = 1, .examples = 10};
    assert_int_equal(dp_report_text(&m.report, &text, NULL), DP_OK);
    json_t *root = json_loads(text, 0, NULL);
    free(text);
    assert_true(number_at(root, "dropped", "pushes") == 3 && number_at(root, "dropped", "partly") == 1);
    assert_true(number_at(root, "dropped", "examples") == 30 &&
                number_at(root, "dropped", "not_computed") == 8 && number_at(root, "dropped", "late") == 22);
    assert_true(number_at(root, "applied", "examples") == 300 + 8 - 30);
    assert_true(number_at(root, "applied", "planned") ==
                (double)m.report.examples * m.cluster.training.epochs);
    const json_t *one = json_array_get(json_object_get(root, "workers"), 1);
    assert_true(number_at(one, "dropped", "pushes") == 1 && number_at(one, "dropped", "examples") == 10);
    assert_true(json_number_value(json_object_get(one, "examples")) == 100);
    one = json_array_get(json_object_get(root, "workers"), 0);
    assert_true(json_number_value(json_object_get(one, "examples")) == 208);
    assert_true(number_at(root, "throughput", "examples_per_s") == (300 + 8 - 30) / 4.0);
    json_decref(root);
}

/* Planted: where nothing was missed, too. */
static void what_was_missed_is_told(void **state)
{
    struct made m;
    char *text;
    make(&m);
    m.workers[1].missed = 12;
    m.workers[1].missed_examples = 190;
    assert_int_equal(dp_report_text(&m.report, &text, NULL), DP_OK);
    json_t *root = json_loads(text, 0, NULL);
    free(text);
    const json_t *workers = json_object_get(root, "workers"), *one = json_array_get(workers, 1);
    assert_null(json_object_get(json_array_get(workers, 0), "missed_steps"));
    assert_true(json_number_value(json_object_get(one, "missed_steps")) == 12);
    assert_true(json_number_value(json_object_get(one, "missed_examples")) == 190);
    json_decref(root);
}

/* No worker had anything: no loss, no speed, and still JSON. */
static void test_nothing_measured(void **state)
{
    struct made m;
    make(&m);
    memset(m.epochs, 0, sizeof m.epochs);
    memset(m.tested, 0, sizeof m.tested);
    m.workers[0].staleness = m.workers[1].staleness = (struct dp_staleness){0};
    char *text;
    assert_int_equal(dp_report_text(&m.report, &text, NULL), DP_OK);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    assert_null(json_object_get(json_array_get(json_object_get(root, "epochs"), 0), "train_loss"));
    assert_null(json_object_get(json_object_get(root, "throughput"), "examples_per_s"));
    assert_null(json_object_get(json_object_get(root, "staleness"), "mean"));
    assert_null(json_object_get(root, "final"));
    json_decref(root);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text),
                                       cmocka_unit_test(examples_of_leased_work_are_those_applied),
                                       cmocka_unit_test(while_it_goes_on),
                                       cmocka_unit_test(test_speed),
                                       cmocka_unit_test(test_dropped),
                                       cmocka_unit_test(test_nothing_measured),
                                       cmocka_unit_test(what_was_missed_is_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
