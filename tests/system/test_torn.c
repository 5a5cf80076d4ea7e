/* Checkpoints while some shards have a push that others lack. Goal: of killed workers it fails and names one; it is made when they are
 * started again, and over the whole history, behind its restore onto another number of shards too, every minibatch counts once
 * at every place of the key space (train_ledger.h). Of a client that does not come back the push is listed, not waited for a second time,
 * and refused by the restored cluster. Method: a server is killed, so that pushes reach the other one only, then those that made them end. */
#include "common/client/client_inner.h"
#include "common/config/cluster_client.h"
#include "tests/lib/test.h"
#include "tests/system/place.h"
#include "tests/system/train_ledger.h"
#include "tests/system/train_ledger_read.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define WORKERS       4u
#define EPOCHS        48u /* more than all tries take */
#define BATCH         8u
#define BATCHES       180u /* of 1,437 digits */
#define TRIES         20u
#define FLIGHT        80.0 /* pushes, as each shard counts them */
#define LEDGER_WORKER DP_TESTS_BIN "/ledger_worker"
#define DOWN          "is down, or far behind. Start it again"
#define LONG          "600s" /* longer than this test may take */

struct torn {
    struct dp_place *place;
    struct dp_place_cluster cluster;
    const char *conf, *training;
    struct dp_process *server[2], *worker[WORKERS];
};

static void as(struct torn *t, const char *file, uint32_t servers, uint32_t shards)
{
    t->cluster = (struct dp_place_cluster){.file = file,
                                           .servers = servers,
                                           .shards = shards,
                                           .workers = WORKERS,
                                           .epochs = EPOCHS,
                                           .batch = BATCH,
                                           .rate = "0.0078125",
                                           .timeout_ms = 60000,
                                           .training = t->training,
                                           .top = "id = 77; journal_bytes = \"64MiB\";"};
    t->conf = dp_place_conf(t->place, &t->cluster);
}

static void start_servers(struct torn *t)
{
    for (uint32_t i = 0; i < t->cluster.servers; i++)
        t->server[i] = dp_place_server(t->place, t->conf, i);
}

static void start_worker(struct torn *t, uint32_t worker)
{
    t->worker[worker] =
        dp_place_start(t->place, LEDGER_WORKER, "--cluster", t->conf, "--worker",
                       dp_place_text(t->place, "%u", (unsigned)worker), "--device", "cpu", NULL);
}

static void kill_one(struct dp_process *process)
{
    dp_process_signal(process, SIGKILL);
    dp_place_ended(process, -SIGKILL);
}

/* It may have trained to its end before. */
static void kill_worker(struct dp_process *worker)
{
    dp_process_signal(worker, SIGKILL);
    if (dp_process_end(worker, 2 * DP_SOON_MS) != 0)
        dp_place_ended(worker, -SIGKILL);
}

static const char *to(const struct torn *t)
{
    return dp_place_path(t->place, "%s-checkpoints", t->cluster.file);
}

static struct dp_process *start_checkpoint(const struct torn *t, const char *wait)
{
    return dp_place_start(t->place, "downpour", "checkpoint", "--cluster", t->conf, "--to", to(t), "--wait",
                          wait, "--keep", "1", NULL);
}

/* Whether one of the killed workers has made a push that only some shards have. */
static bool is_refused(const struct torn *t)
{
    struct dp_process *made = start_checkpoint(t, "3s");
    int code = dp_process_wait(made, DP_SOON_MS * DP_PATIENCE);
    if (code == 0)
        return false;
    dp_place_ended(made, 2);
    dp_place_says(made, DOWN);
    for (uint32_t i = 0; i < WORKERS / 2; i++)
        assert_null(strstr(dp_process_err(made), dp_place_text(t->place, "worker %u is down", (unsigned)i)));
    return true;
}

static void restore(struct torn *t, const char *file, uint32_t servers, uint32_t shards)
{
    const char *from = to(t);
    as(t, file, servers, shards);
    (void)dp_place_try(t->place, 0, "downpour", "restore", "--cluster", t->conf, "--from", from);
    start_servers(t);
}

/* All train: pushes come that nobody had under way when the worker that was started last began. */
static void await_pushes(struct torn *t)
{
    double began = dp_place_counter(t->place, t->conf, "pushes"), now = began;
    for (uint64_t end = dp_process_now_ms() + DP_SOON_MS;
         now < began + FLIGHT && dp_process_now_ms() < end;) {
        dp_process_pause();
        now = dp_place_counter(t->place, t->conf, "pushes");
    }
    assert_true(now >= began + FLIGHT);
}

/* The last server and half of the workers die, in this order: what these push meanwhile is on the first server only. */
static void tear(struct torn *t, uint32_t pauses)
{
    uint32_t last = t->cluster.servers - 1;
    kill_one(t->server[last]);
    for (uint32_t i = 0; i < pauses; i++)
        dp_process_pause();
    for (uint32_t i = WORKERS / 2; i < WORKERS; i++)
        kill_one(t->worker[i]);
    t->server[last] = dp_place_server(t->place, t->conf, last);
}

static void start_killed(struct torn *t)
{
    for (uint32_t i = WORKERS / 2; i < WORKERS; i++) {
        start_worker(t, i);
        dp_place_awaits(t->worker[i], "continues at epoch");
    }
}

/* Until a push is torn. Then the checkpoint waits for the workers that complete it. */
static void checkpoint_torn(struct torn *t)
{
    bool is_torn = false;
    for (uint32_t i = 0; i < TRIES && !is_torn; i++) {
        if (i > 0)
            start_killed(t);
        await_pushes(t);
        tear(t, 1 + i * i);
        is_torn = is_refused(t);
    }
    assert_true(is_torn);
    struct dp_process *made = start_checkpoint(t, LONG);
    start_killed(t);
    dp_place_ended(made, 0);
    dp_place_says(made, "of run 1");
    assert_null(strstr(dp_process_out(made), "some shards only"));
    dp_place_says(dp_place_try(t->place, 0, "downpour", "inspect", to(t), "--verify"),
                  "as their manifests say");
    for (uint32_t i = 0; i < WORKERS; i++)
        kill_worker(t->worker[i]);
    for (uint32_t i = 0; i < t->cluster.servers; i++)
        kill_one(t->server[i]);
}

static void check_push(void *context, uint32_t epoch, uint32_t number, const float *counts)
{
    uint32_t numbers = *(const uint32_t *)context;
    float want = number < numbers ? 1.0f : 0.0f;
    for (uint32_t i = 0; i < DP_TRAIN_LEDGER_PLACES; i++)
        if (counts[i] < want || counts[i] > want)
            fail_msg("push %u of epoch %u was counted %g times at place %u", (unsigned)number,
                     (unsigned)epoch + 1, (double)counts[i], (unsigned)i);
}

static void train_to_the_end(struct torn *t, uint32_t numbers)
{
    for (uint32_t i = 0; i < WORKERS; i++)
        start_worker(t, i);
    for (uint32_t i = 0; i < WORKERS; i++)
        dp_place_ended(t->worker[i], 0);
    dp_train_ledger_read(t->conf, EPOCHS, numbers + 1, check_push, &numbers);
    for (uint32_t i = 0; i < t->cluster.servers; i++)
        dp_place_stops_cleanly(t->server[i]);
}

static void torn(struct torn *t)
{
    as(t, "c", 2, 2);
    start_servers(t);
    for (uint32_t i = 0; i < WORKERS; i++)
        start_worker(t, i);
    dp_place_awaits(t->worker[0], "epoch 1 of");
    checkpoint_torn(t);
}

static void every_minibatch_counts_once(void **state)
{
    struct torn t = {.place = *state, .training = "push_every = 3; fetch_every = 2;"};
    torn(&t);
    restore(&t, "three", 1, 3);
    train_to_the_end(&t, BATCHES / 3);
}

/* ---- a client that does not train */

static struct dp_client *open_client(const struct torn *t)
{
    struct dp_cluster *cluster = NULL;
    struct dp_client *client = NULL;
    struct dp_error err = {0};
    const struct dp_client_options options = {
        .name = "test", .retry_ms = 200, .open_timeout_ms = DP_SOON_MS * DP_PATIENCE};
    assert_int_equal(dp_cluster_read(t->conf, &cluster, &err), DP_OK);
    if (dp_cluster_client(cluster, &options, &client, &err) != DP_OK)
        fail_msg("%s", err.text);
    dp_cluster_free(&cluster);
    return client;
}

/* Without rows: each shard counts it all the same. */
static struct dp_ticket issue(struct dp_client *client, uint64_t stream, uint64_t number)
{
    const struct dp_push_options options = {.rate = 1, .stream = stream, .number = number};
    struct dp_ticket ticket;
    struct dp_error err = {0};
    if (dp_client_push(client, &options, NULL, 0, DP_SOON_MS * DP_PATIENCE, &ticket, &err) != DP_OK)
        fail_msg("%s", err.text);
    return ticket;
}

static enum dp_status push(struct dp_client *client, uint64_t stream, uint64_t number, struct dp_error *err)
{
    struct dp_ticket ticket = issue(client, stream, number);
    return dp_client_wait(client, &ticket, DP_SOON_MS * DP_PATIENCE, NULL, err);
}

/* Push 1 of the stream that it returns is on shard 0 only. */
static uint64_t tear_client(struct torn *t)
{
    struct dp_error err = {0};
    struct dp_client *client = open_client(t);
    if (push(client, 0, 0, &err) != DP_OK)
        fail_msg("%s", err.text);
    uint64_t stream = client->session.stream;
    kill_one(t->server[1]);
    struct dp_ticket ticket = issue(client, 0, 0);
    do /* until shard 1 is the one that it waits for */
        assert_int_equal(dp_client_wait(client, &ticket, 100, NULL, &err), DP_TIMEOUT);
    while (!strstr(err.text, "shard 1"));
    dp_client_close(&client);
    t->server[1] = dp_place_server(t->place, t->conf, 1);
    return stream;
}

static void a_clients_push_is_listed_and_refused(void **state)
{
    struct torn t = {.place = *state, .training = ""};
    struct dp_error err = {0};
    as(&t, "c", 2, 1);
    start_servers(&t);
    uint64_t stream = tear_client(&t);
    const char *const wait[] = {"1s", LONG}; /* the second one knows that it does not come */
    for (uint32_t i = 0; i < 2; i++) {
        struct dp_process *made = start_checkpoint(&t, wait[i]);
        dp_place_ended(made, 0);
        dp_place_says(made, "1 pushes are on some shards only");
    }
    dp_place_says(dp_place_try(t.place, 0, "downpour", "inspect", to(&t)), "1 partial pushes");
    for (uint32_t i = 0; i < 2; i++)
        kill_one(t.server[i]);
    restore(&t, "again", 2, 1);
    struct dp_client *client = open_client(&t);
    assert_int_equal(push(client, stream, 1, &err), DP_PARTIAL);
    assert_non_null(strstr(err.text, "on some shards only"));
    if (push(client, stream, 2, &err) != DP_OK)
        fail_msg("%s", err.text);
    dp_client_close(&client);
    for (uint32_t i = 0; i < 2; i++)
        dp_place_stops_cleanly(t.server[i]);
}

int main(void)
{
#define TORN_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        TORN_TEST(every_minibatch_counts_once),
        TORN_TEST(a_clients_push_is_listed_and_refused),
    };
    return cmocka_run_group_tests_name("checkpoints of torn pushes", tests, NULL, NULL);
}
