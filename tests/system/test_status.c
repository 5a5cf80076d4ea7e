/* `downpour status` of a real cluster: two servers and a worker that trains; then one server is killed. */
#include "common/client/downpour.h"
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define RUN_1 "{\"run\":1,\"first_epoch\":0,\"epochs\":0,\"done\":false}"

static const char *json_of(struct dp_place *place, const char *conf, int code, const char *name)
{
    struct dp_process *status =
        dp_place_try(place, code, "downpour", "status", "--cluster", conf, "--timeout", "1", "--json");
    return dp_place_file(place, name, dp_process_out(status), strlen(dp_process_out(status)));
}

static void await_training(struct dp_place *place, const char *conf)
{
    uint64_t deadline = dp_process_now_ms() + (uint64_t)DP_SOON_MS * DP_PATIENCE;
    for (bool trains = false; !trains;) {
        assert_true(dp_process_now_ms() < deadline);
        struct dp_process *status = dp_place_try(place, 0, "downpour", "status", "--cluster", conf, "--json");
        const char *json =
            dp_place_file(place, "trains.json", dp_process_out(status), strlen(dp_process_out(status)));
        dp_place_drop(place, &status);
        trains = dp_place_number(place, json, "servers.0.rows_pushed") > 0 &&
                 dp_place_number(place, json, "servers.1.rows_pushed") > 0;
    }
}

static void a_cluster_is_shown_with_a_server_down(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = {.servers = 2, .shards = 2, .epochs = 5000};
    const char *conf = dp_place_conf(place, &cluster);
    struct dp_process *server[2] = {dp_place_server(place, conf, 0), dp_place_server(place, conf, 1)};
    dp_place_says(dp_place_try(place, 0, "downpour", "status", "--cluster", conf), "No worker of this run");
    struct dp_process *worker = dp_place_worker(place, conf, 0);
    await_training(place, conf);
    const char *json = json_of(place, conf, 0, "up.json");
    assert_true(dp_place_number(place, json, "servers.0.rows") > 0);
    assert_true(dp_place_number(place, json, "servers.1.tables") >= 2);
    assert_true(dp_place_number(place, json, "servers.1.rows_pushed_per_s") > 0);
    assert_true(dp_place_number(place, json, "servers.1.journal_bytes") > 0);
    assert_true(dp_place_number(place, json, "servers.0.disk_free_bytes") > 0);
    assert_true(dp_place_number(place, json, "workers.0.epochs") == 5000);
    struct dp_process *all = dp_place_try(place, 0, "downpour", "status", "--cluster", conf, "--all");
    dp_place_says(all, "shard 3 of 4 at tcp://127.0.0.1:");
    dp_place_says(all, "  total  write-back cycles\n");
    /* Again and again, until it is told to end; then its code is that of the last look. */
    struct dp_process *watch =
        dp_place_start(place, "downpour", "status", "--cluster", conf, "--watch", "1", NULL);
    dp_place_awaits(watch, "\n\nserver ");
    dp_process_signal(watch, SIGINT);
    dp_place_ended(watch, 0);

    dp_process_signal(server[1], SIGKILL);
    assert_int_not_equal(dp_process_wait(server[1], DP_SOON_MS), DP_PROCESS_RUNS);
    uint64_t begun = dp_process_now_ms();
    struct dp_process *down =
        dp_place_try(place, 1, "downpour", "status", "--cluster", conf, "--timeout", "1");
    assert_true(dp_process_now_ms() - begun < 5000u * DP_PATIENCE);
    dp_place_says(down, "     0  serving ");
    dp_place_says(down, "     1  down: no answer in 1.0 s from tcp://127.0.0.1:");
    dp_place_says(down, "worker  state");
    json = json_of(place, conf, 1, "down.json");
    assert_true(dp_place_number(place, json, "servers.0.rows") > 0);
    dp_process_signal(worker, SIGKILL);
    (void)dp_process_wait(worker, DP_SOON_MS);
    dp_place_stops_cleanly(server[0]);
}

/* More than one reply holds. */
static void many_workers_are_shown(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = {.servers = 1};
    const char *conf = dp_place_conf(place, &cluster), note[] = "{\"state\":\"training\",\"epoch\":1}";
    struct dp_process *server = dp_place_server(place, conf, 0);
    struct dp_client *client = NULL;
    struct dp_error err = {0};
    assert_int_equal(dp_client_open_file(conf, NULL, &client, &err), DP_OK);
    for (unsigned w = 0; w < 300; w++) {
        char name[48];
        (void)snprintf(name, sizeof name, "run/1/progress/%u.", w);
        assert_int_equal(dp_client_note_put(client, name, note, strlen(note), 10000, &err), DP_OK);
    }
    assert_int_equal(
        dp_client_register_set(client, "runs", 0, RUN_1, strlen(RUN_1), 10000, &(bool){false}, NULL, &err),
        DP_OK);
    dp_client_close(&client);
    const char *json = json_of(place, conf, 0, "many.json");
    assert_true(dp_place_number(place, json, "workers.299.epoch") == 1);
    dp_place_stops_cleanly(server);
}

static void what_it_is_asked_is_checked(void **state)
{
    struct dp_place *place = *state;
    dp_place_says(dp_place_try(place, 2, "downpour", "status"), "give either --cluster FILE or --dir DIR");
    dp_place_says(dp_place_try(place, 2, "downpour", "status", "--dir", dp_place_path(place, "absent")),
                  "absent");
    dp_place_says(dp_place_try(place, 2, "downpour", "status", "--dir", "x", "--watch", "0"), "--watch");
    dp_place_says(dp_place_try(place, 0, "downpour", "status", "--help"), "Exit code");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_cluster_is_shown_with_a_server_down, dp_place_setup,
                                        dp_place_teardown),
        cmocka_unit_test_setup_teardown(many_workers_are_shown, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(what_it_is_asked_is_checked, dp_place_setup, dp_place_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
