/* Goal    workers that rest at the end of each epoch until it is judged, started by hand: who was stopped before, and starts later than
 *         the others, is waited for. A test set alone is enough to
 *         rest for.
 * Method  a goal that nobody reaches, so that every epoch ends with a rest; settings and processes change in between. */
#include "tests/lib/test.h"

#include "tests/system/place.h"

#include <signal.h>
#include <string.h>

#define EPOCHS 40

static struct dp_place_cluster cluster_of(const char *training)
{
    return (struct dp_place_cluster){.workers = 2,
                                     .epochs = EPOCHS,
                                     .data = "scale = 0.0625; validation_share = 0.2;",
                                     .training = training};
}

static struct dp_process *resumed(struct dp_place *place, const char *conf, uint32_t worker)
{
    return dp_place_start(place, "downpour-worker", "--cluster", conf, "--worker",
                          dp_place_text(place, "%u", (unsigned)worker), "--resume", NULL);
}

static void ends_refused(struct dp_process *worker, int code, const char *says)
{
    dp_place_ended(worker, code);
    dp_place_says(worker, says);
}

static void both_end(struct dp_place *place, struct dp_process *const worker[2])
{
    for (uint32_t w = 0; w < 2; w++)
        dp_place_ended(worker[w], 0);
    const char *report = dp_place_path(place, "c.json");
    assert_true(dp_place_number(place, report, "stop.epoch") == EPOCHS);
    assert_true(dp_place_number(place, report, "final.validation.examples") == 287);
    for (uint32_t w = 0; w < 2; w++)
        assert_true(
            dp_place_number(place, report, dp_place_text(place, "workers.%u.examples", (unsigned)w)) ==
            EPOCHS * (w == 0 ? 576 : 574));
}

/* The first to come back finds a note that says the other was stopped: that was another process. */
static void who_was_stopped_comes_back_later(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = cluster_of("stop_at = \"loss:0.000001\"; patience = 35;");
    const char *conf = dp_place_conf(place, &cluster);
    struct dp_process *server = dp_place_server(place, conf, 0), *worker[2];
    for (uint32_t w = 0; w < 2; w++)
        worker[w] = dp_place_worker(place, conf, w);
    dp_place_awaits(worker[1], "epoch 3 of");
    dp_process_signal(worker[1], SIGTERM);
    dp_place_ended(worker[1], 3);
    ends_refused(worker[0], 3, "worker 1 was stopped before the e");
    /* With another patience its end is not that of before. */
    cluster.training = "stop_at = \"loss:0.000001\"; patience = 36;";
    (void)dp_place_conf(place, &cluster);
    ends_refused(resumed(place, conf, 0), 2,
                 "run 1 was begun with 'patience 35 epochs of loss', this is 'patience 36");
    cluster.training = "stop_at = \"loss:0.000001\"; patience = 35;";
    (void)dp_place_conf(place, &cluster);
    worker[0] = resumed(place, conf, 0);
    dp_place_awaits(worker[0], "continues at epoch ");
    worker[1] = resumed(place, conf, 1);
    both_end(place, worker);
    dp_place_stops_cleanly(server);
}

/* Worker 0 alone of two: it ends the first epoch, and others are waited for there. Without a set it trains to the end. */
static void only_a_set_is_rested_for(void **state)
{
    struct dp_place *place = *state;
    static const struct {
        const char *file, *test, *missing;
        bool goes_on;
    } kinds[] = {{"c", DP_DIGITS_TEST,
                  "waited at the end of an epoch for worker 1, which has not joined the run for 2 s", false},
                 {"d", "",
                  "waited at the end of the training for worker 1, which has not joined the run for 2 s",
                  true}};
    for (size_t k = 0; k < 2; k++) {
        struct dp_place_cluster cluster = {
            .file = kinds[k].file, .test = kinds[k].test, .workers = 2, .epochs = 3, .timeout_ms = 2000};
        const char *conf = dp_place_conf(place, &cluster);
        struct dp_process *server = dp_place_server(place, conf, 0),
                          *worker = dp_place_worker(place, conf, 0);
        dp_place_ended(worker, 3);
        dp_place_says(worker, kinds[k].missing);
        dp_place_says(worker, "epoch 1 of 3, own share");
        assert_true(kinds[k].goes_on == (strstr(dp_process_err(worker), "epoch 2 of 3, own share") != NULL));
        dp_place_stops_cleanly(server);
    }
}

/* By kill -9 of every process, without step logs: early stopping goes on from what it was, and the report has every epoch's figures. */
static void what_was_decided_survives_everybody(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster =
        cluster_of("stop_at = \"loss:0.000001\"; patience = 35; keep = \"last\";");
    const char *conf = dp_place_conf(place, &cluster), *report = dp_place_path(place, "c.json");
    struct dp_process *server = dp_place_server(place, conf, 0), *worker[2];
    for (uint32_t w = 0; w < 2; w++)
        worker[w] = dp_place_worker(place, conf, w);
    dp_place_awaits(worker[0], "epoch 5, validation: ");
    for (uint32_t w = 0; w < 2; w++)
        dp_process_signal(worker[w], SIGKILL);
    dp_process_signal(server, SIGKILL);
    for (uint32_t w = 0; w < 2; w++)
        dp_place_ended(worker[w], -SIGKILL);
    dp_place_ended(server, -SIGKILL);
    server = dp_place_server(place, conf, 0);
    /* So does the plan. */
    cluster.training = "stop_at = \"loss:0.000002\"; patience = 35; keep = \"last\";";
    (void)dp_place_conf(place, &cluster);
    ends_refused(resumed(place, conf, 1), 2,
                 "run 1 was begun with 'stop_at loss:1e-06', this is 'stop_at loss:2e-06'");
    cluster.training = "stop_at = \"loss:0.000001\"; patience = 35; keep = \"last\";";
    (void)dp_place_conf(place, &cluster);
    for (uint32_t w = 0; w < 2; w++)
        worker[w] = resumed(place, conf, w);
    both_end(place, worker);
    assert_null(strstr(dp_process_err(worker[0]), "epoch 4, validation: "));
    double best = 1e300;
    for (unsigned e = 0; e < EPOCHS; e++) {
        double loss = dp_place_number(place, report, dp_place_text(place, "epochs.%u.validation.loss", e));
        best = loss < best ? loss : best;
    }
    assert_true(dp_place_number(place, report, "stop.best") == best);
    dp_place_stops_cleanly(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_was_stopped_comes_back_later, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(only_a_set_is_rested_for, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(what_was_decided_survives_everybody, dp_place_setup,
                                        dp_place_teardown),
    };
    return cmocka_run_group_tests_name("rests", tests, NULL, NULL);
}
