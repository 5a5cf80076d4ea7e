/* Stores that are given another generation and history, as a restore does: what clients had under way changes no row, a
 * worker that was stopped meanwhile goes on by itself from where the rows are, stores that a restore missed are refused, and
 * a run number far ahead leaves higher ones. */
#include "tests/lib/store_history.h"
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include "common/client/downpour.h"
#include "common/config/cluster_client.h"
#include "common/model/stream.h"

#include <signal.h>
#include <time.h>

#define HISTORY UINT64_C(0xfedcba9876543210)
#define WAIT_MS 10000u

struct bed {
    struct dp_place *place;
    struct dp_place_cluster cluster;
    const char *conf;
    struct dp_process *server[2];
};

static const char *store(const struct bed *bed, uint32_t server)
{
    return dp_place_path(bed->place, "%s-%u", bed->cluster.file, (unsigned)server);
}

static void start(struct bed *bed)
{
    for (uint32_t i = 0; i < 2; i++)
        bed->server[i] = dp_place_server(bed->place, bed->conf, i);
}

static void stop(struct bed *bed)
{
    for (uint32_t i = 0; i < 2; i++)
        dp_place_stops_cleanly(bed->server[i]);
}

static struct bed made(void **state, const char *name)
{
    struct bed bed = {.place = *state,
                      .cluster = {.file = name,
                                  .servers = 2,
                                  .epochs = 12,
                                  .top = "id = 77;",
                                  .training = "consistency = \"sync\";"}};
    bed.conf = dp_place_conf(bed.place, &bed.cluster);
    start(&bed);
    return bed;
}

static void set_history(const struct bed *bed, uint32_t server, uint64_t generation)
{
    store_history_set(dp_place_text(bed->place, "%s/shard-%04u", store(bed, server), (unsigned)server),
                      generation, HISTORY);
}

static const char *digest(const struct bed *bed)
{
    return dp_place_digest(bed->place, store(bed, 0), store(bed, 1));
}

static struct dp_client *open_client(const struct bed *bed, uint64_t generation, enum dp_status wanted)
{
    struct dp_cluster *cluster = NULL;
    struct dp_client *client = NULL;
    struct dp_error err = {0};
    const struct dp_client_options options = {.name = "test", .generation = generation, .retry_ms = 200};
    assert_int_equal(dp_cluster_read(bed->conf, &cluster, &err), DP_OK);
    if (dp_cluster_client(cluster, &options, &client, &err) != wanted)
        fail_msg("%s", err.text);
    dp_cluster_free(&cluster);
    return client;
}

/* One row for each of 100 keys: on both shards. */
static enum dp_status push(struct dp_client *client, struct dp_client_table *table, struct dp_error *err)
{
    static float gradient[100];
    uint64_t key[100];
    struct dp_ticket ticket;
    struct dp_keys *keys = NULL;
    for (uint32_t i = 0; i < 100; i++) {
        key[i] = i;
        gradient[i] = 1;
    }
    assert_int_equal(dp_keys_new(&keys, err), DP_OK);
    assert_int_equal(dp_keys_set(keys, key, 100, err), DP_OK);
    const struct dp_push_part part = {table, keys, gradient};
    const struct dp_push_options options = {.rate = 1};
    enum dp_status st = dp_client_push(client, &options, &part, 1, WAIT_MS, &ticket, err);
    if (st == DP_OK)
        st = dp_client_wait(client, &ticket, WAIT_MS, NULL, err);
    dp_keys_free(&keys);
    return st;
}

static struct dp_client_table *open_table(struct dp_client *client)
{
    struct dp_client_table *table = NULL;
    struct dp_error err = {0};
    const struct dp_table_spec spec = {.name = "t", .dim = 1, .optimizer = dp_optimizer_defaults(DP_OPT_SGD)};
    if (dp_client_table(client, &spec, WAIT_MS, &table, &err) != DP_OK)
        fail_msg("%s", err.text);
    return table;
}

static void a_client_of_before_changes_nothing(void **state)
{
    struct bed bed = made(state, "c");
    struct dp_error err = {0};
    struct dp_register_value value;
    bool won = false;
    struct dp_client *client = open_client(&bed, 0, DP_OK);
    struct dp_client_table *table = open_table(client);
    assert_int_equal(push(client, table, &err), DP_OK);
    stop(&bed);
    const char *before = digest(&bed);
    for (uint32_t i = 0; i < 2; i++)
        set_history(&bed, i, 2);
    start(&bed);
    dp_place_says(bed.server[0], "generation 2");
    assert_int_equal(push(client, table, &err), DP_GENERATION);
    assert_int_equal(dp_client_register_set(client, "v", 0, "x", 1, WAIT_MS, &won, NULL, &err),
                     DP_GENERATION);
    dp_client_close(&client);
    client = open_client(&bed, 1, DP_GENERATION); /* made for the first generation */
    (void)dp_place_try(bed.place, 0, "downpour", "status", "--cluster", bed.conf);
    client = open_client(&bed, 0, DP_OK);
    uint64_t generation, history;
    dp_client_generation(client, &generation, &history);
    assert_true(generation == 2 && history == HISTORY);
    assert_int_equal(dp_client_register_get(client, "v", 0, 0, WAIT_MS, &value, &err), DP_OK);
    assert_int_equal(value.version, 0);
    dp_register_value_clear(&value);
    stop(&bed);
    assert_string_equal(digest(&bed), before);
    start(&bed);
    assert_int_equal(push(client, open_table(client), &err), DP_OK);
    dp_client_close(&client);
    stop(&bed);
    assert_string_not_equal(digest(&bed), before);
}

static const char *undisturbed(void **state)
{
    struct bed bed = made(state, "u");
    dp_place_ended(dp_place_worker(bed.place, bed.conf, 0), 0);
    stop(&bed);
    return digest(&bed);
}

/* The same by the commands that a user has, onto the stores that are there. */
static void a_worker_goes_on_after_a_restore(void **state)
{
    const char *wanted = undisturbed(state);
    struct bed bed = made(state, "c");
    const char *to = dp_place_path(bed.place, "checkpoints");
    struct dp_process *worker = dp_place_worker(bed.place, bed.conf, 0);
    dp_place_awaits(worker, "epoch 1 of");
    (void)dp_place_try(bed.place, 0, "downpour", "checkpoint", "--cluster", bed.conf, "--to", to);
    dp_place_awaits(worker, "epoch 4 of");
    dp_process_signal(worker, SIGSTOP);
    stop(&bed);
    (void)dp_place_try(bed.place, 0, "downpour", "restore", "--from", to, "--cluster", bed.conf,
                       "--overwrite");
    start(&bed);
    dp_place_says(bed.server[1], "generation 2");
    dp_process_signal(worker, SIGCONT);
    dp_place_ended(worker, 0);
    dp_place_says(worker, "the servers are of another generation than 1");
    stop(&bed);
    assert_string_equal(digest(&bed), wanted);
}

static void stores_that_a_restore_missed_are_refused(void **state)
{
    struct bed bed = made(state, "c");
    dp_place_says(bed.server[0], "generation 1");
    stop(&bed);
    set_history(&bed, 0, 2);
    bed.server[0] = dp_place_server(bed.place, bed.conf, 0);
    struct dp_process *second =
        dp_place_try(bed.place, 2, "downpour-server", "--cluster", bed.conf, "--server", "1");
    dp_place_says(second, "a restore did not reach all servers");
    dp_place_says(second, "c-1/shard-0001 is of generation 1");
    set_history(&bed, 1, 2);
    bed.server[1] = dp_place_server(bed.place, bed.conf, 1);
    stop(&bed);
    dp_place_says(dp_place_try(bed.place, 0, "downpour", "inspect", store(&bed, 1)),
                  "generation 2, history fedcba9876543210");
}

/* It cannot be told from a run that somebody means: others hear the cause, and --continue takes the number behind it. */
static void a_run_goes_on_above_one_that_is_far_ahead(void **state)
{
    struct bed bed = {.place = *state, .conf = dp_place_path(*state, "run/cluster.conf")};
    struct dp_error err = {0};
    const char *dir = dp_place_path(bed.place, "run");
    const uint32_t far = (uint32_t)dp_run_last((uint64_t)time(NULL)) - 3600;
    const struct dp_join join = {.run = far, .members = 1, .mode = DP_SYNC};
    struct dp_process *run = dp_place_start(
        bed.place, "downpour", "run", "--dir", dir, "--servers", "2", "--workers", "2", "--consistency",
        "sync", "--model", "mlp:64-64-10", "--train", DP_DIGITS_TRAIN, "--epochs", "100000", NULL);
    dp_place_awaits_file(bed.place, dp_place_path(bed.place, "run/log/worker-0.log"), "epoch 2 of");
    struct dp_client *client = open_client(&bed, 0, DP_OK);
    /* One shard is enough; the run may end its servers before the other one has it. */
    enum dp_status joined = dp_client_join(client, &join, 3000, &err);
    if (joined != DP_OK && dp_status_class((int)joined) != DP_CLASS_RETRY)
        fail_msg("%s", err.text);
    dp_client_close(&client);
    assert_int_not_equal(dp_process_wait(run, DP_SOON_MS * DP_PATIENCE), DP_PROCESS_RUNS);
    dp_place_says(run, dp_place_text(bed.place, "use a run number above %u", (unsigned)far));
    run = dp_place_try(bed.place, 0, "downpour", "run", "--dir", dir, "--continue", "--epochs", "2");
    dp_place_says(run, dp_place_text(bed.place, "this is run %u", (unsigned)far + 1));
}

int main(void)
{
#define DP_GENERATIONS_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        DP_GENERATIONS_TEST(a_client_of_before_changes_nothing),
        DP_GENERATIONS_TEST(a_worker_goes_on_after_a_restore),
        DP_GENERATIONS_TEST(stores_that_a_restore_missed_are_refused),
        DP_GENERATIONS_TEST(a_run_goes_on_above_one_that_is_far_ahead),
    };
    return cmocka_run_group_tests_name("generations", tests, NULL, NULL);
}
