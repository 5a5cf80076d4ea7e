/* Orders of commands that were killed. Goal: the next checkpoint ends and removes those that are surely dead, leaves all others alone, and
 * none of it holds it up or fails it. Method: real directories, shards that are played: dp_client_checkpoint is this file's. */
#include "deploy/checkpoint/dead_orders.h"
#include "tests/lib/test.h"

#include "common/base/deadline.h"
#include "common/client/checkpoint.h"
#include "server/checkpoint/making.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHARDS  2u
#define CLUSTER 77u
#define MACHINE 5u

/* ---- the shards */

static uint64_t knows;    /* the order that the last one knows */
static uint32_t hangs_at; /* the ask that is not answered; 0: all are */
static uint32_t asked, abandoned, stop_at, timeouts_ms[64];

uint32_t __wrap_dp_client_shards(const struct dp_client *client);
uint32_t __wrap_dp_client_shards(const struct dp_client *client)
{
    (void)client;
    return SHARDS;
}

enum dp_status __wrap_dp_client_checkpoint(struct dp_client *client, const struct dp_checkpoint_ask *asks,
                                           struct dp_checkpoint_answer *answers, uint32_t timeout_ms,
                                           struct dp_error *err);
enum dp_status __wrap_dp_client_checkpoint(struct dp_client *client, const struct dp_checkpoint_ask *asks,
                                           struct dp_checkpoint_answer *answers, uint32_t timeout_ms,
                                           struct dp_error *err)
{
    (void)client;
    memset(answers, 0, SHARDS * sizeof *answers);
    assert_true(asked < 64 && timeout_ms <= DP_DEAD_ORDERS_MS);
    timeouts_ms[asked++] = timeout_ms;
    if (asked == hangs_at)
        return dp_fail(err, DP_TIMEOUT, "shard 0 did not answer");
    for (uint32_t i = 0; i < SHARDS; i++)
        answers[i].answered = true;
    if (asks[1].order == knows) {
        answers[1].state = (struct dp_checkpoint_state){.stage = DP_CHECKPOINT_WAITING, .order = knows};
        abandoned += asks[1].action == DP_CHECKPOINT_ABANDON;
    }
    return DP_OK;
}

static bool stopped(void *context)
{
    (void)context;
    return stop_at > 0 && asked >= stop_at;
}

/* ---- the directory */

static char directory[] = "/tmp/dead-orders-XXXXXX";

static const char *at(const char *name)
{
    static char path[300];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static const char *of(uint64_t order, const char *below)
{
    char name[200];
    (void)snprintf(name, sizeof name, "making-%016" PRIx64 "%s", order, below);
    return at(name);
}

static int setup(void **state)
{
    (void)state;
    (void)strcpy(directory + strlen(directory) - 6, "XXXXXX");
    knows = 0;
    hangs_at = asked = abandoned = stop_at = 0;
    return mkdtemp(directory) ? 0 : -1;
}

static int teardown(void **state)
{
    struct dp_error err;
    (void)state;
    return dp_checkpoint_remove_directory(directory, &err) == DP_OK ? 0 : -1;
}

static uint64_t left(uint64_t machine, bool empty)
{
    struct dp_error err = {0};
    uint64_t order = dp_dead_orders_draw(CLUSTER, machine);
    assert_int_equal(dp_checkpoint_begin(directory, order, &err), DP_OK);
    if (!empty)
        assert_int_equal(mkdir(of(order, "/tail-0000"), 0777), 0);
    return order;
}

static bool is_there(uint64_t order)
{
    return access(of(order, ""), F_OK) == 0;
}

static struct dp_dead_orders ours(void)
{
    return (struct dp_dead_orders){
        .cluster = CLUSTER, .machine = MACHINE, .directory = directory, .stopped = stopped};
}

static void end_and_sweep(void)
{
    struct dp_dead_orders orders = ours();
    struct dp_error err = {0};
    assert_int_equal(dp_dead_orders_end(&orders, NULL, &err), DP_OK);
    dp_dead_orders_sweep(&orders);
}

/* ---- */

static void one_that_a_shard_knows_is_ended_and_removed(void **state)
{
    (void)state;
    knows = left(MACHINE, false);
    end_and_sweep();
    assert_int_equal(abandoned, 1);
    assert_false(is_there(knows));
}

/* Where flock is per machine, its command may be alive. */
static void one_of_another_machine_is_left_alone(void **state)
{
    (void)state;
    knows = left(MACHINE + 1, false);
    end_and_sweep();
    assert_int_equal(abandoned, 0);
    assert_true(is_there(knows));
    assert_int_equal(dp_dead_orders_machine(), dp_dead_orders_machine());
}

/* Another cluster of the same id: its shards may still copy. */
static void one_that_no_shard_knows_goes_only_if_it_is_empty(void **state)
{
    (void)state;
    uint64_t copied = left(MACHINE, false), begun = left(MACHINE, true);
    end_and_sweep();
    assert_int_equal(abandoned, 0);
    assert_true(is_there(copied));
    assert_false(is_there(begun));
}

/* No file of the pool can be removed then. */
static void a_manifest_that_cannot_be_read_is_in_nobodys_way(void **state)
{
    (void)state;
    assert_int_equal(mkdir(at("checkpoint-000001"), 0777), 0);
    FILE *manifest = fopen(at("checkpoint-000001/manifest.json"), "w");
    assert_non_null(manifest);
    (void)fputs("{\"format\": 9}", manifest);
    assert_int_equal(fclose(manifest), 0);
    knows = left(MACHINE, false);
    end_and_sweep();
    assert_false(is_there(knows));
}

/* Three directories deep nothing is removed. */
static void what_cannot_be_removed_fails_nothing(void **state)
{
    static const char *const deep[] = {"/a", "/a/b", "/a/b/c"};
    (void)state;
    knows = left(MACHINE, false);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(mkdir(of(knows, deep[i]), 0777), 0);
    end_and_sweep();
    assert_true(is_there(knows));
    assert_int_equal(rmdir(of(knows, deep[2])) | rmdir(of(knows, deep[1])), 0); /* for the teardown */
}

static void a_shard_that_hangs_is_asked_once(void **state)
{
    struct dp_dead_orders orders = ours();
    struct dp_error err = {0};
    (void)state;
    for (uint32_t i = 0; i < DP_DEAD_ORDERS_MAX; i++)
        (void)left(MACHINE, false);
    hangs_at = 3;
    assert_int_equal(dp_dead_orders_end(&orders, NULL, &err), DP_OK); /* the next order says which one */
    assert_int_equal(orders.count, DP_DEAD_ORDERS_MAX);
    assert_int_equal(asked, 3);
    assert_true(timeouts_ms[2] <= timeouts_ms[0]);
}

static void who_is_interrupted_asks_no_more(void **state)
{
    struct dp_dead_orders orders = ours();
    struct dp_error err = {0};
    (void)state;
    for (uint32_t i = 0; i < 4; i++)
        (void)left(MACHINE, false);
    stop_at = 2;
    assert_int_equal(dp_dead_orders_end(&orders, NULL, &err), DP_STOPPING);
    assert_int_equal(asked, 2);
}

int main(void)
{
#define DEAD_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        DEAD_TEST(one_that_a_shard_knows_is_ended_and_removed),
        DEAD_TEST(one_of_another_machine_is_left_alone),
        DEAD_TEST(one_that_no_shard_knows_goes_only_if_it_is_empty),
        DEAD_TEST(a_manifest_that_cannot_be_read_is_in_nobodys_way),
        DEAD_TEST(what_cannot_be_removed_fails_nothing),
        DEAD_TEST(a_shard_that_hangs_is_asked_once),
        DEAD_TEST(who_is_interrupted_asks_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
