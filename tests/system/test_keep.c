/* The weights of the best epoch stay: bit for bit those of a training of just so many epochs, whoever is killed while they are
 * kept, or while the stores go back to them; and where that was cut short, nobody uses half of it.
 * One worker without overlap, so that a training can be done again with equal bits; its rate does not depend on how many
 * epochs there are. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

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
                          dp_place_path(place, "train"), "--validation-share", "0.3", "--test",
                          dp_place_path(place, "train"), "--batch", "16", "--rate", "0.05", "--seed", "3",
                          "--epochs", epochs, "--durability", durability, "--journal-bytes", "16MiB",
                          "--restarts", "100", more[0], more[1], more[2], more[3], NULL);
}

static const char *digest(struct dp_place *place, const char *dir)
{
    return dp_place_digest(place, dp_place_path(place, "%s/store/server-0", dir),
                           dp_place_path(place, "%s/store/server-1", dir));
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

/* Whether a shard's directory has a name that begins so. */
static bool has_name(struct dp_place *place, const char *shard, const char *begin)
{
    DIR *list = opendir(dp_place_path(place, "%s", shard));
    bool found = false;
    assert_non_null(list);
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list))
        found = found || strncmp(entry->d_name, begin, strlen(begin)) == 0;
    (void)closedir(list);
    return found;
}

static void nothing_is_left_over(struct dp_place *place, const char *dir)
{
    for (unsigned s = 0; s < 2; s++) {
        const char *shard = dp_place_text(place, "%s/store/server-%u/shard-000%u", dir, s, s);
        assert_false(has_name(place, shard, "snapshot"));
        assert_false(has_name(place, shard, "revert"));
    }
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
    static const char *const durabilities[] = {"machine", "none"};
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
        nothing_is_left_over(place, dir);
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
    assert_true(dp_place_number(place, report, "settings.run") == 2);
    assert_true(dp_place_number(place, report, "staleness.repeated") == 0);
    assert_true(dp_place_number(place, report, "staleness.pushes") > 30);
    assert_true(dp_place_number(place, report, "final.validation.loss") < 2 * loss);
    assert_string_not_equal(digest(place, "a"), before);
}

static void await_log(struct dp_place *place, const char *dir, const char *text)
{
    const char *log = dp_place_path(place, "%s/log/worker-0.log", dir);
    uint64_t until = dp_process_now_ms() + (uint64_t)DP_SOON_MS * DP_PATIENCE;
    while (access(log, R_OK) != 0 || !strstr(dp_place_read(place, log, NULL), text)) {
        if (dp_process_now_ms() > until)
            fail_msg("worker 0's log has no '%s'", text);
        dp_process_pause();
    }
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

/* Servers, when a snapshot is due and is taken: no push is under way, so that all bits stay. And anybody, when the stores go
 * back: a server, both, worker 0, all three. */
static void kills_change_nothing(void **state)
{
    static const char *const victims[][3] = {{"--server 0"},
                                             {"--server 1", "--server 0"},
                                             {"--worker 0"},
                                             {"--worker 0", "--server 0", "--server 1"}};
    struct dp_place *place = *state;
    const char *const more[4] = {"--patience", "2"};
    uint32_t rounds = getenv("DP_LONG") ? 10 : 1;
    (void)make_train(place);
    train(place, "best", "process", "30", "--patience", "2");
    unsigned best = kept_epoch(place, "best");
    const char *want = expected(place, best);
    for (uint32_t round = 0; round < rounds * 8; round++) {
        bool ends = round % 2;
        const char *const *victim = victims[ends ? round / 2 % 4 : round / 2 % 2];
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
        nothing_is_left_over(place, dir);
    }
}

static void copy(struct dp_place *place, const char *from, const char *to)
{
    (void)dp_place_try(place, 0, "/bin/rm", "-rf", dp_place_path(place, "%s", to));
    (void)dp_place_try(place, 0, "/bin/cp", "-a", dp_place_path(place, "%s", from),
                       dp_place_path(place, "%s", to));
}

/* Both servers, and one life of the worker: to its end, or, with until, until it says so and is killed. */
static struct dp_process *live(struct dp_place *place, const char *conf, const char *until)
{
    struct dp_process *server[2];
    for (uint32_t s = 0; s < 2; s++)
        server[s] = dp_place_server(place, conf, s);
    struct dp_process *worker = dp_place_worker(place, conf, 0);
    if (until) {
        dp_place_awaits(worker, until);
        dp_process_signal(worker, SIGKILL);
    }
    dp_place_ended(worker, until ? -SIGKILL : 0);
    for (uint32_t s = 0; s < 2; s++)
        dp_place_stops_cleanly(server[s]);
    return worker;
}

static const char *digest_by_hand(struct dp_place *place)
{
    return dp_place_digest(place, dp_place_path(place, "c-0"), dp_place_path(place, "c-1"));
}

/* The second server's store is another copy than the register knows. */
static void register_half(struct dp_place *place, const char *conf)
{
    struct dp_process *first = dp_place_server(place, conf, 0);
    struct dp_process *second =
        dp_place_start(place, "downpour-server", "--cluster", conf, "--server", "1", "--replace-store", NULL);
    dp_place_awaits(second, "ready:");
    dp_place_stops_cleanly(second);
    dp_place_stops_cleanly(first);
}

/* One store went back and the other did not, as when all are killed in between: a prediction refuses it by name, the next run
 * ends it, and trains on what a whole return gives. */
static void half_of_a_return_is_seen(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = {.model = "fm:8",
                                       .train = make_train(place),
                                       .test = "",
                                       .servers = 2,
                                       .epochs = 30,
                                       .rate = "0.05",
                                       .training = dp_place_text(place,
                                                                 "overlap = false; patience = 2; seed = 3; "
                                                                 "steps = \"%s\";",
                                                                 dp_place_path(place, "steps")),
                                       .data = "validation_share = 0.3;",
                                       .top = "durability = \"process\"; journal_bytes = \"16MiB\";"};
    const char *conf = dp_place_conf(place, &cluster);
    (void)live(place, conf, "epoch 2, validation: ");
    copy(place, "c-1", "half");
    (void)live(place, conf, NULL);
    double kept = dp_place_number(place, dp_place_path(place, "c.json"), "kept_epoch");
    assert_true(has_name(place, "half/shard-0001", dp_place_text(place, "snapshot-1-%.0f", kept)));
    copy(place, "c-0", "whole-0");
    copy(place, "c-1", "whole-1");
    cluster.run = 2;
    cluster.epochs = 1;
    conf = dp_place_conf(place, &cluster);
    (void)live(place, conf, NULL);
    const char *want = digest_by_hand(place);
    copy(place, "whole-0", "c-0");
    copy(place, "half", "c-1");
    register_half(place, conf);
    struct dp_process *server[2];
    for (uint32_t s = 0; s < 2; s++)
        server[s] = dp_place_server(place, conf, s);
    struct dp_process *predict =
        dp_place_try(place, 2, "downpour-worker", "--cluster", conf, "--predict",
                     dp_place_path(place, "train"), "--out", dp_place_path(place, "scores"));
    dp_place_says(predict, "shard 1 still has the last weights of run 1");
    for (uint32_t s = 0; s < 2; s++)
        dp_place_stops_cleanly(server[s]);
    dp_place_says(live(place, conf, NULL),
                  dp_place_text(place, "shard 1 now reverts to the weights of epoch %.0f", kept));
    assert_string_equal(digest_by_hand(place), want);
}

/* Weights of two epochs are no model: nothing that reads a run's store takes them for one. */
static void half_of_a_return_is_not_read(void **state)
{
    struct dp_place *place = *state;
    const char *const more[4] = {"--patience", "25"};
    const char *dir = dp_place_path(place, "cut"), *data = make_train(place);
    struct dp_process *run = start(place, "cut", "process", "60", more);
    await_log(place, "cut", "epoch 2, validation: ");
    dp_process_signal(run, SIGINT);
    dp_place_ended(run, 128 + SIGINT);
    copy(place, "cut/store/server-1", "half");
    (void)dp_place_try(place, 0, "downpour", "run", "--dir", dir, "--resume");
    copy(place, "half", "cut/store/server-1");
    register_half(place, dp_place_path(place, "cut/cluster.conf"));
    const char *says =
        "shard 1 still has the last weights of run 1, while others have those of its best epoch";
    dp_place_says(
        dp_place_try(place, 2, "downpour", "export", "--from", dir, "--to", dp_place_path(place, "weights")),
        says);
    dp_place_says(dp_place_try(place, 2, "downpour", "predict", "--from", dir, "--data", data), says);
}

/* What the model of a directory gives: no message about a return that was cut short. */
static void is_read(struct dp_place *place, const char *dir)
{
    (void)scores(place, dir);
    (void)dp_place_try(place, 0, "downpour", "export", "--from", dp_place_path(place, "%s", dir), "--to",
                       dp_place_path(place, "%s.weights", dir));
}

/* A store that began anew behind the end of a run that kept its best weights has nothing to go back to, and lacks nothing. */
static void a_replaced_store_has_nothing_to_go_back_to(void **state)
{
    static const char *const epochs[] = {"1", "30"}; /* the best one is the last; is not */
    struct dp_place *place = *state;
    const char *const replaces[4] = {"--keep", "last", "--replace-store"}, *const further[4] = {0};
    (void)make_train(place);
    for (unsigned e = 0; e < 2; e++) {
        const char *whole = dp_place_text(place, "whole-%u", e);
        train(place, whole, "process", epochs[e], "--patience", "2");
        if (e == 1)
            assert_true(kept_epoch(place, whole) <
                        dp_place_number(place, dp_place_path(place, "%s/report.json", whole), "stop.epoch"));
        for (unsigned s = 0; s < 2; s++) {
            const char *dir = dp_place_text(place, "replaced-%u-%u", e, s);
            copy(place, whole, dir);
            (void)dp_place_try(place, 0, "/bin/rm", "-r", dp_place_path(place, "%s/store/server-%u", dir, s));
            struct dp_process *run = start(place, dir, "process", "1", replaces);
            dp_place_ended(run, 0);
            dp_place_says(run, dp_place_text(place, "shard %u begins anew", s));
            is_read(place, dir);
            dp_place_ended(start(place, dir, "process", "1", further), 0);
            is_read(place, dir);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_best_weights_stay, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(the_last_weights_stay, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(a_further_run_goes_on_from_them, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(kills_change_nothing, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(half_of_a_return_is_seen, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(half_of_a_return_is_not_read, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(a_replaced_store_has_nothing_to_go_back_to, dp_place_setup,
                                        dp_place_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
