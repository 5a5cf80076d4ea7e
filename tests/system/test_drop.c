/* A table is dropped while servers die: no part of it stays, its name starts from its initial values, and a
 * checkpoint from before has it as it was. (What a shard does at each crash: test_shard_crash.) */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include "common/client/downpour.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define ROWS       300u
#define DIM        4u
#define TIMEOUT_MS 20000u

static uint64_t keys[ROWS];
static float gradients[ROWS][DIM];

static struct dp_client *opened(const char *conf)
{
    struct dp_client *client = NULL;
    struct dp_error err = {0};
    if (dp_client_open_file(conf, NULL, &client, &err) != DP_OK)
        fail_msg("%s", err.text);
    return client;
}

static struct dp_client_table *table_of(struct dp_client *client, const char *name)
{
    struct dp_table_spec spec = {.dim = DIM, .seed = 3};
    struct dp_client_table *table = NULL;
    struct dp_error err = {0};
    (void)snprintf(spec.name, sizeof spec.name, "%s", name);
    spec.init = (struct dp_init_spec){.kind = DP_INIT_ZERO};
    spec.optimizer = dp_optimizer_defaults(DP_OPT_ADAM);
    if (dp_client_table(client, &spec, TIMEOUT_MS, &table, &err) != DP_OK)
        fail_msg("%s", err.text);
    return table;
}

/* Some pushes, and the weights after them. */
static void train(struct dp_client *client, const char *name, uint32_t pushes, float weights[ROWS][DIM])
{
    struct dp_client_table *table = table_of(client, name);
    struct dp_error err = {0};
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; i < pushes && st == DP_OK; i++)
        st = dp_client_push_rows(client, table, keys, ROWS, gradients[0], 0.1f, TIMEOUT_MS, &err);
    if (st == DP_OK)
        st = dp_client_pull_rows(client, table, keys, ROWS, weights[0], TIMEOUT_MS, &err);
    if (st != DP_OK)
        fail_msg("%s", err.text);
}

/* Server 1 dies before the request reaches it. Server 0 goes on without the client. */
static void drop_half(struct dp_place *place, const char *conf, struct dp_client *client,
                      struct dp_process *server[2])
{
    struct dp_error err = {0};
    dp_process_signal(server[1], SIGKILL);
    dp_place_ended(server[1], -SIGKILL);
    assert_int_equal(dp_client_table_drop(client, "t", 1000, &err), DP_TIMEOUT);
    dp_place_awaits(server[0], "table 't' is dropped");
    server[1] = dp_place_server(place, conf, 1);
}

static void a_dropped_table_leaves_nothing(void **state)
{
    static float old[ROWS][DIM], kept[ROWS][DIM], now[ROWS][DIM], fresh[ROWS][DIM], zero[ROWS][DIM];
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = {.servers = 2};
    const char *conf = dp_place_conf(place, &cluster), *to = dp_place_path(place, "made");
    struct dp_process *server[2];
    struct dp_error err = {0};
    for (uint32_t i = 0; i < ROWS; i++) {
        keys[i] = i * 1000003;
        for (uint32_t c = 0; c < DIM; c++)
            gradients[i][c] = (float)(i % 7) + 1;
    }
    for (uint32_t i = 0; i < 2; i++)
        server[i] = dp_place_server(place, conf, i);
    struct dp_client *client = opened(conf), *other = opened(conf);
    train(client, "t", 5, old);
    train(client, "kept", 5, kept);
    struct dp_client_table *stale = table_of(other, "t");
    (void)dp_place_try(place, 0, "downpour", "checkpoint", "--cluster", conf, "--to", to);

    drop_half(place, conf, client, server);
    dp_place_says(dp_place_try(place, 2, "downpour", "checkpoint", "--cluster", conf, "--to", to),
                  "table 't' is not on both of shards 0 and 1");
    dp_place_says(dp_place_try(place, 0, "downpour", "drop", "--cluster", conf, "t"), "table 't' is dropped");
    dp_place_says(dp_place_try(place, 0, "downpour", "drop", "--cluster", conf, "t"),
                  "table 't' is on no server");
    assert_int_equal(dp_client_pull_rows(other, stale, keys, ROWS, now[0], TIMEOUT_MS, &err), DP_NOT_FOUND);
    assert_non_null(strstr(err.text, "table 't'"));
    (void)dp_place_try(place, 0, "downpour", "checkpoint", "--cluster", conf, "--to", to);

    /* The name again: as a table that never was. The handle that this client has is of the new one. */
    assert_int_equal(dp_client_table_drop(client, "t", TIMEOUT_MS, &err), DP_OK);
    train(client, "t", 0, now);
    assert_memory_equal(now, zero, sizeof now);
    train(client, "t", 2, now);
    train(client, "fresh", 2, fresh);
    assert_memory_equal(now, fresh, sizeof now);
    dp_client_close(&client);
    dp_client_close(&other);
    for (uint32_t i = 0; i < 2; i++) {
        dp_process_signal(server[i], SIGKILL);
        dp_place_ended(server[i], -SIGKILL);
    }
    for (uint32_t i = 0; i < 2; i++)
        server[i] = dp_place_server(place, conf, i);
    client = opened(conf);
    train(client, "t", 0, now);
    assert_memory_equal(now, fresh, sizeof now);
    train(client, "kept", 0, now);
    assert_memory_equal(now, kept, sizeof now);
    dp_client_close(&client);

    for (uint32_t i = 0; i < 2; i++)
        dp_place_stops_cleanly(server[i]);
    (void)dp_place_try(place, 0, "downpour", "restore", "--from",
                       dp_place_path(place, "made/checkpoint-000001"), "--cluster", conf, "--overwrite");
    for (uint32_t i = 0; i < 2; i++)
        server[i] = dp_place_server(place, conf, i);
    client = opened(conf);
    train(client, "t", 0, now);
    assert_memory_equal(now, old, sizeof now);
    dp_client_close(&client);
    for (uint32_t i = 0; i < 2; i++)
        dp_place_stops_cleanly(server[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_dropped_table_leaves_nothing, dp_place_setup, dp_place_teardown),
    };
    return cmocka_run_group_tests_name("tables that are dropped", tests, NULL, NULL);
}
