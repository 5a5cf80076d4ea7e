/* Checkpoints with pushes that a killed worker had brought to some shards only. Goal: over the whole history, before the checkpoint and
 * behind its restores onto other numbers of shards, every minibatch counts once at every place of the key space
 * (train_ledger.h). Method: a server is killed, so that pushes reach the other one only, then the workers that made them are,
 * and the checkpoint waits one second for them. All are killed; the restored cluster makes these minibatches again. */
#include "tests/lib/test.h"
#include "tests/system/place.h"
#include "tests/system/train_ledger.h"
#include "tests/system/train_ledger_read.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define WORKERS       4u
#define EPOCHS        24u /* more than all tries take */
#define BATCH         8u
#define BATCHES       180u /* of 1,437 digits */
#define TRIES         20u
#define FLIGHT        80.0 /* pushes, as each shard counts them */
#define LEDGER_WORKER DP_TESTS_BIN "/ledger_worker"
#define PARTIAL       "pushes are on some shards only"

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

/* Whether pushes are on some shards only. */
static bool checkpoint(const struct torn *t)
{
    struct dp_process *made = dp_place_try(t->place, 0, "downpour", "checkpoint", "--cluster", t->conf,
                                           "--to", to(t), "--wait", "1s", "--keep", "1");
    dp_place_says(made, "of run 1");
    return strstr(dp_process_out(made), PARTIAL) != NULL;
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

/* A checkpoint with torn pushes: where none was torn, once more. */
static void checkpoint_torn(struct torn *t)
{
    bool is_torn = false;
    for (uint32_t i = 0; i < TRIES && !is_torn; i++) {
        if (i > 0)
            for (uint32_t w = WORKERS / 2; w < WORKERS; w++) {
                start_worker(t, w);
                dp_place_awaits(t->worker[w], "continues at epoch");
            }
        await_pushes(t);
        tear(t, 1 + i * i);
        is_torn = checkpoint(t);
    }
    assert_true(is_torn);
    dp_place_says(dp_place_try(t->place, 0, "downpour", "checkpoints", to(t)), "partial pushes");
    dp_place_says(dp_place_try(t->place, 0, "downpour", "verify", to(t)), "all as their manifests say");
    for (uint32_t i = 0; i < WORKERS / 2; i++)
        kill_one(t->worker[i]);
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

/* Onto three shards, of which the second one has a part of the torn pushes. */
static void every_minibatch_counts_once(void **state)
{
    struct torn t = {.place = *state, .training = ""};
    torn(&t);
    restore(&t, "three", 1, 3);
    train_to_the_end(&t, BATCHES);
}

/* The restored cluster is checkpointed and restored before the pushes came again; and a server dies when they have. */
static void so_it_does_behind_two_restores(void **state)
{
    struct torn t = {.place = *state, .training = "push_every = 3; fetch_every = 2;"};
    torn(&t);
    restore(&t, "three", 1, 3);
    assert_true(checkpoint(&t));
    kill_one(t.server[0]);
    restore(&t, "five", 1, 5);
    for (uint32_t i = 0; i < WORKERS; i++)
        start_worker(&t, i);
    dp_place_awaits(t.worker[WORKERS - 1], "continues at epoch");
    kill_one(t.server[0]);
    t.server[0] = dp_place_server(t.place, t.conf, 0);
    for (uint32_t i = 0; i < WORKERS; i++)
        kill_worker(t.worker[i]);
    train_to_the_end(&t, BATCHES / 3);
}

int main(void)
{
#define TORN_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        TORN_TEST(every_minibatch_counts_once),
        TORN_TEST(so_it_does_behind_two_restores),
    };
    return cmocka_run_group_tests_name("checkpoints of torn pushes", tests, NULL, NULL);
}
