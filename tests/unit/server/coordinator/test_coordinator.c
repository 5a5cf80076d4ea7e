/* The checkpoint coordinator. Goal: one checkpoint at a time, whose state can be asked for after the next one has begun; asking twice makes one;
 * giving up and stopping end it; what a life before left is removed at the start.
 * Method: real directories; the order to the shards is this file's, and there are no shards. */
#include "server/coordinator/coordinator.h"
#include "tests/lib/test.h"

#include "common/base/deadline.h"
#include "common/client/downpour.h"
#include "common/config/cluster_client.h"
#include "common/env/directory.h"
#include "server/checkpoint/listing.h"
#include "server/checkpoint/making.h"
#include "server/checkpoint/paths.h"
#include "server/coordinator/coordination.h"
#include "server/coordinator/saved_files.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SOON_MS 20000u

static char directory[] = "/tmp/coordinator-XXXXXX";
static struct dp_cluster cluster;
static struct dp_cluster_server server;
static struct dp_coordinator *coordinator;

static void pause_shortly(void)
{
    const struct timespec time = {.tv_nsec = 1000000};
    (void)nanosleep(&time, NULL);
}

/* ---- the order */

static atomic_int begun, holds; /* orders; whether one goes on until it is to stop, or, 2, further */
static atomic_int silent;       /* so often no shard answers */
static atomic_uint waits_ms;    /* of the last order */

enum dp_status __wrap_dp_cluster_client(const struct dp_cluster *of, const struct dp_client_options *options,
                                        struct dp_client **out, struct dp_error *err);
enum dp_status __wrap_dp_cluster_client(const struct dp_cluster *of, const struct dp_client_options *options,
                                        struct dp_client **out, struct dp_error *err)
{
    *out = NULL;
    return DP_OK;
}

enum dp_status __wrap_dp_client_checkpoint(struct dp_client *client, const void *asks, void *answers,
                                           uint32_t timeout_ms, struct dp_error *err);
enum dp_status __wrap_dp_client_checkpoint(struct dp_client *client, const void *asks, void *answers,
                                           uint32_t timeout_ms, struct dp_error *err)
{
    return atomic_fetch_sub(&silent, 1) > 0
               ? dp_fail(err, DP_TIMEOUT, "no shard answers in %u ms", timeout_ms)
               : DP_OK;
}

enum dp_status __wrap_dp_coordination_run(const struct dp_coordination_options *options,
                                          struct dp_checkpoint_made *out, struct dp_error *err);
enum dp_status __wrap_dp_coordination_run(const struct dp_coordination_options *options,
                                          struct dp_checkpoint_made *out, struct dp_error *err)
{
    const struct dp_checkpoint_state copying = {.stage = DP_CHECKPOINT_COPYING,
                                                .order = options->asked->order,
                                                .done_bytes = 5,
                                                .why = "copying (shard 1)"};
    *out = (struct dp_checkpoint_made){.number = (uint64_t)atomic_fetch_add(&begun, 1) + 1};
    atomic_store(&waits_ms, options->asked->wait_ms);
    options->show(options->context, &copying);
    while (atomic_load(&holds) == 2 || (atomic_load(&holds) && !options->stopped(options->context)))
        pause_shortly();
    *options->leaves = atomic_load(&silent) > 0;
    return atomic_load(&holds) ? dp_fail(err, DP_STOPPING, "interrupted while copying") : DP_OK;
}

/* ---- */

static const char *at(const char *name)
{
    static char path[300];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static int setup(void **state)
{
    (void)strcpy(directory + strlen(directory) - 6, "XXXXXX");
    atomic_store(&begun, 0);
    atomic_store(&holds, 0);
    atomic_store(&silent, 0);
    cluster = (struct dp_cluster){.id = 77, .server_count = 1, .server = &server};
    server.shards = 2;
    return mkdtemp(directory) ? 0 : -1;
}

static int teardown(void **state)
{
    struct dp_error err;
    dp_coordinator_stop(&coordinator);
    return dp_directory_remove(directory, true, DP_CHECKPOINT_DEPTH, &err) == DP_OK ? 0 : -1;
}

static void start(void)
{
    static const char text[] = "name = \"c\"; id = 77; model = \"logistic\"; data = { train = \"t\"; };\n"
                               "servers = ({ host = \"h\"; port = 1; shards = 2; store = \"s\"; });\n";
    static char file[300];
    struct dp_error err = {0};
    (void)snprintf(file, sizeof file, "%s", at("cluster.conf"));
    FILE *conf = fopen(file, "w");
    assert_non_null(conf);
    (void)fputs(text, conf);
    assert_int_equal(fclose(conf), 0);
    const struct dp_coordinator_options options = {.cluster = &cluster, .file = file, .directory = directory};
    assert_int_equal(dp_coordinator_new(&options, &coordinator, &err), DP_OK);
    assert_int_equal(dp_coordinator_start(coordinator, &err), DP_OK);
}

static struct dp_checkpoint_made made;

static struct dp_checkpoint_state take(enum dp_checkpoint_action action, uint64_t order, enum dp_status want)
{
    struct dp_checkpoint_ask ask = {.action = action, .order = order};
    struct dp_checkpoint_state state;
    struct dp_error err = {0};
    ask.keep = 1;
    ask.wait_ms = UINT32_MAX;
    (void)snprintf(ask.directory, sizeof ask.directory, "%s", at("to"));
    assert_int_equal(dp_coordinator_take(coordinator, &ask, &state, &made, &err), want);
    return state;
}

static struct dp_checkpoint_state await(uint64_t order, enum dp_checkpoint_stage stage)
{
    struct dp_checkpoint_state state;
    for (uint64_t until_ms = dp_now_ms() + SOON_MS;;) {
        state = take(DP_CHECKPOINT_LOOK, order, DP_OK);
        if (state.stage == stage)
            return state;
        if (dp_now_ms() > until_ms)
            fail_msg("order %d stays in stage %d: %s", (int)order, (int)state.stage, state.why);
        pause_shortly();
    }
}

static void one_at_a_time_and_its_state_stays(void **state)
{
    start();
    assert_int_equal(take(DP_CHECKPOINT_LOOK, 1, DP_OK).stage, DP_CHECKPOINT_NONE);
    atomic_store(&holds, 1);
    (void)take(DP_CHECKPOINT_BEGIN, 1, DP_OK);
    struct dp_checkpoint_state copying = await(1, DP_CHECKPOINT_COPYING);
    assert_int_equal(copying.done_bytes, 5);
    assert_string_equal(copying.why, "copying (shard 1)");
    (void)take(DP_CHECKPOINT_BEGIN, 2, DP_IN_USE);
    (void)take(DP_CHECKPOINT_ABANDON, 2, DP_OK); /* another one's changes nothing */
    (void)take(DP_CHECKPOINT_CUT, 1, DP_INVALID);
    atomic_store(&holds, 0);
    (void)await(1, DP_CHECKPOINT_COPIED);
    assert_int_equal(made.number, 1);
    assert_int_equal(take(DP_CHECKPOINT_BEGIN, 1, DP_OK).stage, DP_CHECKPOINT_COPIED); /* sent again */
    assert_int_equal(atomic_load(&begun), 1);
    assert_int_equal(access(at("checkpoint-order"), F_OK), -1);
    atomic_store(&holds, 1);
    (void)take(DP_CHECKPOINT_BEGIN, 2, DP_OK);
    assert_int_equal(take(DP_CHECKPOINT_LOOK, 1, DP_OK).stage,
                     DP_CHECKPOINT_COPIED); /* its client may look late */
    assert_int_equal(made.number, 1);
}

static void it_is_given_up_and_says_why(void **state)
{
    start();
    atomic_store(&holds, 1);
    (void)take(DP_CHECKPOINT_BEGIN, 1, DP_OK);
    (void)await(1, DP_CHECKPOINT_COPYING);
    assert_int_equal(access(at("checkpoint-order"), F_OK), 0);
    (void)take(DP_CHECKPOINT_ABANDON, 1, DP_OK);
    struct dp_checkpoint_state ended = await(1, DP_CHECKPOINT_ABANDONED);
    assert_int_equal(ended.why_status, DP_UNAVAILABLE);
    assert_string_equal(ended.why, "its client gave it up: interrupted while copying");
    (void)take(DP_CHECKPOINT_BEGIN, 2, DP_OK);
    (void)await(2, DP_CHECKPOINT_COPYING);
    dp_coordinator_stop(&coordinator); /* returns: the order under way ends */
    assert_int_equal(access(at("checkpoint-order"), F_OK), -1);
}

/* The next life tries again. */
static void the_note_stays_if_shards_do_not_answer(void **state)
{
    (void)state;
    start();
    atomic_store(&holds, 1);
    atomic_store(&silent, 1);
    (void)take(DP_CHECKPOINT_BEGIN, 1, DP_OK);
    (void)await(1, DP_CHECKPOINT_COPYING);
    dp_coordinator_stop(&coordinator);
    assert_int_equal(access(at("checkpoint-order"), F_OK), 0);
}

/* The shards drain after give_up. */
static void a_disk_that_hangs_does_not_hold_it_up(void **state)
{
    (void)state;
    start();
    atomic_store(&holds, 2);
    (void)take(DP_CHECKPOINT_BEGIN, 1, DP_OK);
    (void)await(1, DP_CHECKPOINT_COPYING);
    dp_coordinator_give_up(coordinator);
    assert_int_equal(take(DP_CHECKPOINT_LOOK, 1, DP_OK).stage, DP_CHECKPOINT_COPYING);
    atomic_store(&holds, 1);
    dp_coordinator_stop(&coordinator);
}

static void no_wait_is_longer_than_an_hour(void **state)
{
    (void)state;
    start();
    (void)take(DP_CHECKPOINT_BEGIN, 1, DP_OK);
    (void)await(1, DP_CHECKPOINT_COPIED);
    assert_int_equal(atomic_load(&waits_ms), DP_CHECKPOINT_WAIT_MS_MAX);
}

static bool at_once(void *context)
{
    (void)context;
    return atomic_load(&begun) > 1;
}

/* Not one that is under way, which may lack the last pushes: one that begins after it. */
static void a_last_one_does_not_wait_for_its_time(void **state)
{
    static char to[300];
    (void)state;
    (void)snprintf(to, sizeof to, "%s", at("to"));
    cluster.checkpoint.every = 3600;
    (void)snprintf(cluster.checkpoint.to, sizeof cluster.checkpoint.to, "%s", to);
    start();
    dp_coordinator_take_last(coordinator, 0, at_once, NULL);
    assert_int_equal(atomic_load(&begun), 1);
    atomic_store(&holds, 1);
    dp_coordinator_take_last(coordinator, 0, at_once,
                             NULL); /* returns with it under way, for stop to give it up */
    assert_int_equal(atomic_load(&begun), 2);
    dp_coordinator_stop(&coordinator);
    assert_int_equal(access(at("checkpoint-order"), F_OK), -1);
}

/* What lies in place of a worker's step log. */
static void a_fifo_is_not_waited_for(void **state)
{
    struct dp_saved_logs logs;
    char path[DP_PATH_MAX + 32];
    (void)state;
    cluster.training.workers = 1;
    (void)snprintf(cluster.training.steps, sizeof cluster.training.steps, "%s", at("steps"));
    assert_int_equal(dp_cluster_step_log(cluster.training.steps, 0, path, sizeof path, NULL), DP_OK);
    assert_int_equal(mkfifo(path, 0600), 0);
    dp_saved_logs_read(&cluster, 1, &logs);
    assert_null(logs.log[0].bytes);
    dp_saved_logs_clear(&logs);
}

/* Somebody has the lock. */
static void a_prune_that_fails_leaves_it_made(void **state)
{
    int lock;
    (void)state;
    assert_int_equal(dp_checkpoint_lock(at("to"), &lock, NULL), DP_OK);
    start();
    (void)take(DP_CHECKPOINT_BEGIN, 1, DP_OK);
    (void)await(1, DP_CHECKPOINT_COPIED);
    assert_int_equal(made.number, 1);
    dp_checkpoint_unlock(&lock);
}

static void await_file(const char *name, bool there)
{
    for (uint64_t until_ms = dp_now_ms() + SOON_MS; (access(at(name), F_OK) == 0) != there;) {
        assert_true(dp_now_ms() < until_ms);
        pause_shortly();
    }
}

/* A life before was killed with order 0xabc under way in `to`. */
static void leave(void)
{
    char to[300];
    (void)snprintf(to, sizeof to, "%s", at("to"));
    assert_int_equal(dp_checkpoint_begin(to, 0xabc, NULL), DP_OK);
    FILE *note = fopen(at("checkpoint-order"), "w");
    assert_non_null(note);
    fprintf(note, "%016x %s\n", 0xabc, to);
    assert_int_equal(fclose(note), 0);
    await_file("to/making-0000000000000abc", true);
}

static void what_a_killed_server_left_is_removed(void **state)
{
    (void)state;
    leave();
    atomic_store(&silent, 1);
    start();
    await_file("checkpoint-order", false);
    assert_int_equal(atomic_load(&silent), -1); /* the shards were asked until they answered */
    assert_int_equal(access(at("to/making-0000000000000abc"), F_OK), -1);
}

/* A new order does not wait for shards that are down. It replaces the note once the rest is removed. */
static void it_is_removed_before_the_next_order(void **state)
{
    (void)state;
    leave();
    atomic_store(&silent, 1000000);
    atomic_store(&holds, 1);
    start();
    (void)take(DP_CHECKPOINT_BEGIN, 1, DP_OK);
    (void)await(1, DP_CHECKPOINT_COPYING);
    assert_int_equal(access(at("to/making-0000000000000abc"), F_OK), -1);
    assert_int_equal(access(at("checkpoint-order"), F_OK), 0);
}

/* The disk of DIR is not mounted yet. */
static void a_directory_that_is_missing_is_not_made(void **state)
{
    char away[300];
    (void)state;
    leave();
    (void)snprintf(away, sizeof away, "%s", at("away"));
    assert_int_equal(rename(at("to"), away), 0);
    atomic_store(&silent, 0);
    start();
    for (uint64_t until_ms = dp_now_ms() + SOON_MS; atomic_load(&silent) == 0;) {
        assert_true(dp_now_ms() < until_ms);
        pause_shortly();
    }
    dp_coordinator_stop(&coordinator);
    assert_int_equal(access(at("to"), F_OK), -1);
    assert_int_equal(access(at("checkpoint-order"), F_OK), 0);
}

int main(void)
{
#define COORDINATOR_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        COORDINATOR_TEST(one_at_a_time_and_its_state_stays),
        COORDINATOR_TEST(it_is_given_up_and_says_why),
        COORDINATOR_TEST(the_note_stays_if_shards_do_not_answer),
        COORDINATOR_TEST(a_disk_that_hangs_does_not_hold_it_up),
        COORDINATOR_TEST(a_last_one_does_not_wait_for_its_time),
        COORDINATOR_TEST(no_wait_is_longer_than_an_hour),
        COORDINATOR_TEST(a_fifo_is_not_waited_for),
        COORDINATOR_TEST(a_prune_that_fails_leaves_it_made),
        COORDINATOR_TEST(what_a_killed_server_left_is_removed),
        COORDINATOR_TEST(it_is_removed_before_the_next_order),
        COORDINATOR_TEST(a_directory_that_is_missing_is_not_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
