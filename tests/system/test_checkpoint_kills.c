/* kill -9 while checkpoints are made: of a server, of a worker, of the command, at random moments; and a full disk.
 * Goal: after each kill the checkpoints that were there are whole; the next one is made, at once unless the first server completes that of
 * a killed command, and nothing is left of one that was cut off: no making-* in the directory, no link in a store. The run ends with the rows of one that nobody disturbed, and so does a run that is
 * restored from its last checkpoint onto other shards.
 * Method: two workers in step, as only sync repeats the bits whoever is killed; all is drawn from a seed, which is printed (DP_TEST_SEED gives it again). 5 kills; DP_LONG=1:
 * 100. The journal is small: one that stayed held would fill up, and the run would stand still. */
#include "tests/lib/test.h"
#include "tests/system/place.h"
#include "tests/system/small_disk.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define SERVERS    2u
#define WORKERS    2u
#define MOMENT_MS  1500u
#define DISK_BYTES (64u << 20)

enum victim { VICTIM_SERVER_0, VICTIM_SERVER_1, VICTIM_WORKER_0, VICTIM_WORKER_1, VICTIM_COMMAND, VICTIMS };

struct killed {
    struct dp_place *place;
    struct dp_place_cluster cluster;
    const char *conf, *to;
    struct dp_process *server[SERVERS], *worker[WORKERS];
    uint64_t random;
    uint32_t kills[VICTIMS], made, given_up, runs;
};

static uint64_t draw(struct killed *k, uint64_t below)
{
    k->random = k->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (k->random >> 33) % below;
}

static void as(struct killed *k, const char *file, uint32_t servers, uint32_t shards)
{
    k->cluster = (struct dp_place_cluster){.file = file,
                                           .servers = servers,
                                           .shards = shards,
                                           .epochs = getenv("DP_LONG") ? 40 : 12,
                                           .batch = 8,
                                           .timeout_ms = 60000,
                                           .workers = WORKERS,
                                           .training = "consistency = \"sync\";",
                                           .top = "id = 77; journal_bytes = \"32MiB\";"};
    k->conf = dp_place_conf(k->place, &k->cluster);
}

/* One that was killed after its last push has only the report to make. */
static struct dp_process *worker_again(const struct killed *k, uint32_t worker)
{
    return dp_place_start(k->place, "downpour-worker", "--cluster", k->conf, "--worker",
                          dp_place_text(k->place, "%u", (unsigned)worker), "--resume", NULL);
}

static void start(struct killed *k, bool again)
{
    for (uint32_t i = 0; i < k->cluster.servers; i++)
        k->server[i] = dp_place_server(k->place, k->conf, i);
    for (uint32_t i = 0; i < WORKERS; i++)
        k->worker[i] = again ? worker_again(k, i) : dp_place_worker(k->place, k->conf, i);
}

/* Until the run's end; the digest of its rows. */
static const char *end(struct killed *k)
{
    const char *file = k->cluster.file;
    for (uint32_t i = 0; i < WORKERS; i++)
        dp_place_ended(k->worker[i], 0);
    for (uint32_t i = 0; i < k->cluster.servers; i++)
        dp_place_stops_cleanly(k->server[i]);
    return dp_place_digest(k->place, dp_place_path(k->place, "%s-0", file),
                           k->cluster.servers > 1 ? dp_place_path(k->place, "%s-1", file) : NULL);
}

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

static struct dp_process *checkpoint(const struct killed *k, const char *rate)
{
    return dp_place_start(k->place, "downpour", "checkpoint", "--cluster", k->conf, "--to", k->to, "--keep",
                          "2", rate ? "--rate" : NULL, rate, NULL);
}

static struct dp_process *full_checkpoint(const struct killed *k, const char *flag, const char *value)
{
    return dp_place_start(k->place, "downpour", "checkpoint", "--cluster", k->conf, "--to", k->to, "--full",
                          flag, value, NULL);
}

/* ---- one kill */

static void nap(uint64_t ms)
{
    const struct timespec time = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)nanosleep(&time, NULL);
}

static bool runs(struct dp_process *process)
{
    return dp_process_wait(process, 0) == DP_PROCESS_RUNS;
}

/* False: it had ended. */
static bool strike(struct killed *k, enum victim victim, struct dp_process *command)
{
    bool is_worker = victim == VICTIM_WORKER_0 || victim == VICTIM_WORKER_1;
    uint32_t index = (uint32_t)victim - (is_worker ? (uint32_t)VICTIM_WORKER_0 : (uint32_t)VICTIM_SERVER_0);
    struct dp_process **which = victim == VICTIM_COMMAND ? &command
                                : is_worker              ? &k->worker[index]
                                                         : &k->server[index];
    if (!runs(*which) || !runs(k->worker[0]))
        return false;
    dp_process_signal(*which, SIGKILL);
    if (dp_process_wait(*which, DP_SOON_MS) != -SIGKILL) /* it ended in that moment */
        return false;
    dp_place_ended(*which, -SIGKILL);
    if (is_worker)
        *which = worker_again(k, index);
    else if (victim != VICTIM_COMMAND)
        *which = dp_place_server(k->place, k->conf, index);
    return true;
}

/* It says why it could not be made, or was. */
static void end_command(struct killed *k, struct dp_process *command)
{
    int code = dp_process_wait(command, 2 * DP_SOON_MS);
    dp_place_ended(command, code == 0 ? 0 : 2);
    k->made += code == 0;
    k->given_up += code != 0;
    if (code != 0)
        dp_place_says(command, "downpour: checkpoint: ");
}

static void expect_whole(struct killed *k)
{
    if (count_names(k->to, "checkpoint-") > 0)
        dp_place_says(dp_place_try(k->place, 0, "downpour", "inspect", k->to, "--verify"),
                      "as their manifests say");
}

static void expect_nothing_left(struct killed *k)
{
    assert_int_equal(count_names(k->to, "making-"), 0);
    for (uint32_t i = 0; i < SERVERS; i++) {
        const char *store =
            dp_place_path(k->place, "%s-%u/shard-%04u", k->cluster.file, (unsigned)i, (unsigned)i);
        uint64_t until_ms = dp_process_now_ms() + DP_SOON_MS;
        while (count_names(store, "cut-") > 0 && dp_process_now_ms() < until_ms)
            dp_process_pause(); /* the store removes it */
        assert_int_equal(count_names(store, "cut-"), 0);
    }
}

/* The first server may be completing that of a command that was killed. */
static void make_next(struct killed *k)
{
    uint64_t until_ms = dp_process_now_ms() + 2 * DP_SOON_MS;
    for (;;) {
        struct dp_process *next = checkpoint(k, NULL);
        int code = dp_process_wait(next, 2 * DP_SOON_MS);
        bool busy = code == 2 && strstr(dp_process_err(next), "another checkpoint is being made");
        dp_place_ended(next, busy ? 2 : 0);
        if (!busy) {
            dp_place_says(next, "checkpoint ");
            return;
        }
        assert_true(dp_process_now_ms() < until_ms);
        nap(100);
    }
}

static void one_kill(struct killed *k)
{
    static const char *const rates[] = {NULL, "200KB", "1MB"}; /* a whole one is 4 MB, late in a run */
    enum victim victim = (enum victim)draw(k, VICTIMS);
    struct dp_process *command = checkpoint(k, rates[draw(k, 3)]);
    nap(draw(k, MOMENT_MS));
    bool struck = strike(k, victim, command);
    k->kills[victim] += struck;
    if (!struck || victim != VICTIM_COMMAND)
        end_command(k, command);
    expect_whole(k);
    make_next(k);
    expect_nothing_left(k);
    expect_whole(k);
}

/* ---- */

static uint32_t sum(const struct killed *k)
{
    uint32_t kills = 0;
    for (uint32_t i = 0; i < VICTIMS; i++)
        kills += k->kills[i];
    return kills;
}

static void at_any_moment(void **state)
{
    struct killed k = {.place = *state};
    const char *seed = getenv("DP_TEST_SEED");
    k.random = seed ? strtoull(seed, NULL, 0) : dp_process_now_ms() % 1000000;
    print_message("DP_TEST_SEED=%llu\n", (unsigned long long)k.random);
    as(&k, "undisturbed", SERVERS, 1);
    start(&k, false);
    const char *undisturbed = end(&k);
    for (uint32_t wanted = getenv("DP_LONG") ? 100 : 5; sum(&k) < wanted; k.runs++) {
        as(&k, dp_place_text(k.place, "run%u", (unsigned)k.runs), SERVERS, 1);
        k.to = dp_place_path(k.place, "checkpoints%u", (unsigned)k.runs);
        start(&k, false);
        while (sum(&k) < wanted && runs(k.worker[0]))
            one_kill(&k);
        assert_string_equal(end(&k), undisturbed);
        expect_whole(&k);
        as(&k, dp_place_text(k.place, "restored%u", (unsigned)k.runs), 1, 3);
        (void)dp_place_try(k.place, 0, "downpour", "restore", "--from", k.to, "--cluster", k.conf);
        start(&k, true);
        assert_string_equal(end(&k), undisturbed);
    }
    print_message(
        "%u runs; killed: servers %u, workers %u, the command %u; checkpoints made all the same %u, "
        "given up %u\n",
        k.runs, k.kills[VICTIM_SERVER_0] + k.kills[VICTIM_SERVER_1],
        k.kills[VICTIM_WORKER_0] + k.kills[VICTIM_WORKER_1], k.kills[VICTIM_COMMAND], k.made, k.given_up);
}

/* On a full disk --keep removes what it would remove behind the new checkpoint, and it is made then: not where no more are whole. */
static void make_room(struct killed *k)
{
    dp_small_disk_resize(k->to, 6 * DISK_BYTES);
    for (uint32_t i = 0; i < 2; i++)
        dp_place_ended(full_checkpoint(k, NULL, NULL), 0);
    dp_small_disk_fill(k->to);
    struct dp_process *refused = full_checkpoint(k, "--keep", "4");
    dp_place_ended(refused, 2);
    dp_place_says(refused, dp_place_text(k->place, "--to %s --prune N", k->to));
    assert_null(strstr(dp_process_err(refused), "were removed"));
    assert_int_equal(count_names(k->to, "checkpoint-"), 4);
    struct dp_process *made = full_checkpoint(k, "--keep", "1");
    dp_place_ended(made, 0);
    dp_place_says(made, "3 earlier ones were removed (");
    assert_int_equal(count_names(k->to, "checkpoint-"), 1);
    expect_whole(k);
    dp_small_disk_resize(k->to, 6 * DISK_BYTES);
    dp_place_ended(full_checkpoint(k, NULL, NULL), 0);
}

/* The checkpoints' disk is full while one is made: it is reported, nothing of it stays, and training goes on. */
static void a_full_disk(void **state)
{
    struct killed k = {.place = *state};
    k.to = dp_place_path(k.place, "small");
    assert_int_equal(mkdir(k.to, 0777), 0);
    if (!dp_small_disk_mount(k.to, DISK_BYTES))
        skip();
    as(&k, "full", SERVERS, 1);
    start(&k, false);
    dp_place_awaits(k.worker[0], "epoch 2 of");
    dp_place_ended(checkpoint(&k, NULL), 0);
    dp_small_disk_fill(k.to);
    struct dp_process *refused = full_checkpoint(&k, NULL, NULL);
    dp_place_ended(refused, 2);
    dp_place_says(refused, "make room on that disk");
    expect_nothing_left(&k);
    assert_int_equal(count_names(k.to, "checkpoint-"), 1);
    expect_whole(&k);
    dp_small_disk_resize(k.to, 2 * DISK_BYTES);
    dp_place_ended(checkpoint(&k, NULL), 0);
    assert_int_equal(count_names(k.to, "checkpoint-"), 2);
    expect_whole(&k);
    make_room(&k);
    (void)end(&k);
    dp_place_says(dp_place_try(k.place, 0, "downpour", "checkpoint", "--to", k.to, "--prune", "1"),
                  "1 checkpoint removed, with ");
    assert_int_equal(count_names(k.to, "checkpoint-"), 1);
    expect_whole(&k);
    dp_small_disk_unmount(k.to);
}

int main(void)
{
#define KILLED_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        KILLED_TEST(at_any_moment),
        KILLED_TEST(a_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
