/* Cluster files that are wrong, servers that are not there, ports and stores that are taken, clusters that do
 * not fit: exit 2, the peer and the field named, nothing lost. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* All three programs read it, and refuse it alike. */
static void all_refuse(struct dp_place *place, const char *conf, const char *a, const char *b)
{
    struct dp_process *each[] = {
        dp_place_try(place, 2, "downpour-server", "--cluster", conf, "--server", "0"),
        dp_place_try(place, 2, "downpour-worker", "--cluster", conf, "--worker", "0"),
        dp_place_try(place, 2, "downpour", "status", "--cluster", conf),
    };
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++) {
        dp_place_says(each[i], a);
        dp_place_says(each[i], b);
    }
}

static void wrong_cluster_files(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster wrong_key = {.file = "a", .training = "\n  epcohs = 3;"};
    all_refuse(place, dp_place_conf(place, &wrong_key), "a.conf:", "unknown key 'training.epcohs'");
    struct dp_place_cluster syntax = {.file = "d", .top = "servers = ("};
    all_refuse(place, dp_place_conf(place, &syntax), "d.conf:", "syntax");
    all_refuse(place, dp_place_path(place, "absent.conf"), "absent.conf", "No such file");
}

static void servers_that_are_not_there(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = {.servers = 2, .timeout_ms = 1000};
    const char *conf = dp_place_conf(place, &cluster);
    const char *second = dp_place_text(place, "tcp://127.0.0.1:%u", (unsigned)cluster.port + 3);
    struct dp_process *server = dp_place_server(place, conf, 0);
    uint64_t begun = dp_process_now_ms();
    struct dp_process *worker = dp_place_worker(place, conf, 0);
    dp_place_ended(worker, 3);
    dp_place_says(worker, second);
    struct dp_process *status =
        dp_place_try(place, 1, "downpour", "status", "--cluster", conf, "--timeout", "1");
    dp_place_says(status, second);
    struct dp_process *predict = dp_place_try(place, 3, "downpour-worker", "--cluster", conf, "--predict",
                                              DP_DIGITS_TEST, "--out", dp_place_path(place, "scores"));
    dp_place_says(predict, second);
    /* A second each, not the 30 of a default. */
    assert_true(dp_process_now_ms() - begun < (uint64_t)20000 * DP_PATIENCE);
    dp_place_stops_cleanly(server);
}

static int take_port(uint32_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

static void ports_in_use(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = {.shards = 2};
    const char *conf = dp_place_conf(place, &cluster);
    /* The control port, and that of the second shard: nothing of the first stays. */
    for (uint32_t offset = 0; offset < 3; offset += 2) {
        int taken = take_port(cluster.port + offset);
        struct dp_process *server =
            dp_place_try(place, 2, "downpour-server", "--cluster", conf, "--server", "0", "--new");
        dp_place_says(server, dp_place_text(place, "127.0.0.1:%u", (unsigned)(cluster.port + offset)));
        dp_place_says(server, "in use");
        struct dp_process *run =
            dp_place_try(place, 2, "downpour", "run", "--dir", dp_place_path(place, "run"), "--shards", "2",
                         "--port", dp_place_text(place, "%u", (unsigned)cluster.port), "--model",
                         "mlp:64-64-10", "--train", DP_DIGITS_TRAIN);
        dp_place_says(run, dp_place_text(place, "port %u", (unsigned)(cluster.port + offset)));
        assert_int_equal(close(taken), 0);
    }
    dp_place_stops_cleanly(dp_place_server(place, conf, 0));
}

static void a_table_of_another_width(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = {.servers = 2, .epochs = 1};
    const char *conf = dp_place_conf(place, &cluster);
    struct dp_process *server[2] = {dp_place_server(place, conf, 0), dp_place_server(place, conf, 1)};
    dp_place_ended(dp_place_worker(place, conf, 0), 0);
    cluster.model = "mlp:64-32-10";
    cluster.run = 2;
    conf = dp_place_conf(place, &cluster);
    struct dp_process *worker = dp_place_worker(place, conf, 0);
    dp_place_ended(worker, 2);
    dp_place_says(worker, "table");
    dp_place_says(worker, "has dim 64, 32 was asked for");
    /* Of the same widths, but with another optimizer or seed: not the same rows either. */
    cluster.model = "mlp:64-64-10";
    cluster.training = "optimizer = { kind = \"sgd\"; };";
    conf = dp_place_conf(place, &cluster);
    worker = dp_place_worker(place, conf, 0);
    dp_place_ended(worker, 2);
    dp_place_says(worker, "optimizer");
    cluster.training = "";
    conf = dp_place_conf(place, &cluster);
    dp_place_ended(dp_place_worker(place, conf, 0), 0);
    for (int i = 0; i < 2; i++)
        dp_place_stops_cleanly(server[i]);
}

static void a_run_that_does_not_fit_the_store(void **state)
{
    struct dp_place *place = *state;
    const char *dir = dp_place_path(place, "run");
    (void)dp_place_try(place, 0, "downpour", "run", "--dir", dir, "--servers", "2", "--model", "mlp:64-64-10",
                       "--train", DP_DIGITS_TRAIN, "--epochs", "1");
    dp_place_says(dp_place_try(place, 2, "downpour", "run", "--dir", dir, "--servers", "2", "--model",
                               "mlp:64-32-10", "--train", DP_DIGITS_TRAIN),
                  "holds the store of model 'mlp:64-64-10'");
    dp_place_says(dp_place_try(place, 2, "downpour", "run", "--dir", dir, "--servers", "1", "--model",
                               "mlp:64-64-10", "--train", DP_DIGITS_TRAIN),
                  "holds the store of 2 servers");
    dp_place_says(dp_place_try(place, 2, "downpour", "run", "--dir", dir, "--servers", "2", "--shards", "2",
                               "--model", "mlp:64-64-10", "--train", DP_DIGITS_TRAIN),
                  "1 shard for server 0");
    dp_place_says(dp_place_try(place, 2, "downpour", "run", "--dir", dir, "--servers", "2", "--optimizer",
                               "ftrl", "--model", "mlp:64-64-10", "--train", DP_DIGITS_TRAIN),
                  "optimizer");
    (void)dp_place_try(place, 0, "downpour", "run", "--dir", dir, "--servers", "2", "--model", "mlp:64-64-10",
                       "--train", DP_DIGITS_TRAIN, "--epochs", "1");
}

static void other_clusters(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = {.epochs = 1};
    const char *conf = dp_place_conf(place, &cluster), *old = dp_place_text(place, "%s.old", conf);
    struct dp_process *server = dp_place_server(place, conf, 0);
    assert_int_equal(rename(conf, old), 0);
    cluster.top = "generation = 2;"; /* of a file of an earlier version: the stores keep it */
    conf = dp_place_conf(place, &cluster);
    dp_place_says(dp_place_try(place, 0, "downpour", "status", "--cluster", conf, "--timeout", "5"),
                  "decides nothing");
    cluster.top = "id = 77;";
    conf = dp_place_conf(place, &cluster);
    struct dp_process *worker = dp_place_worker(place, conf, 0);
    dp_place_ended(worker, 2);
    dp_place_says(worker, "cluster");
    dp_place_ended(dp_place_worker(place, old, 0), 0);
    dp_place_stops_cleanly(server);
    /* The store is of that cluster too. */
    server = dp_place_try(place, 2, "downpour-server", "--cluster", conf, "--server", "0");
    dp_place_says(server, "c-0/shard-0000");
    dp_place_says(server, "cluster");
    dp_place_stops_cleanly(dp_place_server(place, old, 0));
}

int main(void)
{
#define DP_PEERS_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        DP_PEERS_TEST(wrong_cluster_files),
        DP_PEERS_TEST(servers_that_are_not_there),
        DP_PEERS_TEST(ports_in_use),
        DP_PEERS_TEST(a_table_of_another_width),
        DP_PEERS_TEST(a_run_that_does_not_fit_the_store),
        DP_PEERS_TEST(other_clusters),
    };
    return cmocka_run_group_tests_name("bad peers", tests, NULL, NULL);
}
