/* Workers that wait for each other (--consistency ssp:S and sync), as real
 * processes. In sync the rows are those of the settings alone: for any number
 * of shards, with and without overlap, whoever is killed or stopped meanwhile.
 * In ssp no worker gets far ahead. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the 1,437 digits: 90 minibatches, so that with 4 workers two of them have
 * no minibatch in the last step of an epoch. */
#define MODEL   "mlp:64-32-10"
#define BATCHES 90u
/* Of a run whose processes are killed until epoch 10. */
#define LONG (getenv("DP_LONG") ? "60" : "24")

struct setup {
    const char *servers, *shards, *workers, *consistency, *epochs;
    const char *more[7]; /* up to six words */
};

static struct dp_process *start(struct dp_place *place, const char *dir, const struct setup *s)
{
    return dp_place_start(place, "downpour", "run", "--dir", dp_place_path(place, "%s", dir), "--servers",
                          s->servers, "--shards", s->shards, "--workers", s->workers, "--consistency",
                          s->consistency, "--model", MODEL, "--train", DP_DIGITS_TRAIN, "--scale", "0.0625",
                          "--batch", "16", "--rate", "0.005", "--epochs", s->epochs, "--journal-bytes",
                          "16MiB", s->more[0], s->more[1], s->more[2], s->more[3], s->more[4], s->more[5],
                          NULL);
}

static const char *digest_of(struct dp_place *place, const char *dir)
{
    return dp_place_run_digest(place, dp_place_path(place, "%s", dir));
}

static const char *digest(struct dp_place *place, const char *dir, const struct setup *s)
{
    dp_place_ended(start(place, dir, s), 0);
    return digest_of(place, dir);
}

static double number(struct dp_place *place, const char *dir, const char *where)
{
    return dp_place_number(place, dp_place_path(place, "%s/report.json", dir), where);
}

/* Each minibatch is one push of the report, an empty step none. */
static void all_is_trained(struct dp_place *place, const char *dir, uint32_t workers, uint32_t epochs)
{
    double pushes = 0, examples = 0;
    for (unsigned w = 0; w < workers; w++) {
        pushes += number(place, dir, dp_place_text(place, "workers.%u.pushes", w));
        examples += number(place, dir, dp_place_text(place, "workers.%u.examples", w));
    }
    assert_true(pushes == (double)(epochs * BATCHES));
    assert_true(examples == (double)(epochs * 1437));
}

static void sync_has_one_digest(void **state)
{
    struct dp_place *place = *state;
    static const char *const cuts[][2] = {{"1", "1"}, {"2", "2"}, {"1", "3"}};
    const char *first = NULL;
    for (size_t c = 0; c < 3; c++) {
        struct setup s = {cuts[c][0], cuts[c][1], "4", "sync", "2", {0}};
        const char *dir = dp_place_text(place, "run-%zu", c);
        const char *rows = digest(place, dir, &s);
        first = first ? first : rows;
        assert_string_equal(rows, first);
        all_is_trained(place, dir, 4, 2);
        s.more[0] = "--no-overlap";
        if (c == 2)
            assert_string_equal(digest(place, "calm", &s), first);
    }
}

/* Gradients that are pushed together, decaying rates, and a last step that is
 * short of minibatches and of workers. */
static void steps_of_several_minibatches_have_one_digest(void **state)
{
    struct dp_place *place = *state;
    static const char *const together[] = {"--accumulate", "--push-every"};
    for (size_t i = 0; i < 2; i++) {
        struct setup s = {"1",    "1", "4",
                          "sync", "2", {together[i], "11", "--rate", "decay=cosine,warmup=30"}};
        const char *one = digest(place, dp_place_text(place, "one-%zu", i), &s);
        s.shards = "3";
        assert_string_equal(digest(place, dp_place_text(place, "three-%zu", i), &s), one);
    }
}

/* A mean of one is that one. */
static void sync_of_one_worker_is_async_of_one(void **state)
{
    struct dp_place *place = *state;
    struct setup s = {"1", "2", "1", "async", "2", {"--no-overlap"}};
    const char *async = digest(place, "async", &s);
    s.consistency = "sync";
    assert_string_equal(digest(place, "sync", &s), async);
    s.more[0] = NULL;
    assert_string_equal(digest(place, "overlapped", &s), async);
}

/* Whether worker 0 has logged it, or one that follows: with a backup it may have had no share of it. */
static bool has_epoch(const char *log, uint32_t epoch)
{
    unsigned found = 0;
    for (const char *at = log; at && found < epoch && (at = strstr(at, " epoch ")); at++)
        (void)sscanf(at, " epoch %u of", &found);
    return found >= epoch;
}

static void await_epoch(struct dp_place *place, struct dp_process *run, const char *dir, uint32_t epoch)
{
    const char *log = dp_place_path(place, "%s/log/worker-0.log", dir);
    uint64_t deadline = dp_process_now_ms() + (uint64_t)DP_SOON_MS * DP_PATIENCE;
    for (bool said = false; !said;) {
        char *so_far = dp_process_slurp(log, NULL);
        said = has_epoch(so_far, epoch);
        free(so_far);
        if (dp_process_now_ms() >= deadline || dp_process_wait(run, 0) != DP_PROCESS_RUNS)
            fail_msg("worker-0.log has not come to epoch %u; the command: %s", (unsigned)epoch,
                     dp_process_err(run));
        dp_process_pause();
    }
}

/* Three workers' minibatches of 16 are one of 48, the last one of 45 with three shares of it. Planted: equal weights of the shares. */
static void a_step_of_sync_is_a_larger_minibatch(void **state)
{
    struct dp_place *place = *state;
    static const char *const flags[][3] = {{"3", "16", "sync"}, {"1", "48", "async"}};
    double loss[2][4];
    for (size_t i = 0; i < 2; i++) {
        const char *dir = dp_place_text(place, "run-%zu", i);
        (void)dp_place_try(place, 0, "downpour", "run", "--dir", dp_place_path(place, "%s", dir), "--workers",
                           flags[i][0], "--batch", flags[i][1], "--consistency", flags[i][2], "--no-overlap",
                           "--model", MODEL, "--train", DP_DIGITS_TRAIN, "--test", DP_DIGITS_TEST, "--scale",
                           "0.0625", "--optimizer", "sgd", "--rate", "0.3", "--epochs", "4");
        for (unsigned e = 0; e < 4; e++)
            loss[i][e] = number(place, dir, dp_place_text(place, "epochs.%u.test.loss", e));
    }
    for (unsigned e = 0; e < 4; e++)
        assert_true(fabs(loss[0][e] / loss[1][e] - 1) < 1e-5);
}

static void kill_one(struct dp_place *place, struct dp_process *run, const char *role, unsigned n)
{
    dp_place_kill_child(run, dp_place_text(place, "--%s %u", role, n));
    dp_place_awaits(run, dp_place_text(place, "%s %u was killed by signal 9", role, n));
}

/* Whoever is killed is started again, and what the others had done of a step
 * stays. */
static void killed(struct dp_place *place, const struct setup *s)
{
    struct dp_process *run = start(place, "killed", s);
    await_epoch(place, run, "killed", 2);
    kill_one(place, run, "worker", 1);
    await_epoch(place, run, "killed", 6);
    kill_one(place, run, "server", 1);
    await_epoch(place, run, "killed", 10);
    kill_one(place, run, "server", 0);
    kill_one(place, run, "worker", 2);
    dp_place_ended(run, 0);
    all_is_trained(place, "killed", 3, (uint32_t)strtoul(LONG, NULL, 10));
}

static void kills_do_not_change_sync(void **state)
{
    struct dp_place *place = *state;
    struct setup s = {"2", "1", "3", "sync", LONG, {0}};
    const char *calm = digest(place, "calm", &s);
    killed(place, &s);
    assert_string_equal(digest_of(place, "killed"), calm);
}

/* Stopped twice, and finished. */
static void a_resumed_sync_run_is_an_undisturbed_one(void **state)
{
    struct dp_place *place = *state;
    struct setup s = {"2", "1", "4", "sync", "30", {0}};
    static const uint32_t epochs[] = {2, 9};
    const char *calm = digest(place, "calm", &s);
    struct dp_process *run = start(place, "stopped", &s);
    for (size_t i = 0; i < 2; i++) {
        await_epoch(place, run, "stopped", epochs[i]);
        dp_process_signal(run, SIGINT);
        dp_place_ended(run, 130);
        run = dp_place_try(place, 2, "downpour", "run", "--dir", dp_place_path(place, "stopped"), "--resume",
                           "--consistency", "async");
        dp_place_says(run, "consistency");
        run = dp_place_start(place, "downpour", "run", "--dir", dp_place_path(place, "stopped"), "--resume",
                             NULL);
    }
    dp_place_ended(run, 0);
    all_is_trained(place, "stopped", 4, 30);
    assert_string_equal(digest_of(place, "stopped"), calm);
}

/* All leave after the same epoch, then the rows of the best one come back. */
static void the_best_weights_of_sync_stay(void **state)
{
    struct dp_place *place = *state;
    struct setup s = {"2", "1", "3", "sync", "200", {"--validation", "share=0.2", "--patience", "1"}};
    const char *two = digest(place, "two", &s);
    s.servers = "1", s.shards = "3";
    assert_string_equal(digest(place, "three", &s), two);
    assert_true(number(place, "two", "kept_epoch") == number(place, "three", "kept_epoch"));
    assert_true(number(place, "two", "kept_epoch") < number(place, "two", "stop.epoch"));
}

static void ssp_keeps_workers_together(void **state)
{
    struct dp_place *place = *state;
    static const struct {
        const char *mode;
        double slack;
        const char *fetch, *push;
    } cases[] = {{"ssp:0", 0, "1", "1"}, {"ssp:2", 2, "3", "1"}, {"ssp:1", 1, "4", "3"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct setup s = {"2", "1", "4", cases[i].mode, "6", {"--fetch-every", cases[i].fetch}};
        s.more[2] = "--push-every", s.more[3] = cases[i].push;
        const char *dir = dp_place_text(place, "run-%zu", i);
        dp_place_ended(start(place, dir, &s), 0);
        assert_true(number(place, dir, "staleness.clock_gap.max") <= cases[i].slack);
        assert_true(number(place, dir, "staleness.clock_gap.mean") <= cases[i].slack);
        if (i < 2)
            all_is_trained(place, dir, 4, 6);
    }
}

/* SSP's proof has it that a worker reads what it wrote (Ho et al. 2013). A pull ahead of the push does not. */
static void only_a_pull_ahead_lacks_own_pushes(void **state)
{
    struct dp_place *place = *state;
    static const char *const modes[] = {"ssp:1", "async"};
    for (size_t i = 0; i < 2 * sizeof modes / sizeof modes[0]; i++) {
        struct setup s = {"1", "1", "4", modes[i / 2], "2", {i % 2 ? NULL : "--no-overlap"}};
        const char *dir = dp_place_text(place, "run-%zu", i);
        struct dp_process *run = dp_place_ended_in(place, 0, start(place, dir, &s));
        double most = number(place, dir, "staleness.own.max"),
               mean = number(place, dir, "staleness.own.mean");
        assert_true(i % 2 ? most == 1 && mean > 0.5 : most == 0 && mean == 0);
        assert_true(number(place, dir, "staleness.examples.p50") == 16 * number(place, dir, "staleness.p50"));
        assert_true(number(place, dir, "staleness.clock_gap.mean") >= 0); /* in async, too */
        if (i % 2)
            dp_place_says(run, "of them are the worker's own: it pulls the next minibatch before it pushes");
    }
}

/* Workers without a minibatch take no part in steps. */
static void more_workers_than_minibatches_end_well(void **state)
{
    struct dp_place *place = *state;
    static const char *const modes[] = {"ssp:1", "sync"};
    for (size_t i = 0; i < 2; i++) {
        struct dp_process *run = dp_place_start(
            place, "downpour", "run", "--dir", dp_place_path(place, "%s", modes[i]), "--workers", "4",
            "--consistency", modes[i], "--model", MODEL, "--train", DP_DIGITS_TRAIN, "--test", DP_DIGITS_TEST,
            "--scale", "0.0625", "--batch", "719", "--epochs", "3", NULL);
        dp_place_ended(run, 0);
        assert_true(number(place, modes[i], "workers.0.pushes") == 3);
        assert_true(number(place, modes[i], "workers.1.pushes") == 3);
        assert_true(
            number(place, modes[i], "workers.2.pushes") + number(place, modes[i], "workers.3.pushes") == 0);
    }
}

/* Worker 1 cannot be of this run, and ends; worker 0 says so of whom it waits for. Planted: the note is not read. */
static void a_worker_that_failed_at_its_start_is_named(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = {
        .file = "good", .workers = 2, .epochs = 2, .training = "consistency = \"sync\";", .top = "id = 77;"};
    const char *good = dp_place_conf(place, &cluster);
    struct dp_process *server = dp_place_server(place, good, 0);
    struct dp_process *first = dp_place_worker(place, good, 0), *other;
    cluster.file = "other";
    cluster.training = "consistency = \"ssp:1\";";
    dp_place_awaits(first, "waits for worker 1, which has not joined yet");
    other = dp_place_worker(place, dp_place_conf(place, &cluster), 1);
    dp_place_ended(other, 2);
    dp_place_says(other, "consistency ssp:1");
    dp_place_awaits(first, "; worker 1 has failed, and its own messages say why");
    other = dp_place_worker(place, good, 1);
    dp_place_ended(other, 0);
    dp_place_ended(first, 0);
    dp_place_stops_cleanly(server);
}

/* Longer than any limit of a silent server: it is said who is waited for,
 * another process may take the place, a signal ends it. */
static void a_worker_that_is_away_is_waited_for(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = {
        .workers = 2, .epochs = 2, .timeout_ms = 1500, .training = "consistency = \"sync\";"};
    const char *conf = dp_place_conf(place, &cluster);
    struct dp_process *server = dp_place_server(place, conf, 0), *worker[2];
    struct dp_process *first = dp_place_worker(place, conf, 0);
    dp_place_awaits(first, "without a limit: ");
    dp_place_says(first, "waits for worker 1, which has not joined yet");
    worker[0] = dp_place_worker(place, conf, 0);
    dp_place_awaits(worker[0], "steps in an epoch");
    dp_place_ended(first, 2);
    dp_place_says(first, "another process");
    dp_place_awaits(server, "another process joined as worker 0; the one before was last heard");
    dp_place_awaits(worker[0], "continues at epoch 1, minibatch 2 of 45");
    dp_place_awaits(worker[0], "without a limit: ");
    dp_process_signal(worker[0], SIGTERM);
    dp_place_ended(worker[0], 3);
    dp_place_says(worker[0], "stopped by a signal while waiting");
    worker[0] = dp_place_worker(place, conf, 0);
    dp_place_awaits(worker[0], "steps in an epoch");
    worker[1] = dp_place_worker(place, conf, 1);
    for (uint32_t w = 0; w < 2; w++)
        dp_place_ended(worker[w], 0);
    /* While worker 1 started. */
    assert_true(dp_place_number(place, dp_place_path(place, "c.json"), "spent_s.waiting_rule") > 0.01);
    dp_place_stops_cleanly(server);
}

/* Started again and again in the same place, beside a process that trains: only what was pushed before the new one joined counts.
 * Planted: it goes on where the run was before it joined. */
static void is_replaced(struct dp_place *place, const char *file, const char *training)
{
    struct dp_place_cluster cluster = {.file = file, .workers = 2, .epochs = 40, .training = training};
    const char *conf = dp_place_conf(place, &cluster);
    struct dp_process *server = dp_place_server(place, conf, 0), *other = dp_place_worker(place, conf, 1);
    struct dp_process *now = dp_place_worker(place, conf, 0);
    dp_place_awaits(now, "epoch 3, test"); /* with a backup it may have no share of it */
    for (int i = 0; i < 3; i++) {
        struct dp_process *next = dp_place_worker(place, conf, 0);
        dp_place_ended(now, 2);
        dp_place_says(now, "another process");
        dp_place_says(next, "continues at ");
        now = next;
    }
    dp_place_ended(now, 0);
    dp_place_ended(other, 0);
    double pushes = 0;
    for (unsigned w = 0; w < 2; w++)
        pushes += dp_place_number(place, dp_place_path(place, "%s.json", file),
                                  dp_place_text(place, "workers.%u.pushes", w));
    assert_true(pushes == 40.0 * BATCHES);
    dp_place_stops_cleanly(server);
}

static void a_process_is_replaced_while_it_trains(void **state)
{
    is_replaced(*state, "ssp", "consistency = \"ssp:1\";");
    is_replaced(*state, "backup", "consistency = \"sync:1\";");
}

/* Goal    with a backup a worker that stands still holds nobody up; what it pushes too late is dropped, and counted once: by the
 *         servers, in its answers, in the report.
 * Method  one of three stops while the others train to their end. Shares are equal: no empty steps.
 * Planted a worker that is behind pushes its gradients for the open step; passed examples are not counted. */
static void a_backup_takes_a_stopped_workers_place(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = {
        .file = "backup", .test = "", .workers = 3, .epochs = 40, .training = "consistency = \"sync:1\";"};
    const char *conf = dp_place_conf(place, &cluster), *report = dp_place_path(place, "backup.json");
    struct dp_process *server = dp_place_server(place, conf, 0), *worker[3];
    worker[0] = dp_place_worker(place, conf, 0);
    dp_place_awaits(worker[0], "waits until all but 1 of 3 workers have pushed step 0");
    dp_place_says(worker[0], "worker 1 (not joined yet)");
    worker[1] = dp_place_worker(place, conf, 1);
    dp_place_awaits(worker[1], "epoch 3 of 40");
    worker[2] = dp_place_worker(place, conf, 2);
    dp_place_awaits(worker[2], "was committed without this worker: it continues at step");
    dp_process_signal(worker[2], SIGSTOP);
    dp_place_awaits(worker[0], "epoch 40 of 40");
    dp_place_awaits(worker[1], "epoch 40 of 40");
    dp_process_signal(worker[2], SIGCONT);
    for (uint32_t w = 0; w < 3; w++)
        dp_place_ended(worker[w], 0);
    double pushes = 0, examples = 0, passed = dp_place_number(place, report, "dropped.not_computed");
    for (unsigned w = 0; w < 3; w++) {
        pushes += dp_place_number(place, report, dp_place_text(place, "workers.%u.pushes", w));
        examples += dp_place_number(place, report, dp_place_text(place, "workers.%u.examples", w));
    }
    assert_true(pushes == 40.0 * BATCHES && examples == 40.0 * 1437);
    double dropped = dp_place_number(place, report, "dropped.pushes");
    assert_true(dropped == dp_place_counter(place, conf, "pushes_dropped"));
    assert_true(dp_place_number(place, report, "dropped.partly") == 0); /* on one shard */
    assert_true(dropped > 3 * 30 && passed > 3 * 30 * 15);
    assert_true(dp_place_number(place, report, "dropped.examples") >= passed);
    dp_place_stops_cleanly(server);
}

/* A pull in the middle of a step may hear that it was closed: what was computed of it is pushed all the same. */
static void backups_and_steps_of_several_minibatches(void **state)
{
    struct dp_place *place = *state;
    static const char *const together[] = {"--accumulate", "--push-every"};
    for (size_t i = 0; i < 2; i++) {
        struct setup s = {"2", "1", "4", "sync:2", "8", {together[i], "4", "--rate", "decay=cosine"}};
        const char *dir = dp_place_text(place, "run-%zu", i);
        double examples = 0;
        dp_place_ended(start(place, dir, &s), 0);
        for (unsigned w = 0; w < 4; w++)
            examples += number(place, dir, dp_place_text(place, "workers.%u.examples", w));
        assert_true(examples == 8 * 1437);
        assert_true(number(place, dir, "dropped.not_computed") <= number(place, dir, "dropped.examples"));
    }
}

static void sync_with_a_backup_goes_on_over_kills(void **state)
{
    struct setup s = {"2", "1", "3", "sync:1", LONG, {0}};
    killed(*state, &s);
}

int main(void)
{
#define DP_CONSISTENCY_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        DP_CONSISTENCY_TEST(sync_has_one_digest),
        DP_CONSISTENCY_TEST(steps_of_several_minibatches_have_one_digest),
        DP_CONSISTENCY_TEST(sync_of_one_worker_is_async_of_one),
        DP_CONSISTENCY_TEST(a_step_of_sync_is_a_larger_minibatch),
        DP_CONSISTENCY_TEST(kills_do_not_change_sync),
        DP_CONSISTENCY_TEST(a_resumed_sync_run_is_an_undisturbed_one),
        DP_CONSISTENCY_TEST(the_best_weights_of_sync_stay),
        DP_CONSISTENCY_TEST(ssp_keeps_workers_together),
        DP_CONSISTENCY_TEST(only_a_pull_ahead_lacks_own_pushes),
        DP_CONSISTENCY_TEST(more_workers_than_minibatches_end_well),
        DP_CONSISTENCY_TEST(a_worker_that_is_away_is_waited_for),
        DP_CONSISTENCY_TEST(a_process_is_replaced_while_it_trains),
        DP_CONSISTENCY_TEST(a_backup_takes_a_stopped_workers_place),
        DP_CONSISTENCY_TEST(backups_and_steps_of_several_minibatches),
        DP_CONSISTENCY_TEST(sync_with_a_backup_goes_on_over_kills),
        DP_CONSISTENCY_TEST(a_worker_that_failed_at_its_start_is_named),
    };
    return cmocka_run_group_tests_name("consistency", tests, NULL, NULL);
}
