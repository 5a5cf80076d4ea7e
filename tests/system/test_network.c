/* Servers and workers on hosts of their own (hosts.h) whose network fails: a host, a pair or one direction is
 * cut, a host comes back elsewhere, a link is slow, packets are lost, names are not found. Training goes on
 * by itself, and each push counts once. What it took is printed: no time is asserted.
 * Short: one or two faults of a few seconds each. DP_LONG=1: 21 cuts of 5 to 40 s in each mode, 10 minutes
 * without a host, frames of 60 MB. Skipped by name where no namespaces can be made. */
#include "tests/lib/test.h"
#include "tests/system/hosts.h"
#include "tests/system/place.h"
#include "tests/system/train_ledger.h"
#include "tests/system/train_ledger_read.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SERVERS       2u
#define WORKERS       2u
#define FIRST_WORKER  3u /* its host; servers have 1 and 2 */
#define DIGITS        1437u
#define ROWS_BYTES    4000u
#define REST_MS       1200000u
#define LEDGER_WORKER DP_TESTS_BIN "/ledger_worker"

struct run {
    struct dp_place *place;
    const char *conf, *file, *journal; /* journal: NULL: 256MiB */
    uint32_t epochs, batch, pushes;    /* pushes: of an epoch, of all workers */
    bool exact;                        /* each push adds 1: in sync it is divided by the pushes of its step */
    struct dp_process *server[SERVERS], *worker[WORKERS];
    uint64_t random;
};

static bool is_long(void)
{
    return getenv("DP_LONG") != NULL;
}

static uint32_t draw(struct run *run, uint32_t below)
{
    run->random = run->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((run->random >> 33) % below);
}

static void seed(struct run *run)
{
    const char *given = getenv("DP_TEST_SEED");
    uint64_t number = given ? (uint64_t)strtoull(given, NULL, 10) : (uint64_t)getpid();
    print_message("moments by DP_TEST_SEED=%" PRIu64 "\n", number);
    run->random = number * UINT64_C(0x9e3779b97f4a7c15);
}

static void pause_ms(uint32_t ms)
{
    uint64_t until_ms = dp_process_now_ms() + ms;
    while (dp_process_now_ms() < until_ms)
        dp_process_pause();
}

/* more: lines of the cluster file. */
static void write_conf(struct run *run, const char *file, const char *model, const char *training,
                       const char *more)
{
    char text[2048];
    int len = snprintf(text, sizeof text,
                       "name = \"%s\"; model = \"%s\"; journal_bytes = \"%s\";\n"
                       "servers = { count = %u; shards = 1; store = \"%s\"; port = 5700; };\n"
                       "data = { train = \"%s\"; scale = 0.0625; };\n"
                       "training = { workers = %u; epochs = %u; batch = %u; rate = 0.0078125; %s };\n%s\n",
                       file, model, run->journal ? run->journal : "256MiB", SERVERS,
                       dp_place_path(run->place, "store-%s", file), DP_DIGITS_TRAIN, WORKERS,
                       (unsigned)run->epochs, (unsigned)run->batch, training, more);
    run->pushes = (DIGITS + run->batch - 1) / run->batch;
    assert_in_range(len, 1, (int)sizeof text - 1);
    run->file = file;
    run->conf = dp_place_file(run->place, dp_place_text(run->place, "%s.conf", file), text, (size_t)len);
}

static void start_server(struct run *run, uint32_t server, const char *flag)
{
    run->server[server] = dp_hosts_start(run->place, 1 + server, DP_BIN "/downpour-server", "--cluster",
                                         run->conf, server == 0 ? "--server=0" : "--server=1", flag);
}

static void start_worker(struct run *run, uint32_t worker)
{
    run->worker[worker] = dp_hosts_start(run->place, FIRST_WORKER + worker, LEDGER_WORKER, "--cluster",
                                         run->conf, worker == 0 ? "--worker=0" : "--worker=1", NULL);
}

static void start_all(struct run *run)
{
    for (uint32_t i = 0; i < SERVERS; i++)
        start_server(run, i, "--new");
    for (uint32_t i = 0; i < SERVERS; i++)
        dp_place_awaits(run->server[i], "ready:");
    for (uint32_t i = 0; i < WORKERS; i++)
        start_worker(run, i);
}

/* Rows of the server have arrived at the worker since it had received so much. */
static bool rows_came(uint32_t worker, uint32_t server, uint64_t before)
{
    uint64_t now = dp_hosts_received(FIRST_WORKER + worker, 1 + server);
    return now < before ? now > ROWS_BYTES : now - before > ROWS_BYTES; /* less: another connection */
}

static void await_rows_since(uint32_t worker, uint32_t server, uint64_t before)
{
    uint64_t deadline = dp_process_now_ms() + (uint64_t)DP_SOON_MS * DP_PATIENCE;
    while (!rows_came(worker, server, before)) {
        if (dp_process_now_ms() > deadline)
            fail_msg("worker %u gets no rows of server %u", (unsigned)worker, (unsigned)server);
        dp_process_pause();
    }
}

static void await_rows(uint32_t worker, uint32_t server)
{
    await_rows_since(worker, server, dp_hosts_received(FIRST_WORKER + worker, 1 + server));
}

static void await_all_rows(void)
{
    for (uint32_t worker = 0; worker < WORKERS; worker++)
        for (uint32_t server = 0; server < SERVERS; server++)
            await_rows(worker, server);
}

static void check_push(void *context, uint32_t epoch, uint32_t number, const float *counts)
{
    const struct run *run = context;
    const float want = number < run->pushes ? 1.0f : 0.0f;
    for (uint32_t i = 0; i < DP_TRAIN_LEDGER_PLACES; i++)
        if (counts[i] < want || counts[i] > want)
            fail_msg("push %u of epoch %u was counted %g times at place %u", (unsigned)number,
                     (unsigned)epoch + 1, (double)counts[i], (unsigned)i);
}

static void end_all(struct run *run)
{
    for (uint32_t i = 0; i < WORKERS; i++) {
        (void)dp_process_wait(run->worker[i], REST_MS);
        dp_place_ended(run->worker[i], 0);
    }
    if (run->exact)
        dp_train_ledger_read(run->conf, run->epochs, run->pushes + 1, check_push, run);
    for (uint32_t i = 0; i < SERVERS; i++)
        dp_place_stops_cleanly(run->server[i]);
}

static const char *digest(const struct run *run)
{
    return dp_place_digest(run->place, dp_place_path(run->place, "store-%s/server-0", run->file),
                           dp_place_path(run->place, "store-%s/server-1", run->file));
}

/* Cuts for a while, heals, and prints how long it took until rows reached the worker that had waited. */
static void cut_once(struct run *run, uint32_t i)
{
    static const char *const names[] = {"host", "pair", "one way"};
    const enum dp_hosts_cut kind = (enum dp_hosts_cut)(i % 3);
    uint32_t worker = draw(run, WORKERS), server = draw(run, SERVERS);
    uint32_t a = draw(run, 2) ? 1 + server : FIRST_WORKER + worker;
    uint32_t b = a == 1 + server ? FIRST_WORKER + worker : 1 + server;
    uint32_t ms = is_long() ? 5000 + draw(run, 35000) : 2000 + draw(run, 3000);
    await_all_rows();
    dp_hosts_cut(run->place, kind, a, b);
    pause_ms(ms);
    uint64_t before = dp_hosts_received(FIRST_WORKER + worker, 1 + server);
    dp_hosts_heal(run->place, kind, a, b);
    uint64_t healed_ms = dp_process_now_ms();
    while (!rows_came(worker, server, before)) {
        if (dp_process_now_ms() - healed_ms > (uint64_t)DP_SOON_MS * DP_PATIENCE)
            fail_msg("%s, %u to %u, was cut for %u ms; worker %u gets no rows since", names[kind],
                     (unsigned)a, (unsigned)b, (unsigned)ms, (unsigned)worker);
        dp_process_pause();
    }
    print_message("%-8s %u to %u cut for %5.1f s: rows %.2f s after it healed\n", names[kind], (unsigned)a,
                  (unsigned)b, (double)ms / 1e3, (double)(dp_process_now_ms() - healed_ms) / 1e3);
    for (uint32_t w = 0; w < WORKERS; w++)
        if (dp_process_wait(run->worker[w], 0) != DP_PROCESS_RUNS)
            fail_msg("worker %u has ended within the cuts", (unsigned)w);
}

static const char *training_of(struct dp_place *place, const char *mode, const char *pace)
{
    return dp_place_text(place, "consistency = \"%s\"; timeout_ms = 120000; %s", mode, pace);
}

static void open_run(struct run *run, void *state, uint32_t hosts)
{
    run->place = state;
    seed(run);
    dp_hosts_open(run->place, hosts);
}

/* epochs: enough that the training lasts longer than the cuts. */
static void cuts(void *state, const char *mode, uint32_t epochs)
{
    struct run run = {.epochs = epochs, .batch = 8, .exact = strcmp(mode, "sync") != 0};
    open_run(&run, state, 4);
    write_conf(&run, "cut", "mlp:64-64-10", training_of(run.place, mode, "pace = \"20ms\";"),
               "first = \"10.77.0.1\";");
    start_all(&run);
    for (uint32_t i = 0; i < (is_long() ? 21u : 2u); i++)
        cut_once(&run, is_long() ? i : draw(&run, 3));
    end_all(&run);
    if (run.exact)
        return;
    const char *end = digest(&run);
    write_conf(&run, "calm", "mlp:64-64-10", training_of(run.place, mode, ""), "first = \"10.77.0.1\";");
    start_all(&run);
    end_all(&run);
    assert_string_equal(digest(&run), end);
}

static void cuts_cost_only_time_in_async(void **state)
{
    cuts(*state, "async", is_long() ? 330 : 10);
}

static void cuts_cost_only_time_in_ssp(void **state)
{
    cuts(*state, "ssp:2", is_long() ? 150 : 10);
}

static void cuts_cost_only_time_in_sync(void **state)
{
    cuts(*state, "sync", is_long() ? 110 : 8);
}

/* Bytes of rows a second that reach the worker. */
static double rate_of(uint32_t worker, uint32_t ms)
{
    uint64_t got = 0, began_ms = dp_process_now_ms(), before[SERVERS];
    for (uint32_t i = 0; i < SERVERS; i++)
        before[i] = dp_hosts_received(FIRST_WORKER + worker, 1 + i);
    pause_ms(ms);
    for (uint32_t i = 0; i < SERVERS; i++) {
        uint64_t now = dp_hosts_received(FIRST_WORKER + worker, 1 + i);
        got += now < before[i] ? now : now - before[i]; /* less: another connection */
    }
    return (double)got * 1e3 / (double)(dp_process_now_ms() - began_ms);
}

/* Planted: a server that makes all wait for one. */
static void others_go_on_when_a_worker_is_cut_off(void **state)
{
    const uint32_t ms = is_long() ? 20000 : 3000;
    struct run run = {.epochs = is_long() ? 60 : 10, .batch = 8, .exact = true};
    open_run(&run, *state, 4);
    write_conf(&run, "cut", "mlp:64-64-10", training_of(run.place, "async", "pace = \"20ms\";"),
               "first = \"10.77.0.1\";");
    start_all(&run);
    await_all_rows();
    double calm = rate_of(1, ms);
    dp_hosts_cut(run.place, DP_HOSTS_ALL, FIRST_WORKER, 0);
    double cut = rate_of(1, ms);
    print_message("the other worker: %.2f of its pulls, while one was cut off for %.0f s\n", cut / calm,
                  ms / 1e3);
    assert_true(cut > calm / 4);
    dp_hosts_heal(run.place, DP_HOSTS_ALL, FIRST_WORKER, 0);
    await_all_rows();
    end_all(&run);
}

static void a_server_comes_back_elsewhere(void **state)
{
    struct run run = {.epochs = is_long() ? 30 : 8, .batch = 8, .exact = true};
    open_run(&run, *state, 4);
    write_conf(&run, "moved", "mlp:64-64-10",
               "consistency = \"async\"; timeout_ms = 600000; pace = \"20ms\";", "first = \"10.77.0.1\";");
    start_all(&run);
    await_all_rows();
    dp_process_signal(run.server[1], SIGKILL);
    assert_int_equal(dp_process_wait(run.server[1], DP_SOON_MS), -SIGKILL);
    dp_hosts_cut(run.place, DP_HOSTS_ALL, 2, 0);
    pause_ms(is_long() ? 600000 : 2000);
    dp_hosts_move(run.place, 2, 9);
    dp_hosts_heal(run.place, DP_HOSTS_ALL, 2, 0);
    start_server(&run, 1, NULL);
    uint64_t back_ms = dp_process_now_ms();
    await_rows(0, 1);
    await_rows(1, 1);
    print_message("rows %.2f s after the server was started at another address\n",
                  (double)(dp_process_now_ms() - back_ms) / 1e3);
    end_all(&run);
}

/* Frames take seconds. Planted: a heartbeat with a timeout below the time of a frame. */
static void slow_links_break_no_connection(void **state)
{
    struct run run = {.epochs = 2, .batch = is_long() ? 64 : 256, .exact = true, .journal = "2GiB"};
    open_run(&run, *state, 4);
    for (uint32_t host = 1; host <= 4; host++) {
        const char *limit =
            dp_place_text(run.place, "tc qdisc add dev eth0 root tbf rate %s burst 64k latency 50ms",
                          is_long() ? "100mbit" : "16mbit");
        dp_hosts_do(run.place, host, limit);
    }
    write_conf(&run, "slow", is_long() ? "mlp:64-65536-448-10" : "mlp:64-8192-64-10",
               "consistency = \"async\"; timeout_ms = 120000;", "first = \"10.77.0.1\";");
    start_all(&run);
    for (uint32_t i = 0; i < WORKERS; i++)
        await_rows_since(i, 1, 0);
    const char *before[WORKERS];
    for (uint32_t i = 0; i < WORKERS; i++)
        before[i] = dp_hosts_connections(run.place, FIRST_WORKER + i, 2);
    uint64_t began_ms = dp_process_now_ms();
    for (uint32_t i = 0; i < WORKERS; i++) {
        (void)dp_process_await(run.worker[i], "epoch 1 of", REST_MS);
        dp_place_says(run.worker[i], "epoch 1 of");
        assert_string_equal(dp_hosts_connections(run.place, FIRST_WORKER + i, 2), before[i]);
    }
    print_message("no connection was made again in %.0f s\n", (double)(dp_process_now_ms() - began_ms) / 1e3);
    end_all(&run);
}

/* A fifth of the packets is lost; then each packet of a connection to server 1 is answered by a reset. */
static void loss_and_resets_cost_only_time(void **state)
{
    const uint32_t ms = is_long() ? 60000 : 3000;
    struct run run = {.epochs = is_long() ? 60 : 10, .batch = 8, .exact = true};
    if (system("command -v nft >/dev/null") != 0) {
        print_message("skipped: there is no nft\n");
        skip();
    }
    open_run(&run, *state, 4);
    write_conf(&run, "loss", "mlp:64-64-10", training_of(run.place, "async", "pace = \"20ms\";"),
               "first = \"10.77.0.1\";");
    start_all(&run);
    await_all_rows();
    double calm = rate_of(1, ms);
    dp_hosts_do(run.place, 2,
                "nft add table inet t; nft add chain inet t in \"{ type filter hook input priority 0; }\"; "
                "nft add rule inet t in numgen random mod 100 \"<\" 20 drop");
    print_message("%.2f of the pulls, while a fifth of the packets to server 1 was lost\n",
                  rate_of(1, ms) / calm);
    dp_hosts_do(
        run.place, 2,
        "nft flush chain inet t in; nft add rule inet t in tcp dport 5700-5701 reject with tcp reset");
    pause_ms(ms);
    dp_hosts_do(run.place, 2, "nft delete table inet t");
    uint64_t back_ms = dp_process_now_ms();
    await_rows(0, 1);
    await_rows(1, 1);
    print_message("rows %.2f s after the last reset\n", (double)(dp_process_now_ms() - back_ms) / 1e3);
    end_all(&run);
}

static void names_that_are_not_found_stop_nobody(void **state)
{
    const uint32_t ms = is_long() ? 60000 : 4000;
    struct run run = {.epochs = is_long() ? 90 : 14, .batch = 8, .exact = true};
    open_run(&run, *state, 4);
    struct dp_process *names = dp_hosts_name_server(run.place);
    write_conf(&run, "names", "mlp:64-64-10", training_of(run.place, "async", "pace = \"20ms\";"),
               "first = \"h1.test\";");
    start_all(&run);
    await_all_rows();
    double calm = rate_of(1, ms);
    dp_process_signal(names, SIGSTOP);
    dp_process_signal(run.worker[0], SIGKILL);
    assert_int_equal(dp_process_wait(run.worker[0], DP_SOON_MS), -SIGKILL);
    start_worker(&run, 0); /* it must ask for the name */
    double without = rate_of(1, ms);
    print_message("%.2f of the pulls, while no name was found for %.0f s\n", without / calm, ms / 1e3);
    assert_int_equal(dp_process_wait(run.worker[0], 0), DP_PROCESS_RUNS);
    assert_true(without > calm / 4);
    dp_process_signal(names, SIGCONT);
    uint64_t back_ms = dp_process_now_ms();
    await_rows(0, 0);
    print_message("rows %.2f s after names were found again\n",
                  (double)(dp_process_now_ms() - back_ms) / 1e3);
    end_all(&run);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        TEST(cuts_cost_only_time_in_async),   TEST(cuts_cost_only_time_in_ssp),
        TEST(cuts_cost_only_time_in_sync),    TEST(others_go_on_when_a_worker_is_cut_off),
        TEST(a_server_comes_back_elsewhere),  TEST(slow_links_break_no_connection),
        TEST(loss_and_resets_cost_only_time), TEST(names_that_are_not_found_stop_nobody),
    };
    if (!dp_hosts_possible()) {
        print_message("skipped: no network namespaces can be made here, or ip, ss or nsenter is missing\n");
        return 77;
    }
    if (getenv("DP_TEST"))
        cmocka_set_test_filter(getenv("DP_TEST"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
