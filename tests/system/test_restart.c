/* Killed when all is pushed, a worker ends well; a server that is away for long is waited for. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

struct run {
    struct dp_place *place;
    struct dp_process *process;
    const char *dir;
};

/* Whether a log has the text so many times. */
static bool has(const struct run *run, const char *log, const char *text, uint32_t times)
{
    char path[512], line[512];
    (void)snprintf(path, sizeof path, "%s/log/%s.log", run->dir, log);
    FILE *file = fopen(path, "re");
    while (file && times > 0 && fgets(line, sizeof line, file))
        times -= strstr(line, text) != NULL;
    if (file)
        (void)fclose(file);
    return times == 0;
}

static void await_log(struct run *run, const char *log, const char *text, uint32_t times)
{
    uint64_t deadline = dp_process_now_ms() + (uint64_t)DP_SOON_MS * DP_PATIENCE;
    while (!has(run, log, text, times)) {
        if (dp_process_now_ms() >= deadline || dp_process_wait(run->process, 0) != DP_PROCESS_RUNS)
            fail_msg("%s.log has not said '%s' %u times; the command: %s", log, text, (unsigned)times,
                     dp_process_err(run->process));
        dp_process_pause();
    }
}

static void kill_one(struct run *run, const char *role, uint32_t number)
{
    dp_place_kill_child(run->process, dp_place_text(run->place, "--%s %u", role, (unsigned)number));
    dp_place_awaits(run->process, dp_place_text(run->place,
                                                "%s %u was killed by signal 9 (Killed); it is started "
                                                "again in 0.1 s",
                                                role, (unsigned)number));
}

/* Killed at the very end, when all is pushed: nothing is trained again, and the report is there. */
static void a_worker_killed_while_it_waits_ends_well(void **state)
{
    struct run run = {.place = *state, .dir = dp_place_path(*state, "run")};
    run.process = dp_place_start(run.place, "downpour", "run", "--dir", run.dir, "--workers", "2", "--model",
                                 "mlp:64-64-10", "--train", DP_DIGITS_TRAIN, "--scale", "0.0625", "--batch",
                                 "8", "--epochs", "12", "--rate", "0.002", NULL);
    /* Stopped, so that the other one has to wait for it (in the end: with a test set, after each epoch). */
    await_log(&run, "worker-1", "epoch 1 of", 1);
    pid_t pid = dp_place_child(run.process, "--worker 1");
    assert_int_equal(kill(pid, SIGSTOP), 0);
    await_log(&run, "worker-0", "epoch 12 of", 1);
    kill_one(&run, "worker", 0);
    await_log(&run, "worker-0", "continues after its last epoch", 1);
    assert_int_equal(kill(pid, SIGCONT), 0);
    dp_place_ended(run.process, 0);
    const char *report = dp_place_path(run.place, "run/report.json");
    assert_true(dp_place_number(run.place, report, "epochs.11.train_loss") < 0.5);
    assert_true(dp_place_number(run.place, report, "workers.0.pushes") == 12 * 90);
    assert_true(dp_place_number(run.place, report, "workers.0.examples") == 12 * 720);
}

/* For over 10 s: the worker says whom it waits for and why, and goes on when the server is there again. */
static void a_server_gone_for_long_is_waited_for(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = {.servers = 2, .epochs = 40, .batch = 8, .timeout_ms = 120000};
    const char *conf = dp_place_conf(place, &cluster);
    struct dp_process *server[2], *worker;
    for (uint32_t i = 0; i < 2; i++)
        server[i] = dp_place_server(place, conf, i);
    worker = dp_place_worker(place, conf, 0);
    dp_place_awaits(worker, "epoch 2 of");
    dp_process_signal(server[1], SIGKILL);
    dp_place_ended(server[1], -SIGKILL);
    dp_place_awaits(worker, "waiting for 1");
    dp_place_says(worker,
                  dp_place_text(place,
                                "s, for 120 s at most (training.timeout_ms): wait: no answer from shard 1 at "
                                "tcp://127.0.0.1:%u in",
                                (unsigned)(cluster.port + 3)));
    server[1] = dp_place_server(place, conf, 1);
    dp_place_ended(worker, 0);
    for (uint32_t i = 0; i < 2; i++)
        dp_place_stops_cleanly(server[i]);
}

int main(void)
{
#define DP_RESTART_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        DP_RESTART_TEST(a_worker_killed_while_it_waits_ends_well),
        DP_RESTART_TEST(a_server_gone_for_long_is_waited_for),
    };
    return cmocka_run_group_tests_name("restart", tests, NULL, NULL);
}
