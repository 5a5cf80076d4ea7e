/* Checkpoints from the command line, of servers under load: made while a worker trains, verified, restored onto the same and another number of
 * servers, and trained on to the bits of the run that was never stopped; and what is in the way of one. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <dirent.h>
#include <signal.h>
#include <string.h>

#define EPOCHS       24u
#define ALONE        "overlap = false; pushes_max = 1;"
#define IN_STEP      "consistency = \"sync\";"
#define SERVERS_MOST 3u

struct saved {
    struct dp_place *place;
    struct dp_place_cluster cluster;
    const char *conf, *to;
    struct dp_process *server[SERVERS_MOST], *worker[2];
};

static void as(struct saved *s, const char *file, uint32_t servers, uint32_t shards, uint32_t workers,
               const char *training)
{
    s->cluster = (struct dp_place_cluster){.file = file,
                                           .servers = servers,
                                           .shards = shards,
                                           .workers = workers,
                                           .epochs = EPOCHS,
                                           .batch = 8,
                                           .timeout_ms = 60000,
                                           .training = training,
                                           .top = "id = 77; journal_bytes = \"512MiB\";"};
    s->conf = dp_place_conf(s->place, &s->cluster);
}

static void start_servers(struct saved *s)
{
    for (uint32_t i = 0; i < s->cluster.servers; i++)
        s->server[i] = dp_place_server(s->place, s->conf, i);
}

static void start_workers(struct saved *s)
{
    for (uint32_t i = 0; i < s->cluster.workers; i++)
        s->worker[i] = dp_place_worker(s->place, s->conf, i);
}

static void end_workers(struct saved *s)
{
    for (uint32_t i = 0; i < s->cluster.workers; i++)
        dp_place_ended(s->worker[i], 0);
}

static void stop_servers(struct saved *s)
{
    for (uint32_t i = 0; i < s->cluster.servers; i++)
        dp_place_stops_cleanly(s->server[i]);
}

static const char *digest(const struct saved *s)
{
    return dp_place_digest(s->place, dp_place_path(s->place, "%s-0", s->cluster.file),
                           s->cluster.servers > 1 ? dp_place_path(s->place, "%s-1", s->cluster.file) : NULL);
}

/* A cluster that trains. */
static struct saved training(void **state, uint32_t workers, const char *how)
{
    struct saved s = {.place = *state, .to = NULL};
    s.to = dp_place_path(s.place, "checkpoints");
    as(&s, "c", 2, 1, workers, how);
    start_servers(&s);
    start_workers(&s);
    dp_place_awaits(s.worker[0], "epoch 2 of");
    return s;
}

static struct dp_process *checkpoint(const struct saved *s, const char *to, const char *flag,
                                     const char *value)
{
    return dp_place_start(s->place, "downpour", "checkpoint", "--cluster", s->conf, "--to", to, flag, value,
                          NULL);
}

/* Names in a directory that begin so. */
static uint32_t count_names(const char *directory, const char *begin)
{
    uint32_t count = 0;
    DIR *d = opendir(directory);
    for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        count += strncmp(e->d_name, begin, strlen(begin)) == 0;
    if (d)
        (void)closedir(d);
    return count;
}

static bool await_names(const char *directory, const char *begin, bool there, uint32_t timeout_ms)
{
    uint64_t until_ms = dp_process_now_ms() + timeout_ms;
    while ((count_names(directory, begin) > 0) != there) {
        if (dp_process_now_ms() > until_ms)
            return false;
        dp_process_pause();
    }
    return true;
}

/* A checkpoint that is seen between its cut and its end. */
static struct dp_process *slow_checkpoint(const struct saved *s, const char *rate)
{
    struct dp_process *slow = checkpoint(s, s->to, "--rate", rate);
    assert_true(await_names(dp_place_path(s->place, "c-0/shard-0000"), "cut-", true, DP_SOON_MS));
    return slow;
}

/* ---- made, restored, trained on */

static void expect_same_end(struct saved *s, const char *file, uint32_t servers, uint32_t shards,
                            uint32_t workers, const char *how, const char *end)
{
    as(s, file, servers, shards, workers, how);
    struct dp_process *restored =
        dp_place_try(s->place, 0, "downpour", "restore", "--from", s->to, "--cluster", s->conf);
    dp_place_says(restored, "restored checkpoint 2");
    start_servers(s);
    start_workers(s);
    end_workers(s);
    dp_place_says(s->worker[0], "continues at epoch");
    stop_servers(s);
    assert_string_equal(digest(s), end);
}

static void trained_on(void **state, uint32_t workers, const char *how)
{
    struct saved s = training(state, workers, how);
    dp_place_says(dp_place_ended_in(s.place, 0, checkpoint(&s, s.to, NULL, NULL)), "checkpoint 1 of run 1");
    dp_place_says(dp_place_ended_in(s.place, 0, checkpoint(&s, s.to, "--wait", "20s")),
                  "checkpoint 2 of run 1");
    assert_int_equal(dp_process_wait(s.worker[0], 0), DP_PROCESS_RUNS); /* or nothing was under way */
    end_workers(&s);
    stop_servers(&s);
    const char *end = digest(&s);
    dp_place_says(dp_place_try(s.place, 0, "downpour", "inspect", s.to, "--verify"),
                  "as their manifests say");
    expect_same_end(&s, "same", 2, 1, workers, how, end);
    expect_same_end(&s, "one", 1, 3, workers, how, end);
}

static void one_worker(void **state)
{
    trained_on(state, 1, ALONE " consistency = \"ssp:2\";");
}

static void workers_in_step(void **state)
{
    trained_on(state, 2, IN_STEP);
}

/* ---- what is in the way */

/* Nor is there a second first server: one that cannot start leaves the checkpoint alone. */
static void two_at_once(void **state)
{
    struct saved s = training(state, 1, ALONE);
    struct dp_process *slow = slow_checkpoint(&s, "1KB");
    dp_place_ended(dp_place_start(s.place, "downpour-server", "--cluster", s.conf, "--server", "0", NULL), 2);
    struct dp_process *other =
        dp_place_ended_in(s.place, 2, checkpoint(&s, dp_place_path(s.place, "elsewhere"), NULL, NULL));
    dp_place_says(other, dp_place_text(s.place, "another checkpoint is being made, in %s", s.to));
    dp_process_signal(slow, SIGINT);
    dp_place_ended(slow, 128 + SIGINT);
    assert_true(await_names(dp_place_path(s.place, "c-0/shard-0000"), "cut-", false, DP_SOON_MS));
    assert_int_equal(count_names(s.to, "making-") + count_names(s.to, "checkpoint-"), 0);
    dp_place_ended(checkpoint(&s, s.to, NULL, NULL), 0);
    end_workers(&s);
    stop_servers(&s);
}

/* The first server completes it, and training does not notice. */
static void killed_command(void **state)
{
    struct saved s = training(state, 1, ALONE);
    struct dp_process *slow = slow_checkpoint(&s, "200KB");
    dp_process_signal(slow, SIGKILL);
    dp_place_ended(slow, -SIGKILL);
    assert_int_equal(count_names(s.to, "checkpoint-"), 0); /* or it was killed too late to show anything */
    assert_true(await_names(s.to, "checkpoint-", true, DP_SOON_MS));
    assert_int_equal(count_names(s.to, "making-"), 0);
    assert_true(await_names(dp_place_path(s.place, "c-0/shard-0000"), "cut-", false, DP_SOON_MS));
    dp_place_says(dp_place_try(s.place, 0, "downpour", "inspect", s.to, "--verify"),
                  "as their manifests say");
    dp_place_says(dp_place_ended_in(s.place, 0, checkpoint(&s, s.to, NULL, NULL)), "checkpoint 2");
    end_workers(&s);
    stop_servers(&s);
}

/* Its last check finds a file that it does not have: it does not count. */
static void one_that_fails_its_check(void **state)
{
    struct saved s = training(state, 1, ALONE);
    struct dp_process *slow = slow_checkpoint(&s, "500KB");
    const char *put = dp_place_text(s.place, "cd %s/making-* && touch mine", s.to);
    (void)dp_place_try(s.place, 0, "/bin/sh", "-c", put);
    dp_place_ended(slow, 2);
    dp_place_says(slow, "mine is not in the manifest");
    assert_int_equal(count_names(s.to, "checkpoint-") + count_names(s.to, "making-"), 0);
    end_workers(&s);
    stop_servers(&s);
}

static void kill_server(struct saved *s, uint32_t server)
{
    dp_process_signal(s->server[server], SIGKILL);
    dp_place_ended(s->server[server], -SIGKILL);
    s->server[server] = dp_place_server(s->place, s->conf, server);
}

/* The order ends with one of its servers. What that one left in its store is swept when it starts; if it was the first
 * one, it then removes the rest, and tells the others to let go: nobody asks for a checkpoint before. */
static void killed_server(void **state)
{
    static const char *const says[] = {"the first server was started again",
                                       "shard 1 does not know the checkpoint"};
    struct saved s = training(state, 1, ALONE);
    for (uint32_t i = 0; i < 2; i++) {
        struct dp_process *slow = slow_checkpoint(&s, "1KB");
        kill_server(&s, i);
        assert_true(await_names(s.to, "making-", false, DP_SOON_MS));
        for (uint32_t k = 0; k < 2; k++)
            assert_true(await_names(dp_place_path(s.place, "c-%u/shard-%04u", (unsigned)k, (unsigned)k),
                                    "cut-", false, DP_SOON_MS));
        dp_place_ended(slow, 2);
        dp_place_says(slow, says[i]);
        assert_int_equal(count_names(s.to, "checkpoint-"), i);
        dp_place_ended(checkpoint(&s, s.to, NULL, NULL), 0);
    }
    end_workers(&s);
    stop_servers(&s);
}

static const char *last_name(struct dp_place *place, const char *to)
{
    return dp_process_out(dp_place_try(place, 0, "/bin/sh", "-c",
                                       dp_place_text(place, "ls %s | grep checkpoint- | tail -n 1", to)));
}

/* The cluster file asks for them: one each second, and the last two stay. A command keeps them, too. */
static void only_the_last_are_kept(void **state)
{
    struct saved s = {.place = *state, .to = NULL};
    s.to = dp_place_path(s.place, "checkpoints");
    as(&s, "c", 2, 1, 2, "pace = \"4ms\";");
    s.cluster.top = dp_place_text(
        s.place, "id = 77; journal_bytes = \"512MiB\"; checkpoint = { to = \"%s\"; every = 1; keep = 2; };",
        s.to);
    s.conf = dp_place_conf(s.place, &s.cluster);
    start_servers(&s);
    start_workers(&s);
    assert_true(await_names(s.to, "checkpoint-000003", true, 2 * DP_SOON_MS));
    assert_true(await_names(s.to, "checkpoint-000001", false, DP_SOON_MS));
    end_workers(&s);
    /* What comes without a push is none, in a next life neither: nothing that is older is removed for it. */
    dp_place_awaits(s.server[0], "no push came since checkpoint");
    stop_servers(&s);
    assert_int_equal(count_names(s.to, "making-"), 0);
    const char *last = last_name(s.place, s.to);
    start_servers(&s);
    dp_place_awaits(s.server[0], "no push came since checkpoint");
    stop_servers(&s);
    assert_string_equal(last_name(s.place, s.to), last);
    as(&s, "c", 2, 1, 2, "");
    start_servers(&s);
    dp_place_ended(checkpoint(&s, s.to, "--keep", "2"), 0);
    assert_int_equal(count_names(s.to, "checkpoint-"), 2);
    dp_place_says(dp_place_try(s.place, 0, "downpour", "inspect", s.to, "--json"), "\"whole\":true");
    (void)dp_place_try(s.place, 0, "downpour", "inspect", s.to, "--verify");
    assert_int_equal(count_names(s.to, "checkpoint-000001"), 0);
    stop_servers(&s);
}

static void directories_that_cannot_be(void **state)
{
    struct saved s = training(state, 1, ALONE);
    dp_place_says(dp_place_ended_in(s.place, 2, checkpoint(&s, dp_place_path(s.place, "c-0/x"), NULL, NULL)),
                  "holds a store");
    dp_place_says(
        dp_place_ended_in(s.place, 2, checkpoint(&s, dp_place_path(s.place, "c-0/shard-0000"), NULL, NULL)),
        "holds a store");
    end_workers(&s);
    stop_servers(&s);
    dp_place_says(dp_place_ended_in(s.place, 2, checkpoint(&s, s.to, NULL, NULL)), "shard 0");
}

int main(void)
{
#define CHECKPOINT_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        CHECKPOINT_TEST(one_worker),
        CHECKPOINT_TEST(workers_in_step),
        CHECKPOINT_TEST(only_the_last_are_kept),
        CHECKPOINT_TEST(two_at_once),
        CHECKPOINT_TEST(killed_server),
        CHECKPOINT_TEST(directories_that_cannot_be),
        CHECKPOINT_TEST(killed_command),
        CHECKPOINT_TEST(one_that_fails_its_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
