/* What is asked to stop, stops well: exit codes, clean stores, training that goes on from them. And a worker
 * whose server went away says so. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Two servers and two workers in the middle of a training that would not end by itself. Without a test set each waits for servers alone. */
struct busy {
    struct dp_place_cluster cluster;
    const char *conf;
    struct dp_process *server[2], *worker[2];
};

static void busy_start(struct dp_place *place, struct busy *busy)
{
    busy->cluster = (struct dp_place_cluster){
        .test = "", .servers = 2, .workers = 2, .epochs = 100000, .timeout_ms = 2000};
    busy->conf = dp_place_conf(place, &busy->cluster);
    for (uint32_t i = 0; i < 2; i++)
        busy->server[i] = dp_place_server(place, busy->conf, i);
    for (uint32_t i = 0; i < 2; i++)
        busy->worker[i] = dp_place_worker(place, busy->conf, i);
    for (uint32_t i = 0; i < 2; i++)
        dp_place_awaits(busy->worker[i], "epoch 3 of");
}

/* The endpoint of server n's only shard. */
static const char *shard_of(struct dp_place *place, const struct busy *busy, uint32_t n)
{
    return dp_place_text(place, "tcp://127.0.0.1:%u", (unsigned)(busy->cluster.port + 2 * n + 1));
}

static void a_server_stops_and_training_goes_on_later(void **state)
{
    struct dp_place *place = *state;
    struct busy busy;
    busy_start(place, &busy);
    dp_place_stops_cleanly(busy.server[1]);
    for (uint32_t i = 0; i < 2; i++) {
        dp_place_ended(busy.worker[i], 3);
        dp_place_says(busy.worker[i], shard_of(place, &busy, 1));
    }
    /* It starts again; a further run begins where the rows are. */
    busy.server[1] = dp_place_server(place, busy.conf, 1);
    busy.cluster.run = 2;
    busy.cluster.epochs = 1;
    busy.cluster.rate = "0.001";
    busy.cluster.timeout_ms = 30000;
    const char *conf = dp_place_conf(place, &busy.cluster);
    for (uint32_t i = 0; i < 2; i++)
        busy.worker[i] = dp_place_worker(place, conf, i);
    for (uint32_t i = 0; i < 2; i++)
        dp_place_ended(busy.worker[i], 0);
    /* After one pass over the digits from nothing it is above 1. */
    assert_true(dp_place_number(place, dp_place_path(place, "c.json"), "epochs.0.train_loss") < 0.5);
    for (uint32_t i = 0; i < 2; i++)
        dp_place_stops_cleanly(busy.server[i]);
}

/* The servers know a run's pushes by their ids, also after they were started again. */
static void a_second_training_under_one_number_is_told_so(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = {.epochs = 1};
    const char *conf = dp_place_conf(place, &cluster);
    struct dp_process *server = dp_place_server(place, conf, 0);
    dp_place_ended(dp_place_worker(place, conf, 0), 0);
    dp_place_stops_cleanly(server);
    server = dp_place_server(place, conf, 0);
    struct dp_process *worker = dp_place_worker(place, conf, 0);
    dp_place_ended(worker, 2);
    dp_place_says(worker, "nothing was trained: run 1 is already complete for worker 0");
    dp_place_says(worker, "give training.run a higher number");
    /* Also when it is tried again. */
    worker = dp_place_worker(place, conf, 0);
    dp_place_ended(worker, 2);
    dp_place_says(worker, "worker 0 has already finished run 1 on these servers");
    dp_place_says(worker, "give training.run a higher number");
    dp_place_stops_cleanly(server);
    /* A longer training under it is another one. */
    cluster.epochs = 2;
    conf = dp_place_conf(place, &cluster);
    server = dp_place_server(place, conf, 0);
    worker = dp_place_worker(place, conf, 0);
    dp_place_ended(worker, 2);
    dp_place_says(worker, "run 1 was begun with 'epochs 1', this is 'epochs 2'");
    dp_place_stops_cleanly(server);
}

static void both_servers_stop_at_once(void **state)
{
    struct dp_place *place = *state;
    struct busy busy;
    busy_start(place, &busy);
    for (uint32_t i = 0; i < 2; i++)
        dp_process_signal(busy.server[i], i == 0 ? SIGTERM : SIGINT);
    for (uint32_t i = 0; i < 2; i++) {
        dp_place_ended(busy.server[i], 0);
        dp_place_says(busy.server[i], "closed cleanly");
    }
    for (uint32_t i = 0; i < 2; i++)
        dp_place_ended(busy.worker[i], 3);
}

static struct dp_process *endless_run(struct dp_place *place)
{
    struct dp_process *run = dp_place_start(
        place, "downpour", "run", "--dir", dp_place_path(place, "run"), "--servers", "2", "--workers", "2",
        "--model", "mlp:64-64-10", "--train", DP_DIGITS_TRAIN, "--scale", "0.0625", "--batch", "16",
        "--epochs", "100000", access(dp_place_path(place, "run"), F_OK) == 0 ? "--resume" : NULL, NULL);
    dp_place_awaits(run, "/100000 ");
    return run;
}

static void interrupted(struct dp_place *place, int number)
{
    struct dp_process *run = endless_run(place);
    dp_process_signal(run, number);
    dp_place_ended(run, 128 + number);
    dp_place_says(run, "signal");
    for (int i = 0; i < 2; i++)
        assert_non_null(strstr(dp_place_read(place, dp_place_path(place, "run/log/server-%d.log", i), NULL),
                               "closed cleanly"));
}

static void an_interrupted_run_leaves_a_clean_store(void **state)
{
    struct dp_place *place = *state;
    interrupted(place, SIGINT);
    interrupted(place, SIGTERM);
    /* And the store is trained on. */
    struct dp_process *run =
        dp_place_try(place, 0, "downpour", "run", "--dir", dp_place_path(place, "run"), "--servers", "2",
                     "--workers", "1", "--model", "mlp:64-64-10", "--train", DP_DIGITS_TRAIN, "--scale",
                     "0.0625", "--epochs", "1", "--continue");
    dp_place_says(run, "this is run 2");
}

static void an_interrupted_predict_leaves_nobody(void **state)
{
    struct dp_place *place = *state;
    const char *run = dp_place_path(place, "run");
    (void)dp_place_try(place, 0, "downpour", "run", "--dir", run, "--model", "mlp:64-64-10", "--train",
                       DP_DIGITS_TRAIN, "--epochs", "1");
    struct dp_process *predict =
        dp_place_start(place, "downpour", "predict", "--from", run, "--data", DP_DIGITS_TEST, NULL);
    uint64_t deadline = dp_process_now_ms() + DP_SOON_MS;
    while (dp_process_left(predict) == 0 && dp_process_now_ms() < deadline)
        dp_process_pause();
    dp_process_signal(predict, SIGINT);
    /* Unless it was through already. */
    dp_place_ended(predict, dp_process_wait(predict, DP_SOON_MS) == 0 ? 0 : 130);
    (void)dp_place_try(place, 0, "downpour", "predict", "--from", run, "--data", DP_DIGITS_TEST);
}

int main(void)
{
#define DP_STOPS_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        DP_STOPS_TEST(a_server_stops_and_training_goes_on_later),
        DP_STOPS_TEST(a_second_training_under_one_number_is_told_so),
        DP_STOPS_TEST(both_servers_stop_at_once),
        DP_STOPS_TEST(an_interrupted_run_leaves_a_clean_store),
        DP_STOPS_TEST(an_interrupted_predict_leaves_nobody),
    };
    return cmocka_run_group_tests_name("stops", tests, NULL, NULL);
}
