/* A training of two workers, with overlap, on two servers, under kill -9 of either: every minibatch counts exactly once at
 * every place of the key space. Each push adds 1 to a row of its own at each (train_ledger.h); at the end each row is 1.
 * DP_LONG=1: 10 kills of workers and 10 of servers instead of 2 and 2; DP_TEST_SEED: other moments. */
#include "tests/lib/test.h"
#include "tests/system/place.h"
#include "tests/system/train_ledger.h"
#include "tests/system/train_ledger_read.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REST_MS       600000
#define SERVERS       2u
#define SHARDS        2u /* of each */
#define WORKERS       2u
#define WORKERS_MAX   4u
#define BATCH         8u
#define BATCHES       180u /* of 1,437 digits */
#define LEDGER_WORKER DP_TESTS_BIN "/ledger_worker"
#define APART         3u /* epochs between two kills */

struct run {
    struct dp_place *place;
    struct dp_place_cluster cluster;
    const char *conf;
    struct dp_process *server[SERVERS], *worker[WORKERS_MAX]; /* NULL: killed for good */
    uint32_t workers, timeout_ms;                             /* timeout: 0: a minute */
    const char *late; /* NULL, or a worker that has a device that copies while it computes */
    uint32_t numbers; /* pushes of an epoch, of all workers */
    uint64_t random;
};

static uint64_t draw(struct run *run, uint64_t below)
{
    run->random = run->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (run->random >> 33) % below;
}

static void seed(struct run *run)
{
    const char *given = getenv("DP_TEST_SEED");
    uint64_t number = given ? (uint64_t)strtoull(given, NULL, 10) : (uint64_t)(uint32_t)getpid();
    print_message("moments by DP_TEST_SEED=%llu\n", (unsigned long long)number);
    run->random = number * UINT64_C(0x9e3779b97f4a7c15);
}

static uint32_t kills(void) /* of workers, and as many of servers */
{
    return getenv("DP_LONG") ? 10 : 2;
}

static void start_worker(struct run *run, uint32_t worker)
{
    const char *number = dp_place_text(run->place, "%u", (unsigned)worker);
    run->worker[worker] =
        dp_place_start(run->place, run->late ? run->late : LEDGER_WORKER, "--cluster", run->conf, "--worker",
                       number, "--device", run->late ? "cuda:0" : "cpu", NULL);
}

static void start_all(struct run *run, const char *training)
{
    /* Two do not wait for each other: there is to be something left for one whose peer was killed each time. (Four meet at the end of each
     * epoch.) */
    uint32_t times = getenv("DP_LONG") ? 6 : BATCHES / run->numbers;
    run->cluster =
        (struct dp_place_cluster){.servers = SERVERS,
                                  .shards = SHARDS,
                                  .workers = run->workers,
                                  .epochs = (APART * 2 * kills() + (run->workers > WORKERS ? 6 : 20)) * times,
                                  .batch = BATCH,
                                  .rate = "0.0078125",
                                  .timeout_ms = run->timeout_ms ? run->timeout_ms : 60000,
                                  .training = training,
                                  .top = "journal_bytes = \"16MiB\";"};
    run->conf = dp_place_conf(run->place, &run->cluster);
    for (uint32_t i = 0; i < SERVERS; i++)
        run->server[i] = dp_place_server(run->place, run->conf, i);
    for (uint32_t i = 0; i < run->workers; i++)
        start_worker(run, i);
}

static const char *epoch_text(char text[32], uint32_t epoch)
{
    (void)snprintf(text, 32, "epoch %u of", (unsigned)epoch);
    return text;
}

/* Until the worker has finished this epoch, or a later one: it may have been started again since. Then a moment within the
 * epoch that follows. */
static void wait_for(struct run *run, uint32_t worker, uint32_t epoch)
{
    struct dp_process *process = run->worker[worker];
    uint64_t deadline = dp_process_now_ms() + (uint64_t)DP_SOON_MS * DP_PATIENCE;
    bool there = false;
    char text[32];
    while (!there && dp_process_now_ms() < deadline) {
        dp_process_pause();
        const char *said = dp_process_err(process);
        for (uint32_t e = epoch; !there && e < run->cluster.epochs; e++)
            there = strstr(said, epoch_text(text, e)) != NULL;
    }
    if (!there)
        dp_place_awaits(process, "an epoch that did not come"); /* shows what it said */
    for (uint64_t pauses = draw(run, 8); pauses > 0; pauses--)
        dp_process_pause();
}

static void kill_worker(struct run *run, uint32_t worker)
{
    dp_process_signal(run->worker[worker], SIGKILL);
    dp_place_ended(run->worker[worker], -SIGKILL);
    start_worker(run, worker);
    dp_place_awaits(run->worker[worker], "continues at epoch");
}

static void kill_server(struct run *run, uint32_t server)
{
    dp_process_signal(run->server[server], SIGKILL);
    dp_place_ended(run->server[server], -SIGKILL);
    run->server[server] = dp_place_server(run->place, run->conf, server);
}

static void check_push(void *context, uint32_t epoch, uint32_t number, const float *counts)
{
    const struct run *run = context;
    float want = number < run->numbers ? 1.0f : 0.0f;
    for (uint32_t i = 0; i < DP_TRAIN_LEDGER_PLACES; i++)
        if (counts[i] < want || counts[i] > want)
            fail_msg("push %u of epoch %u was counted %g times at place %u", (unsigned)number,
                     (unsigned)epoch + 1, (double)counts[i], (unsigned)i);
}

/* All workers' pushes of all epochs, at every place, and one number more, which nobody pushed. */
static void check_ledger(struct run *run)
{
    dp_train_ledger_read(run->conf, run->cluster.epochs, run->numbers + 1, check_push, run);
}

static void all_end(struct run *run)
{
    for (uint32_t i = 0; i < run->workers; i++) {
        if (!run->worker[i])
            continue;
        (void)dp_process_wait(run->worker[i],
                              REST_MS); /* all epochs that are left, on a machine that others use, too */
        dp_place_ended(run->worker[i], 0);
    }
}

static void storm(struct run *run)
{
    seed(run);
    for (uint32_t i = 0; i < kills(); i++) {
        uint32_t epoch = 1 + 2 * APART * i;
        wait_for(run, i % WORKERS, epoch);
        kill_worker(run, i % WORKERS);
        wait_for(run, (i + 1) % WORKERS, epoch + APART);
        kill_server(run, i % SERVERS);
    }
    all_end(run);
    check_ledger(run);
    /* And it was counted right: whoever computed a minibatch, it is an example and a push of its worker. */
    const char *report = dp_place_path(run->place, "c.json");
    double examples = 0, pushes = 0;
    for (uint32_t i = 0; i < WORKERS; i++) {
        examples += dp_place_number(run->place, report,
                                    dp_place_text(run->place, "workers.%u.examples", (unsigned)i));
        pushes +=
            dp_place_number(run->place, report, dp_place_text(run->place, "workers.%u.pushes", (unsigned)i));
        /* What a killed worker had sent may arrive after its successor has asked: such a push is made again. */
        pushes += dp_place_number(run->place, report,
                                  dp_place_text(run->place, "workers.%u.staleness.repeated", (unsigned)i));
    }
    assert_true(examples == 1437.0 * run->cluster.epochs);
    assert_true(pushes >= (double)run->numbers * run->cluster.epochs);
    for (uint32_t i = 0; i < SERVERS; i++)
        dp_place_stops_cleanly(run->server[i]);
}

static void every_minibatch_counts_once_on_every_shard(void **state)
{
    struct run run = {.place = *state, .workers = WORKERS, .numbers = BATCHES};
    start_all(&run, "");
    storm(&run);
}

static void so_does_every_group(void **state)
{
    struct run run = {.place = *state, .workers = WORKERS, .numbers = BATCHES / 3};
    start_all(&run, "push_every = 3; fetch_every = 2;");
    storm(&run);
}

static void so_do_those_of_threads(void **state)
{
    struct run run = {.place = *state, .workers = WORKERS, .numbers = BATCHES / 3};
    start_all(&run, "threads = 2; push_every = 3;");
    storm(&run);
}

/* Killed with one step on the device and another one's push under way. */
static void so_does_every_step_of_a_device(void **state)
{
    struct run run = {.place = *state, .workers = WORKERS, .numbers = BATCHES};
    run.late = dp_place_text(*state, DP_LATE "/downpour-worker-%ld", (long)getpid());
    (void)unlink(run.late);
    assert_int_equal(link(LEDGER_WORKER, run.late), 0);
    start_all(&run, "");
    storm(&run);
    (void)unlink(run.late);
}

/* Four workers take minibatches from one list. One is killed and comes back, another one is killed for good: the rest do what they had
 * taken, and what was theirs of each evaluation. Both servers are killed too, the list's included. */
static void leased(void **state, const char *training, uint32_t numbers)
{
    struct run run = {.place = *state, .workers = 4, .timeout_ms = 10000, .numbers = numbers};
    start_all(&run, training);
    seed(&run);
    for (uint32_t i = 0; i < kills(); i++) {
        wait_for(&run, 1, 1 + 2 * APART * i);
        kill_worker(&run, 1);
        wait_for(&run, 0, 1 + 2 * APART * i + APART);
        kill_server(&run, i % SERVERS);
    }
    wait_for(&run, 2, 1 + 2 * APART * kills());
    dp_process_signal(run.worker[2], SIGKILL);
    dp_place_ended(run.worker[2], -SIGKILL);
    run.worker[2] = NULL;
    all_end(&run);
    check_ledger(&run);
    double portions = 0;
    for (uint32_t i = 0; i < run.workers; i++)
        portions += dp_place_number(run.place, dp_place_path(run.place, "c.json"),
                                    dp_place_text(run.place, "workers.%u.pushes", (unsigned)i));
    assert_true(portions > 0);
    for (uint32_t e = 0; e < run.cluster.epochs; e++)
        assert_true(dp_place_number(run.place, dp_place_path(run.place, "c.json"),
                                    dp_place_text(run.place, "epochs.%u.examples", (unsigned)e)) == 1437);
    for (uint32_t i = 0; i < SERVERS; i++)
        dp_place_stops_cleanly(run.server[i]);
}

static void so_does_every_leased_minibatch(void **state)
{
    leased(state, "work = \"leased\";", BATCHES);
}

int main(void)
{
#define DP_TRAIN_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        DP_TRAIN_TEST(every_minibatch_counts_once_on_every_shard),
        DP_TRAIN_TEST(so_does_every_group),
        DP_TRAIN_TEST(so_do_those_of_threads),
        DP_TRAIN_TEST(so_does_every_step_of_a_device),
        DP_TRAIN_TEST(so_does_every_leased_minibatch),
    };
    cmocka_set_test_filter(getenv("DP_TEST"));
    return cmocka_run_group_tests_name("ledger of a training", tests, NULL, NULL);
}
