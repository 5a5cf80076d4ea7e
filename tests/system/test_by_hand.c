/* Servers and workers started by hand from one cluster file, in any order: the example file as it is, from other
 * directories. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <string.h>

/* The text with each of the pairs (from, to) replaced; a `from` that is not in it fails the test. */
static const char *replaced(struct dp_place *place, const char *text, const char *const (*pairs)[2],
                            size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *at = strstr(text, pairs[i][0]);
        if (!at)
            fail_msg("the example file has no '%s'", pairs[i][0]);
        text =
            dp_place_text(place, "%.*s%s%s", (int)(at - text), text, pairs[i][1], at + strlen(pairs[i][0]));
    }
    return text;
}

/* deploy/cluster.example.conf as it is, but for its ports and where it finds the data. */
static const char *example_conf(struct dp_place *place)
{
    uint32_t port = dp_place_ports(6);
    const char *const pairs[][2] = {
        {"port = 5700;", dp_place_text(place, "port = %u;", (unsigned)port)},
        {"port = 5710;", dp_place_text(place, "port = %u;", (unsigned)port + 3)},
        {"\"tests/data/", "\"" DP_SOURCE "/tests/data/"},
        {"\"tests/data/", "\"" DP_SOURCE "/tests/data/"},
    };
    const char *text = dp_place_read(place, DP_SOURCE "/deploy/cluster.example.conf", NULL);
    text = replaced(place, text, pairs, sizeof pairs / sizeof pairs[0]);
    return dp_place_file(place, "cluster.conf", text, strlen(text));
}

static void a_cluster_from_the_example_file(void **state)
{
    struct dp_place *place = *state;
    const char *conf = example_conf(place);
    /* A worker before its servers, the rest in any order; stores and report lie where they were started. */
    struct dp_process *worker[2], *server[2];
    worker[1] = dp_place_worker(place, conf, 1);
    server[1] = dp_place_start(place, "downpour-server", "--cluster", conf, "--server", "1", NULL);
    worker[0] = dp_place_worker(place, conf, 0);
    server[0] = dp_place_server(place, conf, 0);
    dp_place_awaits(server[1], "ready:");
    for (int i = 0; i < 2; i++)
        dp_place_ended(worker[i], 0);
    const char *report = dp_place_path(place, "report.json");
    assert_true(dp_place_number(place, report, "final.test.accuracy") > 0.9);
    assert_true(dp_place_number(place, report, "settings.shards") == 4);
    assert_true(dp_place_number(place, report, "workers.1.pushes") > 0);
    /* 360 minibatches of 4 in each epoch; each goes to every shard. */
    assert_true(dp_place_counter(place, conf, "pushes") == 4 * 20 * 360);
    assert_true(dp_place_counter(place, conf, "requests_refused") == 0);
    struct dp_process *status = dp_place_try(place, 0, "downpour", "status", "--all", "--cluster", conf);
    dp_place_says(status, "shard 0 of 4 at tcp://127.0.0.1:");
    dp_place_says(status, "shard 3 of 4 at tcp://127.0.0.1:");
    dp_place_says(status, "adam");
    /* One that was stopped in the run, or is started again to make sure, finds it complete. */
    dp_place_says(dp_place_try(place, 0, "downpour-worker", "--cluster", conf, "--worker", "1", "--resume"),
                  "the run is already complete");
    dp_place_stops_cleanly(server[0]);
    dp_place_stops_cleanly(server[1]);
}

static void scores_by_hand(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = {.servers = 2};
    const char *conf = dp_place_conf(place, &cluster), *out = dp_place_path(place, "scores");
    struct dp_process *server[2];
    for (uint32_t i = 0; i < 2; i++)
        server[i] = dp_place_server(place, conf, i);
    /* Not trained yet. */
    dp_place_says(dp_place_try(place, 2, "downpour-worker", "--cluster", conf, "--predict", DP_DIGITS_TEST,
                               "--out", out),
                  "was not trained on them");
    dp_place_ended(dp_place_worker(place, conf, 0), 0);
    (void)dp_place_try(place, 0, "downpour-worker", "--cluster", conf, "--predict", DP_DIGITS_TEST, "--out",
                       out);
    const char *scores = dp_place_read(place, out, NULL);
    int lines = 0;
    for (const char *p = scores; *p; p++)
        lines += *p == '\n';
    assert_int_equal(lines, 360);
    for (uint32_t i = 0; i < 2; i++)
        dp_place_stops_cleanly(server[i]);
}

static struct dp_process *resumed(struct dp_place *place, const char *conf, const char *worker)
{
    return dp_place_start(place, "downpour-worker", "--cluster", conf, "--worker", worker, "--resume", NULL);
}

/* Wide&Deep and DeepFM have tables of the same names and shapes: the servers cannot tell them apart. */
static void one_run_has_one_model(void **state)
{
    struct dp_place *place = *state;
    const char *rows = dp_place_path(place, "rows"), *out = dp_place_path(place, "scores");
    struct dp_place_cluster cluster = {
        .model = "wide-deep:4-8", .train = rows, .test = rows, .workers = 2, .epochs = 20, .data = " "};
    (void)dp_place_try(place, 0, "downpour", "generate", "clicks", "--rows", "640", "--features", "50",
                       "--out", rows);
    const char *conf = dp_place_conf(place, &cluster);
    struct dp_process *server = dp_place_server(place, conf, 0), *worker[2];
    worker[0] = dp_place_worker(place, conf, 0);
    dp_place_awaits(worker[0], "epoch 1 of");
    cluster.model = "deepfm:4-8";
    (void)dp_place_conf(place, &cluster);
    worker[1] = dp_place_worker(place, conf, 1);
    dp_place_ended(worker[1], 2);
    dp_place_says(worker[1],
                  "worker 0 trains run 1 with 'model wide-deep:4-8', this one with 'model deepfm:4-8'");
    dp_place_ended(worker[0], 3); /* it waits for the other's part */
    cluster.model = "wide-deep:4-8";
    (void)dp_place_conf(place, &cluster);
    worker[0] = resumed(place, conf, "0");
    worker[1] = resumed(place, conf, "1");
    for (int i = 0; i < 2; i++)
        dp_place_ended(worker[i], 0);
    (void)dp_place_try(place, 0, "downpour-worker", "--cluster", conf, "--predict", rows, "--out", out);
    cluster.model = "deepfm:4-8";
    (void)dp_place_conf(place, &cluster);
    dp_place_says(
        dp_place_try(place, 2, "downpour-worker", "--cluster", conf, "--predict", rows, "--out", out),
        "run 1 was trained with 'model wide-deep:4-8', the cluster file says 'model deepfm:4-8'");
    dp_place_stops_cleanly(server);
}

int main(void)
{
#define DP_HAND_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        DP_HAND_TEST(a_cluster_from_the_example_file),
        DP_HAND_TEST(scores_by_hand),
        DP_HAND_TEST(one_run_has_one_model),
    };
    return cmocka_run_group_tests_name("by hand", tests, NULL, NULL);
}
