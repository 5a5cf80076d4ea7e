/* SIGKILL to each kind of process: with a journal the training ends bit for bit as an undisturbed one; a run
 * stops all, nobody is left. DP_LONG=1: 20 kills of a training instead of 3. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static uint32_t kills(void)
{
    return getenv("DP_LONG") ? 20 : 3;
}

/* One worker whose order is fixed: each push is answered before the next pull. */
static struct dp_place_cluster fixed_order(const char *file, uint32_t shards, const char *durability)
{
    return (struct dp_place_cluster){.file = file,
                                     .shards = shards,
                                     .epochs = 4 * (kills() + 1),
                                     .batch = 8,
                                     .timeout_ms = 60000,
                                     .training = "overlap = false; pushes_max = 1;",
                                     .top = durability};
}

/* The digest of all rows, of key, step, weights and slots each, for any number of shards. */
static const char *undisturbed(struct dp_place *place)
{
    struct dp_place_cluster cluster = fixed_order("calm", 1, "durability = \"process\";");
    const char *conf = dp_place_conf(place, &cluster);
    struct dp_process *server = dp_place_server(place, conf, 0);
    dp_place_ended(dp_place_worker(place, conf, 0), 0);
    dp_place_stops_cleanly(server);
    return dp_place_digest(place, dp_place_path(place, "calm-0"), NULL);
}

/* The moment within an epoch is anyone's: drawn from the process's number. */
static void at_some_moment(uint32_t kill)
{
    uint64_t until = dp_process_now_ms() + ((uint64_t)getpid() * 2654435761u + kill * 40503u) % 60;
    while (dp_process_now_ms() < until)
        dp_process_pause();
}

/* The server is killed with a push under way; of one shard the worker too. Both are started again and nothing else is done. (A
 * worker that died between two shards' parts of a push computes the rest anew, from other weights: each shard counts the minibatch
 * once, but the bits are not those of the undisturbed run.) */
static void check_kills(struct dp_place *place, const char *calm, const char *file, uint32_t shards,
                        const char *durability)
{
    struct dp_place_cluster cluster = fixed_order(file, shards, durability);
    const char *conf = dp_place_conf(place, &cluster);
    struct dp_process *server = dp_place_server(place, conf, 0), *worker = dp_place_worker(place, conf, 0);
    for (uint32_t kill = 1; kill <= kills(); kill++) {
        dp_place_awaits(worker, dp_place_text(place, "epoch %u of", 4 * (unsigned)kill - 2));
        at_some_moment(kill);
        dp_process_signal(server, SIGKILL);
        dp_place_ended(server, -SIGKILL);
        if (shards == 1 && kill % 2 == 0) {
            dp_process_signal(worker, SIGKILL);
            dp_place_ended(worker, -SIGKILL);
            worker = dp_place_worker(place, conf, 0);
        }
        server = dp_place_server(place, conf, 0);
        dp_place_says(server, "recovered");
    }
    dp_place_ended(worker, 0);
    dp_place_stops_cleanly(server);
    assert_string_equal(dp_place_digest(place, dp_place_path(place, "%s-0", file), NULL), calm);
}

static void killed_servers_and_workers_lose_nothing(void **state)
{
    const char *calm = undisturbed(*state);
    check_kills(*state, calm, "two-shards", 2, "durability = \"machine\";");
    check_kills(*state, calm, "machine", 1, "durability = \"machine\";");
    check_kills(*state, calm, "process", 1, "durability = \"process\"; journal_bytes = \"16MiB\";");
}

static struct dp_process *endless_run(struct dp_place *place)
{
    struct dp_process *run =
        dp_place_start(place, "downpour", "run", "--dir", dp_place_path(place, "run"), "--servers", "2",
                       "--workers", "2", "--model", "mlp:64-64-10", "--train", DP_DIGITS_TRAIN, "--scale",
                       "0.0625", "--batch", "16", "--epochs", "100000", "--restarts", "0", NULL);
    dp_place_awaits(run, "/100000 ");
    return run;
}

static void a_killed_worker_ends_its_run(void **state)
{
    struct dp_place *place = *state;
    struct dp_process *run = endless_run(place);
    dp_place_kill_child(run, "--worker 1");
    dp_place_ended(run, 2);
    dp_place_says(run, "worker 1 was killed by signal 9");
    /* Its servers were stopped well: the store is trained on. */
    run = dp_place_try(place, 0, "downpour", "run", "--dir", dp_place_path(place, "run"), "--servers", "2",
                       "--model", "mlp:64-64-10", "--train", DP_DIGITS_TRAIN, "--scale", "0.0625", "--epochs",
                       "1", "--continue");
    dp_place_says(run, "this is run 2");
}

static void a_killed_command_leaves_nobody_and_a_clean_store(void **state)
{
    struct dp_place *place = *state;
    struct dp_process *run = endless_run(place);
    dp_process_signal(run, SIGKILL);
    assert_int_equal(dp_process_wait(run, DP_SOON_MS), -SIGKILL);
    uint64_t deadline = dp_process_now_ms() + (uint64_t)DP_SOON_MS * DP_PATIENCE;
    while (dp_process_left(run) > 0 && dp_process_now_ms() < deadline)
        dp_process_pause();
    assert_int_equal(dp_process_left(run), 0);
    (void)dp_place_try(place, 0, "downpour", "run", "--dir", dp_place_path(place, "run"), "--servers", "2",
                       "--model", "mlp:64-64-10", "--train", DP_DIGITS_TRAIN, "--scale", "0.0625", "--epochs",
                       "1", "--continue");
}

int main(void)
{
#define DP_KILLS_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        DP_KILLS_TEST(killed_servers_and_workers_lose_nothing),
        DP_KILLS_TEST(a_killed_worker_ends_its_run),
        DP_KILLS_TEST(a_killed_command_leaves_nobody_and_a_clean_store),
    };
    return cmocka_run_group_tests_name("kills", tests, NULL, NULL);
}
