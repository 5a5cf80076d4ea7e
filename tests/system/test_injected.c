/* Injected delays (--inject), as real processes: they take the time that was asked for, change no row of a
 * sync run, keep no worker from its heartbeats, and end at a signal. (cli.sh: refused by flag.) */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <signal.h>
#include <string.h>

/* Of 1,437 digits: 23 minibatches, 8 of worker 0 and 1, 7 of worker 2. */
#define BATCH  "64"
#define PACE_S 0.03
#define TIMES  4

static struct dp_process *start_epochs(struct dp_place *place, const char *dir, const char *epochs,
                                       const char *const flags[8])
{
    return dp_place_start(place, "downpour", "run", "--dir", dp_place_path(place, "%s", dir), "--model",
                          "mlp:64-32-10", "--train", DP_DIGITS_TRAIN, "--scale", "0.0625", "--epochs", epochs,
                          "--journal-bytes", "16MiB", "--batch", BATCH, "--workers", "3", flags[0], flags[1],
                          flags[2], flags[3], flags[4], flags[5], flags[6], flags[7], NULL);
}

static struct dp_process *start(struct dp_place *place, const char *dir, const char *const flags[8])
{
    return start_epochs(place, dir, "1", flags);
}

static double number(struct dp_place *place, const char *dir, const char *where)
{
    return dp_place_number(place, dp_place_path(place, "%s/report.json", dir), where);
}

static double spent(struct dp_place *place, const char *dir, unsigned w, const char *phase)
{
    return number(place, dir, dp_place_text(place, "workers.%u.spent_s.%s", w, phase));
}

/* What each worker computed took its time, and the most of that was waited for. */
static void took_its_time(struct dp_place *place, const char *dir, struct dp_process *run)
{
    for (unsigned w = 0; w < 3; w++) {
        double least =
            number(place, dir, dp_place_text(place, "workers.%u.pushes", w)) * PACE_S * (w == 2 ? TIMES : 1);
        double injected = spent(place, dir, w, "injected"), computed = spent(place, dir, w, "compute");
        assert_true(injected + computed > least * 0.9999);
        assert_true(injected > 0);
    }
    dp_place_says(
        run,
        "Delays are injected, so its times are not those of this machine: minibatches take 30 ms or more; "
        "worker 2's take 4 times as long.");
    dp_place_says(run, "Injected:  minibatches take 30 ms or more; worker 2's take 4 times as long");
    char *report = dp_place_read(place, dp_place_path(place, "%s/report.json", dir), NULL);
    assert_non_null(
        strstr(report, "\"injected\": \"minibatches take 30 ms or more; worker 2's take 4 times as long\""));
    assert_non_null(strstr(report, "\"pace\": \"30ms\""));
}

static const char *digest(struct dp_place *place, const char *dir)
{
    return dp_place_run_digest(place, dp_place_path(place, "%s", dir));
}

/* Planted: the loss is multiplied by the draw; no wait; a wait of half the time. */
static void sync_has_the_rows_of_no_delay(void **state)
{
    struct dp_place *place = *state;
    static const char *const calm[8] = {"--consistency", "sync", "--seed", "3"};
    static const char *const slow[8] = {"--consistency=sync", "--seed=3", "--inject",
                                        "pace=30ms,straggler=2:4x"};
    static const char *const drawn[8] = {"--consistency=sync", "--seed=3", "--inject=pace=10ms",
                                         "--inject=jitter=exp,straggler=0:20ms"};
    dp_place_ended(start(place, "calm", calm), 0);
    const char *rows = digest(place, "calm");
    struct dp_process *run = start(place, "slow", slow);
    dp_place_ended(run, 0);
    assert_string_equal(digest(place, "slow"), rows);
    took_its_time(place, "slow", run);
    /* All wait for the slowest. */
    assert_true(number(place, "slow", "throughput.seconds") > 7 * PACE_S * TIMES);
    assert_true(number(place, "calm", "spent_s.injected") == 0);
    run = start(place, "drawn", drawn);
    dp_place_ended(run, 0);
    assert_string_equal(digest(place, "drawn"), rows);
    dp_place_says(run, "minibatches take times drawn from the exponential distribution of mean 10 ms, or "
                       "more; worker 0's take "
                       "20 ms longer");
}

static void leased_work_takes_its_time(void **state)
{
    struct dp_place *place = *state;
    static const char *const flags[8] = {"--work", "leased", "--inject", "pace=30ms,straggler=2:4x"};
    struct dp_process *run = start(place, "leased", flags);
    dp_place_ended(run, 0);
    took_its_time(place, "leased", run);
    double pushes = 0;
    for (unsigned w = 0; w < 3; w++)
        pushes += number(place, "leased", dp_place_text(place, "workers.%u.pushes", w));
    assert_true(pushes == 23);
}

/* Its first step takes longer than the epoch. Planted: it computes all that it holds, seven steps. */
static void a_slow_worker_gives_up_what_others_did(void **state)
{
    struct dp_place *place = *state;
    static const char *const flags[8] = {"--work", "leased", "--inject", "pace=10ms,straggler=2:2s"};
    dp_place_ended(start(place, "given-up", flags), 0);
    assert_true(number(place, "given-up", "throughput.seconds") < 4 * 2.0 * DP_PATIENCE);
    assert_true(number(place, "given-up", "throughput.seconds") > 2);
}

/* With a backup most of what is late is given up before it is computed: without that, a tenth of it was passed over. */
static void what_is_late_on_every_shard_is_given_up(void **state)
{
    struct dp_place *place = *state;
    static const char *const flags[8] = {"--consistency=sync:1", "--inject", "pace=20ms,jitter=exp",
                                         "--shards=2"};
    double examples = 0;
    dp_place_ended(start_epochs(place, "late", "4", flags), 0);
    for (unsigned w = 0; w < 3; w++)
        examples += number(place, "late", dp_place_text(place, "workers.%u.examples", w));
    assert_true(examples == 4 * 1437);
    assert_true(number(place, "late", "dropped.examples") > 0);
    assert_true(number(place, "late", "dropped.not_computed") >
                0.5 * number(place, "late", "dropped.examples"));
}

/* Each thread waits for its own. */
static void threads_wait_each_for_their_own(void **state)
{
    struct dp_place *place = *state;
    struct dp_process *run =
        dp_place_try(place, 0, "downpour", "run", "--dir", dp_place_path(place, "threads"), "--model",
                     "mlp:64-32-10", "--train", DP_DIGITS_TRAIN, "--scale", "0.0625", "--epochs", "1",
                     "--batch", "128", "--threads", "3", "--fetch-every", "6", "--inject", "pace=60ms");
    dp_place_says(run, "Injected:  minibatches take 60 ms or more");
    /* 12 minibatches in two rounds of two on each thread; one after the other they would take 0.72 s. */
    assert_true(number(place, "threads", "spent_s.injected") + number(place, "threads", "spent_s.compute") >
                0.23);
    assert_true(number(place, "threads", "spent_s.injected") < 0.6);
}

/* Silent for longer than --worker-timeout, as it seems: it beats. Planted: a delay does nothing but wait. */
static void a_delay_is_no_silence(void **state)
{
    struct dp_place *place = *state;
    struct dp_process *run =
        dp_place_try(place, 0, "downpour", "run", "--dir", dp_place_path(place, "long"), "--model",
                     "mlp:64-32-10", "--train", DP_DIGITS_TRAIN, "--scale", "0.0625", "--epochs", "1",
                     "--batch", "719", "--workers", "2", "--consistency", "ssp:1", "--worker-timeout",
                     DP_PATIENCE > 1 ? "8" : "2", "--inject straggler", DP_PATIENCE > 1 ? "1:20s" : "1:5s");
    assert_true(number(place, "long", "workers.1.pushes") == 1);
    assert_null(strstr(dp_process_out(run), "Left:"));
    assert_null(strstr(dp_process_out(run), "Away:"));
}

/* Planted: the delay does not look for a signal. */
static void a_signal_ends_a_delay(void **state)
{
    struct dp_place *place = *state;
    static const char *const flags[8] = {"--inject", "straggler=0:600s,1:600s,2:600s"};
    struct dp_process *run = start(place, "stopped", flags);
    dp_place_awaits(run, "epoch 1/1");
    uint64_t begun_ms = dp_process_now_ms();
    dp_process_signal(run, SIGINT);
    dp_place_ended(run, 128 + SIGINT);
    assert_true(dp_process_now_ms() - begun_ms < 8000 * DP_PATIENCE);
}

/* It trains on, as the computing of a large model may be long enough. */
static void a_factor_of_no_pace_is_warned_of(void **state)
{
    struct dp_place *place = *state;
    static const char *const none[8] = {"--inject=straggler=1:2x"};
    static const char *const some[8] = {"--inject=straggler=1:2x,pace=1ms"};
    static const char says[] =
        "Warning: without --inject pace=TIME, straggler=1:2x multiplies only the computing";
    struct dp_process *run = start(place, "none", none);
    dp_place_ended(run, 0);
    dp_place_says(run, says);
    run = start(place, "some", some);
    dp_place_ended(run, 0);
    assert_null(strstr(dp_process_out(run), says));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sync_has_the_rows_of_no_delay, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(leased_work_takes_its_time, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(a_slow_worker_gives_up_what_others_did, dp_place_setup,
                                        dp_place_teardown),
        cmocka_unit_test_setup_teardown(what_is_late_on_every_shard_is_given_up, dp_place_setup,
                                        dp_place_teardown),
        cmocka_unit_test_setup_teardown(threads_wait_each_for_their_own, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(a_delay_is_no_silence, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(a_signal_ends_a_delay, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(a_factor_of_no_pace_is_warned_of, dp_place_setup, dp_place_teardown),
    };
    return cmocka_run_group_tests_name("injected", tests, NULL, NULL);
}
