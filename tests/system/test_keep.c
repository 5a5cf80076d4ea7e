/* The weights of the best epoch are the result: bit for bit those of a training of just so many epochs, whichever processes are
 * killed while their checkpoint is made.
 * One worker without overlap, so that a training can be done again with equal bits; its rate does not depend on how many
 * epochs there are. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include "common/client/checkpoint.h"
#include "common/config/cluster_client.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Labels with noise, so that a factorization machine soon learns them by heart. */
static const char *make_train(struct dp_place *place)
{
    static char text[65536];
    uint64_t state = 7;
    size_t len = 0;
    for (unsigned i = 0; i < 900; i++) {
        unsigned id[4], sum = 0;
        for (unsigned k = 0; k < 4; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            id[k] = 1 + 20 * k + (unsigned)(state >> 40) % 20;
            sum += id[k];
        }
        state = state * 6364136223846793005u + 1442695040888963407u;
        len += (size_t)snprintf(text + len, sizeof text - len, "%u %u:1 %u:1 %u:1 %u:1\n",
                                (sum % 3 == 0) ^ ((state >> 40) % 4 == 0), id[0], id[1], id[2], id[3]);
    }
    return dp_place_file(place, "train", text, len);
}

/* A run on two servers, in DIR of the place. more: up to two flags and their values. */
static struct dp_process *start(struct dp_place *place, const char *dir, const char *durability,
                                const char *epochs, const char *const more[4])
{
    return dp_place_start(place, "downpour", "run", "--dir", dp_place_path(place, "%s", dir), "--servers",
                          "2", "--workers", "1", "--no-overlap", "--model", "fm:8", "--train",
                          dp_place_path(place, "train"), "--validation", "share=0.3", "--test",
                          dp_place_path(place, "train"), "--batch", "16", "--rate", "0.05", "--seed", "3",
                          "--epochs", epochs, "--durability", durability, "--journal-bytes", "16MiB",
                          "--restarts", "100", more[0], more[1], more[2], more[3], NULL);
}

static const char *digest(struct dp_place *place, const char *dir)
{
    return dp_place_run_digest(place, dp_place_path(place, "%s", dir));
}

static const char *scores(struct dp_place *place, const char *dir)
{
    return dp_process_out(dp_place_try(place, 0, "downpour", "predict", "--from",
                                       dp_place_path(place, "%s", dir), "--data",
                                       dp_place_path(place, "train")));
}

static unsigned kept_epoch(struct dp_place *place, const char *dir)
{
    return (unsigned)dp_place_number(place, dp_place_path(place, "%s/report.json", dir), "kept_epoch");
}

/* The checkpoint of the best epoch alone. */
static void best_is_a_checkpoint(struct dp_place *place, const char *dir, unsigned epoch)
{
    const char *best = dp_place_path(place, "%s/best", dir);
    struct dp_process *list = dp_place_try(place, 0, "downpour", "inspect", best, "--json");
    dp_place_says(list, dp_place_text(place, "\"epoch\":%u,", epoch));
    assert_null(strstr(strstr(dp_process_out(list), "\"number\":") + 1, "\"number\":"));
    (void)dp_place_try(place, 0, "downpour", "inspect", best, "--verify");
}

static void train(struct dp_place *place, const char *dir, const char *durability, const char *epochs,
                  const char *flag, const char *value)
{
    const char *const more[4] = {flag, value};
    dp_place_ended(start(place, dir, durability, epochs, more), 0);
}

/* A training of as many epochs as the best one's, that keeps the last: what is to be in the store. */
static const char *expected(struct dp_place *place, unsigned best)
{
    train(place, "calm", "process", dp_place_text(place, "%u", best), "--keep", "last");
    return digest(place, "calm");
}

static void the_best_weights_stay(void **state)
{
    static const char *const durabilities[] = {"machine", "process"};
    struct dp_place *place = *state;
    const char *want = NULL, *want_scores = NULL;
    (void)make_train(place);
    for (unsigned d = 0; d < 2; d++) {
        const char *dir = durabilities[d], *report = dp_place_path(place, "%s/report.json", dir);
        const char *const more[4] = {"--patience", "2"};
        struct dp_process *run = start(place, dir, dir, "30", more);
        dp_place_ended(run, 0);
        unsigned best = kept_epoch(place, dir), last = (unsigned)dp_place_number(place, report, "stop.epoch");
        dp_place_says(run,
                      dp_place_text(place, "Kept:      the weights of epoch %u (validation loss ", best));
        dp_place_says(run, ", not the last ones");
        assert_int_equal(last, best + 2);
        assert_true(dp_place_number(place, report, "stop.best_epoch") == best);
        assert_non_null(strstr(dp_place_read(place, report, NULL), "\"kept\": \"best\""));
        best_is_a_checkpoint(place, dir, best);
        if (!want) {
            want = expected(place, best);
            want_scores = scores(place, "calm");
        }
        assert_string_equal(digest(place, dir), want);
        assert_string_equal(scores(place, dir), want_scores);
        /* The figures are theirs, too. */
        const char *calm = dp_place_path(place, "calm/report.json");
        static const char *const figures[] = {"final.test.loss", "final.test.auc", "final.validation.loss"};
        for (size_t f = 0; f < sizeof figures / sizeof figures[0]; f++)
            assert_true(dp_place_number(place, report, figures[f]) ==
                        dp_place_number(place, calm, figures[f]));
    }
}

/* As before, and on request. */
static void the_last_weights_stay(void **state)
{
    struct dp_place *place = *state;
    const char *report = dp_place_path(place, "last/report.json");
    const char *const more[4] = {"--patience", "2", "--keep", "last"};
    (void)make_train(place);
    struct dp_process *run = start(place, "last", "process", "30", more);
    dp_place_ended(run, 0);
    unsigned last = (unsigned)dp_place_number(place, report, "stop.epoch");
    assert_int_equal(kept_epoch(place, "last"), last);
    dp_place_says(run,
                  dp_place_text(place, "Kept:      the weights of epoch %u, the last ones; epoch ", last));
    assert_string_equal(digest(place, "last"), expected(place, last));
    dp_place_says(dp_place_try(place, 2, "downpour", "run", "--dir", dp_place_path(place, "no"), "--model",
                               "logistic", "--train", dp_place_path(place, "train"), "--keep", "best"),
                  "no metric decides which epoch is the best");
    /* A checkpoint needs a journal. */
    const char *const best[4] = {"--patience", "2", "--keep", "best"}, *const any[4] = {"--patience", "2"};
    run = start(place, "none", "none", "30", best);
    dp_place_ended(run, 2);
    dp_place_says(run, "--keep is \"best\", and --durability is \"none\"");
    dp_place_ended(start(place, "none", "none", "30", any), 0);
    assert_int_equal(kept_epoch(place, "none"), last);
    assert_int_not_equal(access(dp_place_path(place, "none/best"), F_OK), 0);
}

/* No push of the run that comes next is taken for one that was counted before the stores went back. (Its minibatches are those of
 * the next epoch, so it is no other run's equal.) */
static void a_further_run_goes_on_from_them(void **state)
{
    struct dp_place *place = *state;
    const char *const more[4] = {"--keep", "last"};
    (void)make_train(place);
    train(place, "a", "process", "30", "--patience", "2");
    const char *report = dp_place_path(place, "a/report.json"), *before = digest(place, "a");
    double loss = dp_place_number(place, report, "final.validation.loss");
    dp_place_ended(start(place, "a", "process", "1", more), 0);
    assert_int_not_equal(access(dp_place_path(place, "a/best"), F_OK), 0);
    assert_int_not_equal(access(dp_place_path(place, "a/runs/1/best"), F_OK), 0); /* that of the run before */
    assert_true(dp_place_number(place, report, "settings.run") == 2);
    assert_true(dp_place_number(place, report, "staleness.repeated") == 0);
    assert_true(dp_place_number(place, report, "staleness.pushes") > 30);
    assert_true(dp_place_number(place, report, "final.validation.loss") < 2 * loss);
    assert_string_not_equal(digest(place, "a"), before);
}

static void await_log(struct dp_place *place, const char *dir, const char *text)
{
    dp_place_awaits_file(place, dp_place_path(place, "%s/log/worker-0.log", dir), text);
}

static void pause_for(uint64_t ms)
{
    uint64_t until = dp_process_now_ms() + ms;
    while (dp_process_now_ms() < until)
        dp_process_pause();
}

/* Ended well, whenever it was struck: who is killed while the servers close, with all trained, is not started again; the run says
 * how it is finished, and so it is. Returns the process that ended well. */
static struct dp_process *finished(struct dp_place *place, struct dp_process *run, const char *dir,
                                   uint32_t round)
{
    bool struck, late = dp_process_wait(run, 2 * DP_SOON_MS) == 2;
    struck = strstr(dp_process_err(run), "was killed by signal 9");
    print_message("round %u: %s\n", (unsigned)round,
                  late     ? "struck while it closed"
                  : struck ? "struck"
                           : "too late");
    if (!late) {
        dp_place_ended(run, 0);
        return run;
    }
    dp_place_ended(run, 2);
    dp_place_says(run, "was killed by signal 9");
    dp_place_says(run, "is not finished: ");
    return dp_place_try(place, 0, "downpour", "run", "--dir", dp_place_path(place, "%s", dir), "--resume");
}

/* Servers, or worker 0, when the checkpoint is due and is made: no push is under way, so that all bits stay. And any process at the
 * end: a server, both, worker 0, all three. */
static void kills_change_nothing(void **state)
{
    static const char *const victims[][3] = {{"--server 0"},
                                             {"--server 1", "--server 0"},
                                             {"--worker 0"},
                                             {"--worker 0", "--server 0", "--server 1"}},
                             *const makers[][3] = {{"--server 0"},
                                                   {"--server 1", "--server 0"},
                                                   {"--server 1"},
                                                   {"--worker 0"}};
    struct dp_place *place = *state;
    const char *const more[4] = {"--patience", "2"};
    uint32_t rounds = getenv("DP_LONG") ? 10 : 1;
    (void)make_train(place);
    train(place, "best", "process", "30", "--patience", "2");
    unsigned best = kept_epoch(place, "best");
    const char *want = expected(place, best);
    for (uint32_t round = 0; round < rounds * 8; round++) {
        bool ends = round % 2;
        const char *const *victim = ends ? victims[round / 2 % 4] : makers[round / 2 % 4];
        const char *dir = dp_place_text(place, "killed-%u", (unsigned)round);
        struct dp_process *run = start(place, dir, "process", "30", more);
        await_log(place, dir,
                  ends ? "stops after epoch" : dp_place_text(place, "epoch %u of 30, own share: ", best));
        pause_for(((uint64_t)getpid() * 2654435761u + round * 40503u) % (ends ? 300 : 100));
        for (unsigned v = 0; v < 3 && victim[v]; v++) {
            pid_t pid = dp_process_find(run, victim[v]);
            if (pid)
                (void)kill(pid, SIGKILL);
        }
        run = finished(place, run, dir, round);
        dp_place_says(run,
                      dp_place_text(place, "Kept:      the weights of epoch %u (validation loss ", best));
        assert_string_equal(digest(place, dir), want);
    }
}

/* Both servers, and the worker to its end. */
static void live(struct dp_place *place, const char *conf)
{
    struct dp_process *server[2];
    for (uint32_t s = 0; s < 2; s++)
        server[s] = dp_place_server(place, conf, s);
    dp_place_ended(dp_place_worker(place, conf, 0), 0);
    for (uint32_t s = 0; s < 2; s++)
        dp_place_stops_cleanly(server[s]);
}

static const char *digest_by_hand(struct dp_place *place)
{
    return dp_place_digest(place, dp_place_path(place, "c-0"), dp_place_path(place, "c-1"));
}

/* Servers close their stores when the command is killed. */
static void await_nobody(const struct dp_process *process)
{
    uint64_t until = dp_process_now_ms() + (uint64_t)DP_SOON_MS * DP_PATIENCE;
    while (dp_process_left(process) > 0) {
        if (dp_process_now_ms() > until)
            fail_msg("%u processes still run", (unsigned)dp_process_left(process));
        dp_process_pause();
    }
}

/* The command is killed while it ends: what was cut short is completed, and never half of it is used. */
static void a_command_that_is_killed_is_resumed(void **state)
{
    struct dp_place *place = *state;
    const char *const more[4] = {"--patience", "2"};
    uint32_t rounds = getenv("DP_LONG") ? 60 : 3;
    (void)make_train(place);
    train(place, "best", "process", "30", "--patience", "2");
    const char *want = expected(place, kept_epoch(place, "best"));
    for (uint32_t round = 0; round < rounds; round++) {
        const char *dir = dp_place_text(place, "cut-%u", (unsigned)round),
                   *path = dp_place_path(place, "%s", dir);
        struct dp_process *run = start(place, dir, "process", "30", more);
        await_log(place, dir, "stops after epoch");
        pause_for(200 * (round % 6) + round / 6 * 7);
        dp_process_signal(run, SIGKILL);
        (void)dp_process_wait(run, 2 * DP_SOON_MS);
        await_nobody(run);
        struct dp_process *again = dp_place_start(place, "downpour", "run", "--dir", path, "--resume", NULL);
        bool was_finished = dp_process_wait(again, 2 * DP_SOON_MS) == 2;
        dp_place_ended(again, was_finished ? 2 : 0);
        if (was_finished)
            dp_place_says(again, "is finished, so there is nothing to resume");
        assert_string_equal(digest(place, dir), want);
    }
}

static enum dp_status look(void *context, const struct dp_checkpoint_state *state, struct dp_error *err)
{
    dp_process_pause();
    return DP_OK;
}

/* A worker that was suspended asks for another epoch than the last: the checkpoint that is there stays. */
static void expect_another_epoch_refused(const char *conf, const char *best)
{
    const struct dp_client_options options = {.name = "test", .open_timeout_ms = DP_SOON_MS};
    const struct dp_checkpoint_watch watch = {look, NULL};
    struct dp_checkpoint_ask ask = {.wait_ms = 10000, .keep = 1, .run = 1, .epoch = 29};
    struct dp_checkpoint_made made;
    struct dp_cluster *cluster;
    struct dp_client *client;
    struct dp_error err = {0};
    assert_int_equal(dp_cluster_read(conf, &cluster, &err), DP_OK);
    assert_int_equal(dp_cluster_client(cluster, &options, &client, &err), DP_OK);
    (void)snprintf(ask.directory, sizeof ask.directory, "%s", best);
    assert_int_equal(dp_client_checkpoint_make(client, &ask, &watch, &made, &err), DP_INVALID);
    assert_non_null(strstr(err.text, "epoch 29 of run 1 was asked for, and the last push is of epoch"));
    dp_client_close(&client);
    dp_cluster_free(&cluster);
}

/* The stores keep the last weights; who started the servers takes the best ones from the checkpoint. */
static void servers_that_were_started_manually_leave_a_checkpoint(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = {
        .model = "fm:8",
        .train = make_train(place),
        .test = "",
        .servers = 2,
        .epochs = 30,
        .rate = "0.05",
        .training =
            dp_place_text(place, "overlap = false; patience = 2; seed = 3; steps = \"%s\"; best = \"%s\";",
                          dp_place_path(place, "steps"), dp_place_path(place, "manual/best")),
        .data = "validation_share = 0.3;",
        .top = "durability = \"process\"; journal_bytes = \"16MiB\";"};
    (void)dp_place_try(place, 0, "/bin/mkdir", dp_place_path(place, "manual"));
    const char *conf = dp_place_conf(place, &cluster), *best = dp_place_path(place, "manual/best");
    struct dp_process *server[2];
    live(place, conf);
    const char *last = digest_by_hand(place);
    unsigned kept = (unsigned)dp_place_number(place, dp_place_path(place, "c.json"), "kept_epoch");
    best_is_a_checkpoint(place, "manual", kept);
    (void)dp_place_try(place, 0, "downpour", "restore", "--cluster", conf, "--from", best, "--overwrite");
    for (uint32_t s = 0; s < 2; s++)
        server[s] = dp_place_server(place, conf, s);
    expect_another_epoch_refused(conf, best);
    best_is_a_checkpoint(place, "manual", kept);
    for (uint32_t s = 0; s < 2; s++)
        dp_place_stops_cleanly(server[s]);
    assert_string_not_equal(digest_by_hand(place), last);
    (void)dp_place_try(place, 0, "downpour", "predict", "--from", best, "--data", cluster.train);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_best_weights_stay, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(the_last_weights_stay, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(a_further_run_goes_on_from_them, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(kills_change_nothing, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(a_command_that_is_killed_is_resumed, dp_place_setup,
                                        dp_place_teardown),
        cmocka_unit_test_setup_teardown(servers_that_were_started_manually_leave_a_checkpoint, dp_place_setup,
                                        dp_place_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
