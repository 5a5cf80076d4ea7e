/* Servers that must not start: a second one beside the first, and one of another cluster file on a store that is there.
 * Each is refused with its cause, and what was there stays as it was. */
#define _GNU_SOURCE /* prlimit */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* The file FILE.conf of this cluster, with the stores of "c". */
static const char *conf_as(struct dp_place *place, struct dp_place_cluster *cluster, const char *file)
{
    const char *path = dp_place_path(place, "%s.conf", file);
    cluster->file = "c";
    assert_int_equal(rename(dp_place_conf(place, cluster), path), 0);
    return path;
}

static void refused(struct dp_place *place, const char *conf, uint32_t server, const char *cause)
{
    struct dp_process *process = dp_place_try(place, 2, "downpour-server", "--cluster", conf, "--server",
                                              dp_place_text(place, "%u", (unsigned)server));
    dp_place_says(process, cause);
}

static const char *scores_of(struct dp_place *place, const char *conf)
{
    const char *out = dp_place_path(place, "scores");
    (void)dp_place_try(place, 0, "downpour-worker", "--cluster", conf, "--predict", DP_DIGITS_TEST, "--out",
                       out);
    return dp_place_read(place, out, NULL);
}

static void a_second_server_leaves_the_first_alone(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = {
        .shards = 2, .epochs = 30, .batch = 8, .training = "overlap = false; pushes_max = 1;"};
    struct dp_place_cluster calm = cluster, moved = cluster;
    const char *conf = conf_as(place, &cluster, "first"), *elsewhere = conf_as(place, &moved, "moved");
    struct dp_process *server = dp_place_server(place, conf, 0), *worker = dp_place_worker(place, conf, 0);
    for (int epoch = 1; epoch <= 3; epoch++) {
        dp_place_awaits(worker, dp_place_text(place, "epoch %d of", epoch));
        refused(place, conf, 0, "in use");
        refused(place, elsewhere, 0, "another server is using it");
    }
    dp_place_ended(worker, 0);
    const char *scores = scores_of(place, conf);
    dp_process_signal(server, SIGKILL); /* what the others did to the store would show now */
    dp_place_ended(server, -SIGKILL);
    server = dp_place_server(place, conf, 0);
    assert_string_equal(scores_of(place, conf), scores);
    dp_place_stops_cleanly(server);
    calm.file = "calm";
    const char *calm_conf = dp_place_conf(place, &calm);
    server = dp_place_server(place, calm_conf, 0);
    dp_place_ended(dp_place_worker(place, calm_conf, 0), 0);
    assert_string_equal(scores_of(place, calm_conf), scores);
    dp_place_stops_cleanly(server);
}

/* Two at once: one serves, the other is refused, whoever was first. */
static void of_two_that_start_at_once_one_serves(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = {0}, moved = {0};
    const char *conf[2] = {conf_as(place, &cluster, "first"), conf_as(place, &moved, "moved")};
    for (int round = 0; round < 6; round++) {
        struct dp_process *server[2];
        int serves = -1;
        for (int i = 0; i < 2; i++)
            server[i] = dp_place_start(place, "downpour-server", "--cluster", conf[round % 2 ? i : 0],
                                       "--server", "0", "--new", NULL);
        uint64_t deadline = dp_process_now_ms() + (uint64_t)DP_SOON_MS * DP_PATIENCE;
        for (; serves < 0 && dp_process_now_ms() < deadline; dp_process_pause())
            for (int i = 0; i < 2; i++)
                serves = strstr(dp_process_err(server[i]), "ready:") ? i : serves;
        assert_true(serves >= 0);
        dp_place_ended(server[1 - serves], 2);
        if (round < 3)
            dp_place_stops_cleanly(server[serves]);
        else {
            dp_process_signal(server[serves], SIGKILL);
            dp_place_ended(server[serves], -SIGKILL);
        }
    }
    dp_place_stops_cleanly(dp_place_server(place, conf[0], 0));
}

static void all_others_are_refused(struct dp_place *place, const struct dp_place_cluster *right)
{
    struct dp_place_cluster c = *right;
    c.top = "id = 78;";
    refused(place, conf_as(place, &c, "wrong"), 0, "belongs to");
    c = *right;
    c.shards = 1; /* of two servers: half as many in all */
    refused(place, conf_as(place, &c, "wrong"), 0, "put servers, shards and store of the cluster file back");
    c = *right;
    c.servers = 1;
    refused(place, conf_as(place, &c, "wrong"), 0, "put servers, shards and store of the cluster file back");
    c = *right;
    c.top = "id = 77; durability = \"none\";";
    refused(place, conf_as(place, &c, "wrong"), 0, "not closed cleanly");
}

static void a_store_is_served_to_nobody_elses_cluster(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = {.servers = 2, .shards = 2, .epochs = 3, .batch = 8, .top = "id = 77;"};
    const char *conf = conf_as(place, &cluster, "right");
    struct dp_process *server[2], *worker;
    for (uint32_t i = 0; i < 2; i++)
        server[i] = dp_place_server(place, conf, i);
    worker = dp_place_worker(place, conf, 0);
    dp_place_ended(worker, 0);
    const char *scores = scores_of(place, conf);
    for (uint32_t i = 0; i < 2; i++) {
        dp_process_signal(server[i], SIGKILL);
        dp_place_ended(server[i], -SIGKILL);
    }
    all_others_are_refused(place, &cluster);
    for (uint32_t i = 0; i < 2; i++)
        server[i] = dp_place_server(place, conf, i);
    assert_string_equal(scores_of(place, conf), scores);
    for (uint32_t i = 0; i < 2; i++)
        dp_place_stops_cleanly(server[i]);
}

/* The same ranges in all, but not where they were: never an empty shard beside, or instead of, the ones with rows. */
static void shards_are_not_looked_for_elsewhere(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = {.servers = 2, .shards = 2, .epochs = 1, .top = "id = 77;"}, c;
    const char *conf = conf_as(place, &cluster, "right");
    struct dp_process *server[2];
    for (uint32_t i = 0; i < 2; i++)
        server[i] = dp_place_server(place, conf, i);
    dp_place_ended(dp_place_worker(place, conf, 0), 0);
    for (uint32_t i = 0; i < 2; i++)
        dp_place_stops_cleanly(server[i]);
    c = cluster;
    c.servers = 1;
    c.shards = 4; /* shards 2 and 3 lie with server 1 */
    refused(place, conf_as(place, &c, "one"), 0,
            "holds shards 0..1 of 4, and this server's place is that of shards 0..3 of 4");
    c = cluster;
    c.servers = 4;
    c.shards = 1; /* server 0 would leave shard 1 alone */
    refused(place, conf_as(place, &c, "four"), 0,
            "holds shards 0..1 of 4, and this server's place is that of shard 0 of 4");
    const char *first = dp_place_path(place, "c-0"), *second = dp_place_path(place, "c-1");
    const char *aside = dp_place_path(place, "aside"), *gone = dp_place_path(place, "c-0/shard-0001");
    assert_int_equal(rename(first, aside) | rename(second, first) | rename(aside, second), 0);
    refused(place, conf, 0, "holds shards 2..3 of 4");
    refused(place, conf, 1, "holds shards 0..1 of 4");
    assert_int_equal(rename(first, aside) | rename(second, first) | rename(aside, second), 0);
    assert_int_equal(rename(gone, aside), 0);
    refused(place, conf, 0, "shard 1 has lost its store");
    assert_int_equal(rename(aside, gone), 0);
    for (uint32_t i = 0; i < 2; i++)
        server[i] = dp_place_server(place, conf, i);
    for (uint32_t i = 0; i < 2; i++)
        dp_place_stops_cleanly(server[i]);
    (void)dp_place_file(place, "c-0/layout", "torn", 4);
    refused(place, conf, 0, "its file 'layout' has 4 bytes");
    /* One that never served all of its shards has not said so: their names do. */
    assert_int_equal(remove(dp_place_path(place, "c-0/layout")), 0);
    c = cluster;
    c.servers = 4;
    c.shards = 1;
    refused(place, conf_as(place, &c, "four"), 0, "holds shard-0001");
}

static void a_server_may_open_all_files_that_its_hard_limit_lets_it(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = {0};
    struct rlimit before, low, now;
    const char *conf = dp_place_conf(place, &cluster);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    low = before;
    low.rlim_cur = 128;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    struct dp_process *server = dp_place_server(place, conf, 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(prlimit(dp_process_pid(server), RLIMIT_NOFILE, NULL, &now), 0);
    assert_true(now.rlim_cur == now.rlim_max && now.rlim_max == before.rlim_max);
    dp_place_says(server,
                  dp_place_text(place, "%llu files and connections", (unsigned long long)now.rlim_cur));
    dp_place_stops_cleanly(server);
}

int main(void)
{
#define DP_STARTS_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        DP_STARTS_TEST(a_second_server_leaves_the_first_alone),
        DP_STARTS_TEST(of_two_that_start_at_once_one_serves),
        DP_STARTS_TEST(a_store_is_served_to_nobody_elses_cluster),
        DP_STARTS_TEST(a_server_may_open_all_files_that_its_hard_limit_lets_it),
        DP_STARTS_TEST(shards_are_not_looked_for_elsewhere),
    };
    return cmocka_run_group_tests_name("starts", tests, NULL, NULL);
}
