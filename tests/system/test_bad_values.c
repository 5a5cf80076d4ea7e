/* Values of the register that an older build accepted make servers wait and workers say the cause; the remedy that they name works.
 * A run far ahead leaves higher numbers. (What a stranger sets is refused: tests/unit/server/control/test_register_names.) */
#include "common/base/bytes.h"
#include "common/client/register_store.h"
#include "common/config/cluster.h"
#include "common/env/disk.h"
#include "common/model/stream.h"
#include "server/control/register.h"
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 60000u
enum { SERVERS = 2, WORKERS = 2, NAMES = 5, LARGE = 65536 };

struct bed {
    struct dp_place *place;
    struct dp_place_cluster cluster;
    const char *conf;
    uint64_t id;
    char shard[SERVERS][DP_HOST_MAX + 32], control[DP_HOST_MAX + 32];
    struct dp_process *server[SERVERS], *worker[WORKERS];
    struct dp_client *client; /* the stranger's */
};

static const char *make_conf(struct bed *bed)
{
    bed->conf = dp_place_conf(bed->place, &bed->cluster);
    return bed->conf;
}

static void start_servers(struct bed *bed)
{
    for (uint32_t i = 0; i < SERVERS; i++)
        bed->server[i] = dp_place_server(bed->place, bed->conf, i);
}

static void stop_servers(struct bed *bed)
{
    for (uint32_t i = 0; i < SERVERS; i++)
        dp_place_stops_cleanly(bed->server[i]);
}

static void start_workers(struct bed *bed)
{
    for (uint32_t w = 0; w < WORKERS; w++)
        bed->worker[w] = dp_place_worker(bed->place, bed->conf, w);
}

static void run_ends_well(struct bed *bed)
{
    for (uint32_t w = 0; w < WORKERS; w++)
        dp_place_ended(bed->worker[w], 0);
    assert_true(dp_place_number(bed->place, dp_place_path(bed->place, "c.json"), "stop.epoch") ==
                bed->cluster.epochs);
}

static void trains_as(struct bed *bed, uint32_t run)
{
    bed->cluster.run = run;
    (void)make_conf(bed);
    start_workers(bed);
    run_ends_well(bed);
}

static void open_client(struct bed *bed)
{
    const char *const shards[] = {bed->shard[0], bed->shard[1]};
    const struct dp_client_options options = {.name = "stranger",
                                              .cluster = bed->id,
                                              .shards = shards,
                                              .shard_count = SERVERS,
                                              .control = bed->control,
                                              .retry_ms = 200};
    struct dp_error err = {0};
    if (dp_client_open(&options, &bed->client, &err) != DP_OK)
        fail_msg("%s", err.text);
}

/* What a stranger needs: one shard on each server. */
static void read_endpoints(struct bed *bed, const char *conf)
{
    struct dp_cluster *cluster = NULL;
    struct dp_error err = {0};
    if (dp_cluster_read(conf, &cluster, &err) != DP_OK)
        fail_msg("%s", err.text);
    bed->id = cluster->id;
    assert_int_equal(dp_cluster_shards(cluster), SERVERS);
    for (uint32_t i = 0; i < SERVERS; i++)
        dp_cluster_shard_endpoint(cluster, i, bed->shard[i], sizeof bed->shard[i]);
    dp_cluster_control_endpoint(cluster, 0, bed->control, sizeof bed->control);
    dp_cluster_free(&cluster);
}

static int setup(void **state)
{
    struct bed *bed = calloc(1, sizeof *bed);
    if (!bed || dp_place_setup((void **)&bed->place) != 0)
        return -1;
    *state = bed;
    bed->cluster = (struct dp_place_cluster){
        .servers = SERVERS,
        .workers = WORKERS,
        .epochs = 6,
        .data = "scale = 0.0625; validation_share = 0.2;",
        .training = "consistency = \"sync\"; stop_at = \"loss:0.000001\"; patience = 35;"};
    read_endpoints(bed, make_conf(bed));
    start_servers(bed);
    return 0;
}

static int teardown(void **state)
{
    struct bed *bed = *state;
    dp_client_close(&bed->client);
    int failed = dp_place_teardown((void **)&bed->place);
    free(bed);
    return failed;
}

/* ---- a stranger */

struct found { /* a value, as the stranger read it last */
    char name[32];
    struct dp_register_value is, older;
};

/* It cannot be told from a run that somebody means: others hear the cause, and the number that it names is free. */
static void a_run_far_ahead_leaves_higher_numbers(void **state)
{
    struct bed *bed = *state;
    struct dp_error err = {0};
    const uint32_t far = (uint32_t)dp_run_last((uint64_t)time(NULL)) - 3600;
    const struct dp_join join = {.run = far, .members = 1, .mode = DP_SYNC};
    start_workers(bed);
    dp_place_awaits(bed->worker[0], "epoch 1 of");
    open_client(bed);
    if (dp_client_join(bed->client, &join, WAIT_MS, &err) != DP_OK)
        fail_msg("%s", err.text);
    const char *says = dp_place_text(bed->place, "run 1 is over: run %u has begun", (unsigned)far),
               *remedy = dp_place_text(bed->place, "above %u", (unsigned)far);
    for (int again = 0; again < 2; again++) {
        for (uint32_t w = 0; w < WORKERS; w++) {
            assert_int_not_equal(dp_process_wait(bed->worker[w], WAIT_MS), DP_PROCESS_RUNS);
            dp_place_says(bed->worker[w], says);
            dp_place_says(bed->worker[w], remedy);
        }
        if (!again)
            start_workers(bed);
    }
    trains_as(bed, far + 1);
    stop_servers(bed);
}

/* --continue finds it by itself. */
static void a_run_goes_on_above_one_that_is_far_ahead(void **state)
{
    struct bed *bed = *state;
    struct dp_error err = {0};
    const char *dir = dp_place_path(bed->place, "run");
    const uint32_t far = (uint32_t)dp_run_last((uint64_t)time(NULL)) - 3600;
    const struct dp_join join = {.run = far, .members = 1, .mode = DP_SYNC};
    stop_servers(bed);
    struct dp_process *run =
        dp_place_start(bed->place, "downpour", "run", "--dir", dir, "--servers", "2", "--consistency", "sync",
                       "--model", "mlp:64-64-10", "--train", DP_DIGITS_TRAIN, "--epochs", "100000", NULL);
    dp_place_awaits_file(bed->place, dp_place_path(bed->place, "run/log/worker-0.log"), "epoch 2 of");
    read_endpoints(bed, dp_place_path(bed->place, "run/cluster.conf"));
    open_client(bed);
    /* One shard is enough; the run may end its servers before the other one has it. */
    enum dp_status joined = dp_client_join(bed->client, &join, 3000, &err);
    if (joined != DP_OK && dp_status_class((int)joined) != DP_CLASS_RETRY)
        fail_msg("%s", err.text);
    dp_client_close(&bed->client);
    assert_int_not_equal(dp_process_wait(run, WAIT_MS), DP_PROCESS_RUNS);
    dp_place_says(run, dp_place_text(bed->place, "use a run number above %u", (unsigned)far));
    run = dp_place_try(bed->place, 0, "downpour", "run", "--dir", dir, "--continue", "--epochs", "2");
    dp_place_says(run, dp_place_text(bed->place, "this is run %u", (unsigned)far + 1));
}

/* ---- what an older build accepted */

static void plant(struct bed *bed, const char *name, const void *bytes, size_t size)
{
    struct dp_control_register *values = NULL;
    struct dp_control_register_entry now;
    struct dp_disk disk;
    struct dp_error err = {0};
    bool made;
    assert_int_equal(dp_disk_open(dp_place_path(bed->place, "c-0"), &disk, &err), DP_OK);
    const struct dp_control_register_options options = {.disk = &disk};
    assert_int_equal(dp_control_register_open(&options, &values, &made, &err), DP_OK);
    assert_int_equal(dp_control_register_get(values, name, &now, &err), DP_OK);
    const struct dp_control_register_change change = {
        .name = name, .expected = now.version, .nonce = 77, .bytes = bytes, .size = size};
    assert_int_equal(dp_control_register_set(values, &change, &now, &err), DP_OK);
    dp_control_register_close(&values);
    dp_disk_close(&disk);
}

static const char *digest(struct bed *bed)
{
    return dp_place_digest(bed->place, dp_place_path(bed->place, "c-0"), dp_place_path(bed->place, "c-1"));
}

static struct dp_process *start_server(struct bed *bed, uint32_t number, const char *flag)
{
    return dp_place_start(bed->place, "downpour-server", "--cluster", bed->conf, "--server",
                          dp_place_text(bed->place, "%u", (unsigned)number), flag, NULL);
}

static void servers_wait_for_stores_that_can_be_read(void **state)
{
    struct bed *bed = *state;
    trains_as(bed, 1);
    stop_servers(bed);
    const char *before = digest(bed);
    plant(bed, "stores", "0123456789abcdef", 16);
    for (uint32_t i = 0; i < SERVERS; i++) {
        bed->server[i] = start_server(bed, i, NULL);
        dp_place_awaits(bed->server[i], "waits, since it cannot check that its store is the right one");
    }
    bed->cluster.timeout_ms = 2000;
    bed->cluster.run = 2;
    (void)make_conf(bed);
    start_workers(bed);
    for (uint32_t w = 0; w < WORKERS; w++) {
        assert_int_not_equal(dp_process_wait(bed->worker[w], WAIT_MS), DP_PROCESS_RUNS);
        dp_place_says(bed->worker[w], "value 'stores' (16 bytes) is not of the format");
        dp_place_says(bed->worker[w], "--replace-store");
    }
    for (uint32_t i = 0; i < SERVERS; i++) {
        assert_int_equal(dp_process_wait(bed->server[i], 0), DP_PROCESS_RUNS);
        dp_process_signal(bed->server[i], SIGTERM);
        dp_place_ended(bed->server[i], 0);
    }
    for (uint32_t i = 0; i < SERVERS; i++) {
        bed->server[i] = start_server(bed, i, "--replace-store");
        dp_place_awaits(bed->server[i], "ready:");
    }
    stop_servers(bed);
    assert_string_equal(digest(bed), before);
    start_servers(bed);
    bed->cluster.timeout_ms = 30000;
    trains_as(bed, 2);
    stop_servers(bed);
}

int main(void)
{
#define IN_BED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        IN_BED(a_run_far_ahead_leaves_higher_numbers),
        IN_BED(a_run_goes_on_above_one_that_is_far_ahead),
        IN_BED(servers_wait_for_stores_that_can_be_read),
    };
    return cmocka_run_group_tests_name("bad values", tests, NULL, NULL);
}
