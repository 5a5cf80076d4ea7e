/* The register of a cluster of processes: what it answered survives SIGKILL, who waits is answered after it, only the first server
 * keeps it, and a damaged one is refused by name. */
#include "common/client/downpour.h"
#include "common/config/cluster.h"
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define WAIT_MS 60000u

struct cluster {
    const char *conf;
    uint64_t id;
    char shard[2][DP_HOST_MAX + 32], control[2][DP_HOST_MAX + 32];
};

static struct cluster make_cluster(struct dp_place *place)
{
    struct dp_place_cluster settings = {.servers = 2};
    struct cluster c = {.conf = dp_place_conf(place, &settings)};
    struct dp_cluster *cluster = NULL;
    struct dp_error err = {0};
    if (dp_cluster_read(c.conf, &cluster, &err) != DP_OK)
        fail_msg("%s", err.text);
    c.id = cluster->id;
    for (uint32_t i = 0; i < 2; i++) {
        dp_cluster_shard_endpoint(cluster, i, c.shard[i], sizeof c.shard[i]);
        dp_cluster_control_endpoint(cluster, i, c.control[i], sizeof c.control[i]);
    }
    dp_cluster_free(&cluster);
    return c;
}

/* With this server for the one that keeps the register. */
static struct dp_client *open_client(const struct cluster *c, uint32_t server)
{
    const char *const shards[] = {c->shard[0], c->shard[1]};
    struct dp_client_options options = {.name = "register",
                                        .cluster = c->id,
                                        .shards = shards,
                                        .shard_count = 2,
                                        .control = c->control[server],
                                        .retry_ms = 200};
    struct dp_client *client = NULL;
    struct dp_error err = {0};
    if (dp_client_open(&options, &client, &err) != DP_OK)
        fail_msg("%s", err.text);
    return client;
}

static void wants_set(struct dp_client *client, uint64_t expected, const char *text)
{
    struct dp_error err = {0};
    bool won = false;
    if (dp_client_register_set(client, "test", expected, text, strlen(text), WAIT_MS, &won, NULL, &err) !=
        DP_OK)
        fail_msg("%s", err.text);
    assert_true(won);
}

/* Its id. */
static uint64_t wants(struct dp_client *client, uint64_t version, const char *text)
{
    struct dp_register_value value;
    struct dp_error err = {0};
    if (dp_client_register_get(client, "test", 0, 0, WAIT_MS, &value, &err) != DP_OK)
        fail_msg("%s", err.text);
    assert_int_equal(value.version, version);
    assert_string_equal(value.bytes, text);
    uint64_t id = value.register_id;
    dp_register_value_clear(&value);
    return id;
}

struct waiter {
    struct dp_client *client;
    struct dp_register_value value;
    enum dp_status status;
    struct dp_error err;
};

static void *wait_for_two(void *arg)
{
    struct waiter *waiter = arg;
    waiter->status =
        dp_client_register_get(waiter->client, "test", 1, WAIT_MS, WAIT_MS, &waiter->value, &waiter->err);
    return NULL;
}

static void what_was_answered_survives_a_kill(void **state)
{
    struct dp_place *place = *state;
    struct cluster c = make_cluster(place);
    struct dp_process *first = dp_place_server(place, c.conf, 0), *second = dp_place_server(place, c.conf, 1);
    struct dp_client *client = open_client(&c, 0);
    struct waiter waiter = {.client = open_client(&c, 0)};
    struct dp_register_value value;
    struct dp_error err = {0};
    pthread_t thread;
    wants_set(client, 0, "one");
    uint64_t id = wants(client, 1, "one");
    assert_int_not_equal(id, 0);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_two, &waiter), 0);
    dp_process_signal(first, SIGKILL);
    dp_place_ended(first, -SIGKILL);
    /* Away: its clients wait until their time is over, and name it. */
    assert_int_equal(dp_client_register_get(client, "test", 0, 0, 500, &value, &err), DP_TIMEOUT);
    assert_non_null(strstr(err.text, c.control[0]));
    first = dp_place_server(place, c.conf, 0);
    assert_true(wants(client, 1, "one") == id);
    wants_set(client, 1, "two");
    assert_int_equal(pthread_join(thread, NULL), 0);
    if (waiter.status != DP_OK)
        fail_msg("%s", waiter.err.text);
    assert_int_equal(waiter.value.version, 2);
    assert_string_equal(waiter.value.bytes, "two");
    dp_register_value_clear(&waiter.value);
    dp_client_close(&waiter.client);
    dp_client_close(&client);

    /* The second server keeps none, and says who does. */
    client = open_client(&c, 1);
    assert_int_equal(dp_client_register_get(client, "test", 0, 0, WAIT_MS, &value, &err), DP_UNSUPPORTED);
    assert_non_null(strstr(err.text, "kept by the first server"));
    assert_non_null(strstr(err.text, c.control[0]));
    dp_client_close(&client);
    dp_place_stops_cleanly(first);
    dp_place_stops_cleanly(second);
}

static void a_damaged_register_is_refused_by_name(void **state)
{
    struct dp_place *place = *state;
    struct cluster c = make_cluster(place);
    struct dp_process *first = dp_place_server(place, c.conf, 0), *second = dp_place_server(place, c.conf, 1);
    struct dp_client *client = open_client(&c, 0);
    const char *path = dp_place_path(place, "c-0/register");
    size_t size;
    wants_set(client, 0, "one");
    dp_client_close(&client);
    dp_place_stops_cleanly(first);
    char *bytes = dp_place_read(place, path, &size);
    bytes[size / 2] ^= 4;
    (void)dp_place_file(place, "c-0/register", bytes, size);
    for (int again = 0; again < 2; again++) {
        struct dp_process *refused =
            dp_place_try(place, 2, "downpour-server", "--cluster", c.conf, "--server", "0");
        dp_place_says(refused, "'register' is damaged");
        dp_place_says(refused, "c-0");
    }
    bytes[size / 2] ^= 4;
    (void)dp_place_file(place, "c-0/register", bytes, size);
    first = dp_place_server(place, c.conf, 0);
    client = open_client(&c, 0);
    (void)wants(client, 1, "one");
    dp_client_close(&client);
    dp_place_stops_cleanly(first);
    dp_place_stops_cleanly(second);
}

static struct dp_process *read_only_server(struct dp_place *place, const struct cluster *c,
                                           const char *number)
{
    struct dp_process *server = dp_place_start(place, "downpour-server", "--read-only", "--cluster", c->conf,
                                               "--server", number, NULL);
    dp_place_awaits(server, "ready:");
    return server;
}

static void a_read_only_server_answers_and_takes_nothing(void **state)
{
    struct dp_place *place = *state;
    struct cluster c = make_cluster(place);
    struct dp_process *first = dp_place_server(place, c.conf, 0), *second = dp_place_server(place, c.conf, 1);
    struct dp_client *client = open_client(&c, 0);
    struct dp_error err = {0};
    bool won;
    wants_set(client, 0, "one");
    dp_client_close(&client);
    dp_place_stops_cleanly(first);
    dp_place_stops_cleanly(second);
    first = read_only_server(place, &c, "0");
    second = read_only_server(place, &c, "1");
    client = open_client(&c, 0);
    (void)wants(client, 1, "one");
    assert_int_equal(dp_client_register_set(client, "test", 1, "two", 3, WAIT_MS, &won, NULL, &err),
                     DP_UNSUPPORTED);
    assert_non_null(strstr(err.text, "read-only"));
    (void)wants(client, 1, "one");
    dp_client_close(&client);
    dp_place_stops_cleanly(first);
    dp_place_stops_cleanly(second);
}

int main(void)
{
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        IN_PLACE(what_was_answered_survives_a_kill),
        IN_PLACE(a_damaged_register_is_refused_by_name),
        IN_PLACE(a_read_only_server_answers_and_takes_nothing),
    };
    return cmocka_run_group_tests_name("register", tests, NULL, NULL);
}
