/* Workers that are gone (training.worker_timeout), as real processes: the others let them leave, and finish; or that come back. What a worker that
 * left has pushed is on all shards or on none (train_ledger.h), up to where it left and no further. */
#include "tests/lib/test.h"
#include "tests/system/place.h"
#include "tests/system/train_ledger.h"
#include "tests/system/train_ledger_read.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEDGER_WORKER DP_TESTS_BIN "/ledger_worker"

/* Of 90 minibatches, 30 each. */
#define WORKERS 3u
#define BATCHES 90u
#define MINE    30u
#define EPOCHS  20u
#define TIMEOUT "worker_timeout = 2;"
/* Longer than that. */
#define AWAY_MS 3500
#define LONG    100u
#define GAPS    2u /* that a worker was away at most */

struct cast {
    struct dp_place *place;
    const char *file, *conf;
    struct dp_process *server[2], *worker[WORKERS];
    uint64_t left[WORKERS]; /* it took part in the steps below, */
    struct gap {
        uint64_t out, back;
    } gap[WORKERS][GAPS]; /* but for these, from out on below back */
};

static void start_worker(struct cast *cast, uint32_t w)
{
    cast->worker[w] = dp_place_start(cast->place, LEDGER_WORKER, "--cluster", cast->conf, "--worker",
                                     dp_place_text(cast->place, "%u", w), "--resume", NULL);
}

/* test: NULL: the digits'. training: more of its settings. */
static struct cast start_with(struct dp_place *place, const char *file, const char *consistency,
                              const char *test, const char *training)
{
    struct dp_place_cluster cluster = {
        .file = file,
        .servers = 2,
        .workers = WORKERS,
        .epochs = EPOCHS,
        .test = test,
        .rate = "0.0078125",
        .training = dp_place_text(place, "consistency = \"%s\"; " TIMEOUT "%s", consistency, training),
        .top = "journal_bytes = \"16MiB\";"};
    struct cast cast = {.place = place, .file = file, .conf = dp_place_conf(place, &cluster)};
    for (uint32_t i = 0; i < 2; i++)
        cast.server[i] = dp_place_server(place, cast.conf, i);
    for (uint32_t w = 0; w < WORKERS; w++) {
        cast.left[w] = (uint64_t)EPOCHS * MINE;
        start_worker(&cast, w);
    }
    return cast;
}

static struct cast start(struct dp_place *place, const char *file, const char *consistency)
{
    return start_with(place, file, consistency, NULL, "");
}

static double number(const struct cast *cast, const char *where)
{
    return dp_place_number(cast->place, dp_place_path(cast->place, "%s.json", cast->file), where);
}

static bool was_away(const struct cast *cast, uint32_t w, uint64_t step)
{
    for (uint32_t g = 0; g < GAPS; g++)
        if (step >= cast->gap[w][g].out && step < cast->gap[w][g].back)
            return true;
    return false;
}

/* In sync a push counts for its share of its step, else 1. */
static void check_push(void *context, uint32_t epoch, uint32_t push, const float *counts)
{
    const struct cast *cast = context;
    uint64_t step = (uint64_t)epoch * MINE + push / WORKERS;
    bool made = step < cast->left[push % WORKERS] && !was_away(cast, push % WORKERS, step);
    for (uint32_t s = 0; s < DP_TRAIN_LEDGER_PLACES; s++)
        if ((counts[s] > 0) != made || counts[s] > 1 || counts[s] < counts[0] || counts[s] > counts[0])
            fail_msg("push %u of epoch %u was counted %g times at place %u, %g times at place 0; worker %u "
                     "took part in the steps below %u, but for %u .. %u and %u .. %u",
                     push, epoch + 1, (double)counts[s], s, (double)counts[0], push % WORKERS,
                     (unsigned)cast->left[push % WORKERS], (unsigned)cast->gap[push % WORKERS][0].out,
                     (unsigned)cast->gap[push % WORKERS][0].back, (unsigned)cast->gap[push % WORKERS][1].out,
                     (unsigned)cast->gap[push % WORKERS][1].back);
}

static void finished(struct cast *cast)
{
    /* How much of it was trained depends on how long they were away; chance is 0.1. */
    assert_true(number(cast, "final.test.accuracy") > 0.5);
    dp_train_ledger_read(cast->conf, EPOCHS, BATCHES, check_push, cast);
    for (uint32_t i = 0; i < 2; i++)
        dp_place_stops_cleanly(cast->server[i]);
}

/* What the report says of a worker that left adds up with where it was. */
static void has_left(struct cast *cast, uint32_t w)
{
    double step = number(cast, dp_place_text(cast->place, "workers.%u.left.step", w));
    double undone = number(cast, dp_place_text(cast->place, "workers.%u.left.minibatches", w));
    assert_true(step >= MINE && undone > 0 && step + undone == EPOCHS * MINE);
    cast->left[w] = (uint64_t)step;
}

static void nobody_has_left(const struct cast *cast)
{
    char *report = dp_place_read(cast->place, dp_place_path(cast->place, "%s.json", cast->file), NULL);
    assert_null(strstr(report, "\"left\""));
}

static void wait_ms(uint64_t ms)
{
    for (uint64_t end = dp_process_now_ms() + ms; dp_process_now_ms() < end;)
        dp_process_pause();
}

static void killed(struct cast *cast, uint32_t w)
{
    dp_process_signal(cast->worker[w], SIGKILL);
    dp_place_ended(cast->worker[w], -SIGKILL);
}

/* What it pushed while one server was away is on the other's shards alone. */
static void what_is_torn_is_made_again(void **state)
{
    static const char *const modes[] = {"sync", "ssp:3"};
    unsigned torn = 0, wanted = getenv("DP_LONG") ? 2 : 1;
    for (size_t i = 0; i < 8 && torn < wanted; i++) {
        struct cast cast = start(*state, dp_place_text(*state, "torn-%zu", i), modes[i % 2]);
        dp_place_awaits(cast.worker[0], "epoch 2 of");
        wait_ms(20 + 15 * i); /* the end of an epoch, with its evaluation, is behind them */
        dp_process_signal(cast.worker[2], SIGSTOP);
        wait_ms(100); /* the rows of its next step are there now, from both */
        dp_process_signal(cast.server[1], SIGKILL);
        dp_place_ended(cast.server[1], -SIGKILL);
        dp_process_signal(cast.worker[2], SIGCONT);
        wait_ms(200);
        killed(&cast, 2);
        cast.server[1] = dp_place_server(cast.place, cast.conf, 1);
        for (uint32_t w = 0; w < 2; w++)
            dp_place_ended(cast.worker[w], 0);
        dp_place_says(cast.worker[0], "worker 2 has been silent for");
        dp_place_says(cast.worker[0], "worker 2 has left before step");
        torn += strstr(dp_process_err(cast.worker[0]), "making those again") != NULL;
        has_left(&cast, 2);
        finished(&cast);
    }
    assert_true(torn > 0);
}

/* Its silence is no worker's, however long it lasts, and whether it was suspended or started again. */
static void the_first_server_is_away_and_nobody_leaves(void **state)
{
    struct cast cast = start(*state, "away", "sync");
    dp_place_awaits(cast.worker[0], "epoch 2 of");
    dp_process_signal(cast.server[0], SIGSTOP);
    wait_ms(AWAY_MS);
    dp_process_signal(cast.server[0], SIGCONT);
    dp_place_awaits(cast.worker[0], "epoch 4 of");
    dp_process_signal(cast.server[0], SIGKILL);
    dp_place_ended(cast.server[0], -SIGKILL);
    wait_ms(AWAY_MS);
    cast.server[0] = dp_place_server(cast.place, cast.conf, 0);
    for (uint32_t w = 0; w < WORKERS; w++)
        dp_place_ended(cast.worker[w], 0);
    nobody_has_left(&cast);
    finished(&cast);
}

/* All workers were suspended together; one wakes a little before the others. */
static void all_workers_were_suspended_and_nobody_leaves(void **state)
{
    struct cast cast = start(*state, "asleep", "sync");
    dp_place_awaits(cast.worker[0], "epoch 2 of");
    dp_process_signal(cast.worker[1], SIGSTOP);
    dp_process_signal(cast.worker[2], SIGSTOP);
    wait_ms(300); /* the first one waits for them now */
    dp_process_signal(cast.worker[0], SIGSTOP);
    wait_ms(AWAY_MS);
    dp_process_signal(cast.worker[0], SIGCONT);
    wait_ms(100);
    dp_process_signal(cast.worker[1], SIGCONT);
    dp_process_signal(cast.worker[2], SIGCONT);
    for (uint32_t w = 0; w < WORKERS; w++)
        dp_place_ended(cast.worker[w], 0);
    nobody_has_left(&cast);
    finished(&cast);
}

static uint32_t times(struct dp_process *process, const char *text)
{
    uint32_t n = 0;
    for (const char *at = dp_process_err(process); (at = strstr(at, text)); at++)
        n++;
    return n;
}

static void awaits_times(struct dp_process *process, const char *text, uint32_t n)
{
    for (uint64_t end = dp_process_now_ms() + DP_SOON_MS; times(process, text) < n; dp_process_pause())
        if (dp_process_now_ms() > end)
            fail_msg("'%s' is said %u times, not %u:\n%s", text, times(process, text), n,
                     dp_process_err(process));
}

/* Worker 0 says when each one left, and when it was back. */
static void find_gaps(struct cast *cast, uint32_t w)
{
    const char *left = dp_place_text(cast->place, "worker %u has left before step ", w),
               *back = dp_place_text(cast->place, "worker %u is back from step ", w);
    const char *at = dp_process_err(cast->worker[0]);
    for (uint32_t g = 0; g < GAPS && (at = strstr(at, left)); g++) {
        struct gap *gap = &cast->gap[w][g];
        gap->out = strtoull(at + strlen(left), NULL, 10);
        at = strstr(at, back);
        assert_non_null(at);
        gap->back = strtoull(at + strlen(back), NULL, 10);
        assert_true(gap->back >= gap->out);
    }
}

/* What the report says of a worker that was away is what the steps say. Of the digits the last minibatch, worker 2's, has 13 examples. */
static void has_come_back(struct cast *cast, uint32_t w)
{
    struct dp_place *place = cast->place;
    uint64_t missed = 0, examples = 0, share = (uint64_t)EPOCHS * (MINE * 16 - (w == 2 ? 3 : 0));
    find_gaps(cast, w);
    for (uint64_t step = 0; step < (uint64_t)EPOCHS * MINE; step++)
        if (was_away(cast, w, step)) {
            missed++;
            examples += w == 2 && step % MINE == MINE - 1 ? 13 : 16;
        }
    assert_true(missed > 0);
    assert_true(number(cast, dp_place_text(place, "workers.%u.missed_steps", w)) == (double)missed);
    assert_true(number(cast, dp_place_text(place, "workers.%u.missed_examples", w)) == (double)examples);
    assert_true(number(cast, dp_place_text(place, "workers.%u.examples", w)) == (double)(share - examples));
    assert_true(number(cast, dp_place_text(place, "workers.%u.pushes", w)) ==
                (double)((uint64_t)EPOCHS * MINE - missed));
}

/* One is suspended and one is killed; the others let both leave. The one wakes, the other is started again, and both take their shares from a
 * later step on; and once more, the other way round. Meanwhile worker 0 stands still, so that the training is not over before. */
static void who_comes_back_takes_its_share_again(void **state)
{
    static const char *const modes[] = {"ssp:1", "sync"};
    for (size_t i = 0; i < (getenv("DP_LONG") ? 2 : 1); i++) {
        struct cast cast = start(*state, dp_place_text(*state, "back-%zu", i), modes[i]);
        dp_place_awaits(cast.worker[0], "epoch 2 of");
        for (uint32_t round = 1; round <= 2; round++) {
            uint32_t held = round, dead = WORKERS - round;
            dp_process_signal(cast.worker[held], SIGSTOP);
            killed(&cast, dead);
            for (uint32_t w = 1; w < WORKERS; w++)
                awaits_times(cast.worker[0], dp_place_text(*state, "worker %u has left before step", w),
                             round);
            dp_process_signal(cast.worker[0], SIGSTOP);
            dp_process_signal(cast.worker[held], SIGCONT);
            start_worker(&cast, dead);
            awaits_times(cast.worker[held], "it joins them again", 1);
            awaits_times(cast.worker[held], "takes part from step ", round);
            dp_place_awaits(cast.worker[dead], "takes part from step ");
            dp_process_signal(cast.worker[0], SIGCONT);
            for (uint32_t w = 1; w < WORKERS; w++)
                awaits_times(cast.worker[0], dp_place_text(*state, "worker %u is back from step", w), round);
        }
        for (uint32_t w = 0; w < WORKERS; w++)
            dp_place_ended(cast.worker[w], 0);
        for (uint32_t w = 1; w < WORKERS; w++)
            has_come_back(&cast, w);
        nobody_has_left(&cast);
        finished(&cast);
    }
}

/* In the middle of it, and is started again; whoever is the lowest then does it anew. */
static void a_stand_in_dies(void **state)
{
    struct cast cast = start(*state, "dies", "sync");
    dp_place_awaits(cast.worker[0], "epoch 2 of");
    killed(&cast, 2);
    dp_place_awaits(cast.worker[0], "this worker lets it leave");
    killed(&cast, 0);
    start_worker(&cast, 0);
    for (uint32_t w = 0; w < 2; w++)
        dp_place_ended(cast.worker[w], 0);
    has_left(&cast, 2);
    finished(&cast);
}

/* All left before their last epoch; the report could not be written. */
static void after_an_early_stop_a_worker_comes_back(void **state)
{
    struct dp_place *place = *state;
    const char *report = dp_place_path(place, "early.json");
    assert_int_equal(mkdir(report, 0700), 0); /* in its place */
    struct cast cast =
        start_with(place, "early", "sync", NULL, "stop_at = \"accuracy:0.85\"; keep = \"last\";");
    dp_place_awaits(cast.worker[0], "stops after epoch");
    assert_int_not_equal(dp_process_wait(cast.worker[0], DP_SOON_MS), 0);
    assert_int_equal(rmdir(report), 0);
    start_worker(&cast, 0);
    for (uint32_t w = 0; w < WORKERS; w++)
        dp_place_ended(cast.worker[w], 0);
    uint64_t epoch = (uint64_t)number(&cast, "stop.epoch");
    assert_true(epoch < EPOCHS);
    for (uint32_t w = 0; w < WORKERS; w++)
        cast.left[w] = epoch * MINE;
    nobody_has_left(&cast);
    finished(&cast);
}

/* The digits' test set, many times over: its evaluation takes longer than a look at a worker's output. */
static const char *long_test(struct dp_place *place)
{
    size_t size;
    const char *text = dp_place_read(place, DP_DIGITS_TEST, &size);
    char *all = malloc(size * LONG);
    assert_non_null(all);
    for (size_t i = 0; i < LONG; i++)
        memcpy(all + i * size, text, size);
    const char *path = dp_place_file(place, "long.libsvm", all, size * LONG);
    free(all);
    return path;
}

/* One had left; the others had made all their pushes, and no verdict of the last epoch. They come back, and then the one, too: for that
 * verdict, as nothing is left for it to train. */
static void all_come_back_at_the_end(void **state)
{
    for (uint32_t back = getenv("DP_LONG") ? 2 : WORKERS; back <= WORKERS; back++) {
        struct cast cast =
            start_with(*state, dp_place_text(*state, "end-%u", back), "sync", long_test(*state), "");
        dp_place_awaits(cast.worker[0], "epoch 2 of");
        killed(&cast, 2);
        for (uint32_t w = 0; w < 2; w++)
            dp_place_awaits(cast.worker[w],
                            dp_place_text(*state, "epoch %u of %u, own share", EPOCHS, EPOCHS));
        killed(&cast, 0);
        killed(&cast, 1);
        for (uint32_t w = 0; w < back; w++)
            start_worker(&cast, w);
        for (uint32_t w = 0; w < back; w++)
            dp_place_ended(cast.worker[w], 0);
        if (back == 2)
            has_left(&cast, 2);
        else
            cast.left[2] = (uint64_t)EPOCHS * MINE - (uint64_t)number(&cast, "workers.2.missed_steps");
        finished(&cast);
    }
}

/* One is dead and not started again, one hangs for ever: `downpour run` ends well, and says so. */
static void a_run_ends_without_them(void **state)
{
    struct dp_place *place = *state;
    struct dp_process *run = dp_place_start(
        place, "downpour", "run", "--dir", dp_place_path(place, "run"), "--workers", "3", "--consistency",
        "sync", "--worker-timeout", "2", "--restarts", "0", "--model", "mlp:64-32-10", "--train",
        DP_DIGITS_TRAIN, "--scale", "0.0625", "--batch", "16", "--epochs", "100", NULL);
    dp_place_awaits(run, "epoch ");
    assert_int_equal(kill(dp_place_child(run, "--worker 1"), SIGSTOP), 0);
    assert_int_equal(kill(dp_place_child(run, "--worker 2"), SIGKILL), 0);
    dp_place_ended(run, 0);
    dp_place_says(run, "worker 2 was killed by signal 9 (Killed); the others continue without it");
    dp_place_says(run, "worker 1 did not stop on request and is killed");
    dp_place_says(run, "Left:      worker 1 before step ");
    dp_place_says(run, "Left:      worker 2 before step ");
}

/* One had left when the run was stopped. It is resumed without a timeout: nobody would do without it. */
static void a_resumed_run_brings_back_who_had_left(void **state)
{
    struct dp_place *place = *state;
#define RUN                                                                                                  \
    "downpour", "run", "--dir", dp_place_path(place, "run"), "--workers", "3", "--consistency", "sync",      \
        "--model", "mlp:64-32-10", "--train", DP_DIGITS_TRAIN, "--test", DP_DIGITS_TEST, "--scale",          \
        "0.0625", "--batch", "16", "--epochs", "100"
    struct dp_process *run = dp_place_start(place, RUN, "--restarts", "0", "--worker-timeout", "2", NULL);
    dp_place_awaits(run, "epoch ");
    assert_int_equal(kill(dp_place_child(run, "--worker 2"), SIGKILL), 0);
    dp_place_awaits_file(place, dp_place_path(place, "run/log/worker-0.log"),
                         "worker 2 has left before step");
    dp_process_signal(run, SIGINT);
    dp_place_ended(run, 128 + SIGINT);
    run = dp_place_try(place, 0, RUN, "--resume", "--worker-timeout", "0");
#undef RUN
    dp_place_says(run, "Away:      worker 2 for ");
}

/* Others take what a worker that hangs or is dead would have done, and nobody waits for its end. */
static void a_leased_run_ends_without_them(void **state)
{
    struct dp_place *place = *state;
    struct dp_process *run = dp_place_start(
        place, "downpour", "run", "--dir", dp_place_path(place, "run"), "--workers", "3", "--work", "leased",
        "--timeout", "3", "--restarts", "0", "--model", "mlp:64-32-10", "--train", DP_DIGITS_TRAIN, "--scale",
        "0.0625", "--batch", "16", "--epochs", "150", NULL);
    dp_place_awaits(run, "/150 ");
    assert_int_equal(kill(dp_place_child(run, "--worker 1"), SIGSTOP), 0);
    assert_int_equal(kill(dp_place_child(run, "--worker 2"), SIGKILL), 0);
    dp_place_ended(run, 0);
    dp_place_says(run, "the training is finished; workers that still run are ended");
    dp_place_says(run, "worker 1 did not stop on request and is killed");
    dp_place_says(run, "worker 2 was killed by signal 9 (Killed); the others continue without it");
    dp_place_says(run, "Left out:  worker 1, which was silent at the end");
    dp_place_says(run, "Left out:  worker 2, which was silent at the end");
}

/* One that cannot begin is waited for, so the run ends at once with its cause. */
static void who_has_not_joined_ends_the_run(void **state)
{
    struct dp_place *place = *state;
    const char *dir = dp_place_path(place, "run");
    static const char script[] =
        "#!/bin/sh\ncase \"$*\" in *'--worker 1 '*) echo 'no luck' >&2; exit 2 ;; esac\n"
        "exec " DP_BIN "/downpour-worker \"$@\"\n";
    assert_int_equal(mkdir(dp_place_path(place, "bin"), 0777), 0);
    (void)dp_place_try(place, 0, "/bin/cp", DP_BIN "/downpour", DP_BIN "/downpour-server",
                       dp_place_path(place, "bin"));
    assert_int_equal(chmod(dp_place_file(place, "bin/downpour-worker", script, sizeof script - 1), 0755), 0);
    struct dp_process *run =
        dp_place_start(place, dp_place_path(place, "bin/downpour"), "run", "--dir", dir, "--workers", "3",
                       "--consistency", "sync", "--worker-timeout", "2", "--model", "mlp:64-32-10", "--train",
                       DP_DIGITS_TRAIN, "--scale", "0.0625", "--epochs", "200", NULL);
    dp_place_ended(run, 2);
    dp_place_says(run, "no luck");
}

int main(void)
{
#define DP_LEAVES_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        DP_LEAVES_TEST(what_is_torn_is_made_again),
        DP_LEAVES_TEST(the_first_server_is_away_and_nobody_leaves),
        DP_LEAVES_TEST(all_workers_were_suspended_and_nobody_leaves),
        DP_LEAVES_TEST(who_comes_back_takes_its_share_again),
        DP_LEAVES_TEST(a_stand_in_dies),
        DP_LEAVES_TEST(after_an_early_stop_a_worker_comes_back),
        DP_LEAVES_TEST(all_come_back_at_the_end),
        DP_LEAVES_TEST(a_run_ends_without_them),
        DP_LEAVES_TEST(a_resumed_run_brings_back_who_had_left),
        DP_LEAVES_TEST(a_leased_run_ends_without_them),
        DP_LEAVES_TEST(who_has_not_joined_ends_the_run),
    };
    cmocka_set_test_filter(getenv("DP_TEST"));
    return cmocka_run_group_tests_name("leaves", tests, NULL, NULL);
}
