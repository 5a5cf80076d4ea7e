/* Servers restored from a checkpoint: `downpour-server --restore`, onto the same and another number of servers, over kills, a full disk and
 * what is in the way; then the training goes on where the checkpoint was. */
#include "tests/lib/test.h"
#include "tests/system/place.h"
#include "tests/system/small_disk.h"
#include "tests/unit/server/restore/made.h"

#include "server/inspect/inspect_view.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define EPOCHS 8u

struct restored {
    struct dp_place *place;
    struct dp_place_cluster cluster; /* the one that is restored */
    const char *conf, *checkpoint;
    const char *digest; /* of the rows at the checkpoint */
    const char *end;    /* of those when the cluster that it was taken of has trained on, to the end */
};

/* Each is of one consistency mode. */
static const char *mode;

static struct dp_place_cluster cluster_of(struct dp_place *place, const char *file, uint32_t servers,
                                          uint32_t shards)
{
    return (struct dp_place_cluster){
        .file = file,
        .servers = servers,
        .shards = shards,
        .epochs = EPOCHS,
        .batch = 8,
        .timeout_ms = 60000,
        /* one worker whose order is fixed, so that the end can be compared */
        .training = dp_place_text(place, "overlap = false; pushes_max = 1; consistency = \"%s\";", mode),
        .top = "id = 77; journal_bytes = \"16MiB\";"};
}

/* Of shard 0, whose ids are those of all: the training was at rest. */
static struct dp_push_ids *ids_of(const char *store)
{
    const struct dp_inspect_view_options options = {0};
    struct dp_inspect_view view;
    struct dp_error err = {0};
    struct dp_push_ids *ids = NULL;
    void *bytes;
    size_t size;
    assert_int_equal(dp_inspect_view_gather(store, &options, &view, &err), DP_OK);
    assert_non_null(bytes = dp_push_ids_pack(view.ids, &size));
    assert_int_equal(dp_push_ids_new(&ids), DP_OK);
    assert_int_equal(dp_push_ids_unpack(ids, bytes, size, &err), DP_OK);
    free(bytes);
    dp_inspect_view_clear(&view);
    return ids;
}

/* Whether all rows of stopped servers are told by their stores alone: in the middle of a synchronous run the journal stays. */
static bool is_told(void)
{
    return strcmp(mode, "sync") != 0;
}

static void train_on(struct dp_place *place, const char *conf, uint32_t servers)
{
    struct dp_process *server[3];
    for (uint32_t i = 0; i < servers; i++)
        server[i] = dp_place_server(place, conf, i);
    struct dp_process *worker = dp_place_worker(place, conf, 0);
    dp_place_ended(worker, 0);
    dp_place_says(worker, "continues at epoch");
    for (uint32_t i = 0; i < servers; i++)
        dp_place_stops_cleanly(server[i]);
}

/* Two servers trained and were stopped in the middle; their checkpoint. */
static struct restored trained(void **state)
{
    struct restored r = {.place = *state};
    struct dp_place_cluster cluster = cluster_of(r.place, "c", 2, 1);
    const char *conf = dp_place_conf(r.place, &cluster);
    struct dp_process *server[2];
    for (uint32_t i = 0; i < 2; i++)
        server[i] = dp_place_server(r.place, conf, i);
    struct dp_process *worker = dp_place_worker(r.place, conf, 0);
    dp_place_awaits(worker, "epoch 2 of");
    dp_process_signal(worker,
                      SIGTERM); /* it finishes its step: a push on one shard only would not be at rest */
    dp_place_ended(worker, 128 + SIGTERM);
    for (uint32_t i = 0; i < 2; i++)
        dp_place_stops_cleanly(server[i]);
    struct made made = {.directory = dp_place_path(r.place, "checkpoints"),
                        .number = 1,
                        .shards = 2,
                        .has_steps = strcmp(mode, "async") != 0,
                        .register_directory = dp_place_path(r.place, "c-0")};
    for (uint32_t i = 0; i < 2; i++)
        (void)snprintf(made.shard[i], sizeof made.shard[i], "%s",
                       dp_place_path(r.place, "c-%u/shard-%04u", (unsigned)i, (unsigned)i));
    struct dp_push_ids *ids = ids_of(made.shard[0]);
    made.ids = ids;
    made_checkpoint(&made);
    dp_push_ids_free(&ids);
    r.checkpoint = dp_place_path(r.place, "checkpoints/checkpoint-000001");
    if (is_told())
        r.digest = dp_place_digest(r.place, dp_place_path(r.place, "c-0"), dp_place_path(r.place, "c-1"));
    train_on(r.place, conf, 2);
    r.end = dp_place_digest(r.place, dp_place_path(r.place, "c-0"), dp_place_path(r.place, "c-1"));
    if (is_told())
        assert_string_not_equal(r.end, r.digest);
    return r;
}

static void as(struct restored *r, const char *file, uint32_t servers, uint32_t shards)
{
    r->cluster = cluster_of(r->place, file, servers, shards);
    r->conf = dp_place_conf(r->place, &r->cluster);
}

static struct dp_process *restore(const struct restored *r, uint32_t server, const char *flag)
{
    return dp_place_start(r->place, "downpour-server", "--cluster", r->conf, "--server",
                          dp_place_text(r->place, "%u", (unsigned)server), "--restore", r->checkpoint,
                          "--history", "again", flag, NULL);
}

static void exchange(const struct restored *r)
{
    dp_place_ended(restore(r, 0, "--exchange"), 0);
}

static const char *store(const struct restored *r, uint32_t server)
{
    return dp_place_path(r->place, "%s-%u", r->cluster.file, (unsigned)server);
}

static void expect_serve(const struct restored *r)
{
    struct dp_process *server[3];
    for (uint32_t i = 0; i < r->cluster.servers; i++)
        server[i] = dp_place_server(r->place, r->conf, i);
    for (uint32_t i = 0; i < r->cluster.servers; i++)
        dp_place_stops_cleanly(server[i]);
}

/* The servers start, and their stores have the rows; then the training goes on, and ends with those of one that was never restored. */
static void expect_trains_on(const struct restored *r)
{
    uint32_t servers = r->cluster.servers;
    expect_serve(r);
    if (is_told())
        assert_string_equal(dp_place_digest(r->place, store(r, 0), servers > 1 ? store(r, 1) : NULL),
                            r->digest);
    train_on(r->place, r->conf, servers);
    assert_string_equal(dp_place_digest(r->place, store(r, 0), servers > 1 ? store(r, 1) : NULL), r->end);
}

static int in_mode(void **state, const char *name)
{
    mode = name;
    return dp_place_setup(state);
}

static int in_async(void **state)
{
    return in_mode(state, "async");
}

static int in_ssp(void **state)
{
    return in_mode(state, "ssp:2");
}

static int in_sync(void **state)
{
    return in_mode(state, "sync");
}

static void the_same_servers(void **state)
{
    struct restored r = trained(state);
    as(&r, "same", 2, 1);
    for (uint32_t i = 0; i < 2; i++)
        dp_place_ended(restore(&r, i, NULL), 0);
    exchange(&r); /* the second follows when it starts */
    expect_trains_on(&r);
}

static void one_server_of_three_shards(void **state)
{
    struct restored r = trained(state);
    as(&r, "one", 1, 3);
    dp_place_ended(restore(&r, 0, NULL), 0);
    expect_trains_on(&r);
}

static void two_servers_of_two_shards(void **state)
{
    struct restored r = trained(state);
    as(&r, "four", 2, 2);
    for (uint32_t i = 0; i < 2; i++)
        dp_place_ended(restore(&r, i, NULL), 0);
    exchange(&r);
    expect_trains_on(&r);
}

/* ---- a checkpoint of a training that goes on */

static void start_workers(const struct restored *r, const char *conf, struct dp_process *worker[2])
{
    for (uint32_t i = 0; i < 2; i++)
        worker[i] = dp_place_worker(r->place, conf, i);
}

static void as_two_workers(struct restored *r, const char *file, uint32_t servers, uint32_t shards)
{
    r->cluster = cluster_of(r->place, file, servers, shards);
    r->cluster.workers = 2;
    r->cluster.epochs = 25;
    r->conf = dp_place_conf(r->place, &r->cluster);
}

/* The checkpoint is made within an epoch; the training that it is of goes on to its end. */
static struct restored checkpointed(void **state)
{
    struct restored r = {.place = *state};
    struct dp_process *server[2], *worker[2];
    as_two_workers(&r, "c", 2, 1);
    for (uint32_t i = 0; i < 2; i++)
        server[i] = dp_place_server(r.place, r.conf, i);
    start_workers(&r, r.conf, worker);
    dp_place_awaits(worker[0], "epoch 3 of");
    r.checkpoint = dp_place_path(r.place, "checkpoints");
    (void)dp_place_try(r.place, 0, "downpour", "checkpoint", "--cluster", r.conf, "--to", r.checkpoint);
    assert_int_equal(dp_process_wait(worker[0], 0), DP_PROCESS_RUNS); /* else it shows nothing */
    for (uint32_t i = 0; i < 2; i++)
        dp_place_ended(worker[i], 0);
    for (uint32_t i = 0; i < 2; i++)
        dp_place_stops_cleanly(server[i]);
    r.end = dp_place_digest(r.place, store(&r, 0), store(&r, 1));
    return r;
}

static void goes_on_as(struct restored *r, const char *file, uint32_t servers, uint32_t shards)
{
    struct dp_process *server[2], *worker[2];
    as_two_workers(r, file, servers, shards);
    (void)dp_place_try(r->place, 0, "downpour", "restore", "--cluster", r->conf, "--from", r->checkpoint);
    for (uint32_t i = 0; i < servers; i++)
        server[i] = dp_place_server(r->place, r->conf, i);
    start_workers(r, r->conf, worker);
    for (uint32_t i = 0; i < 2; i++)
        dp_place_ended(worker[i], 0);
    dp_place_says(worker[0], "continues at epoch");
    for (uint32_t i = 0; i < servers; i++)
        dp_place_stops_cleanly(server[i]);
    assert_string_equal(dp_place_digest(r->place, store(r, 0), servers > 1 ? store(r, 1) : NULL), r->end);
}

/* Training that goes on from a checkpoint equals training that was never stopped, bit for bit, on any number of shards. */
static void taken_while_it_trains(void **state)
{
    struct restored r = checkpointed(state);
    goes_on_as(&r, "three", 1, 3);
    goes_on_as(&r, "four", 2, 2);
    goes_on_as(&r, "one", 1, 1);
}

/* A server that was not restored is refused: its store is of another history. */
static void every_server_is_restored(void **state)
{
    struct restored r = trained(state);
    as(&r, "c", 2, 1);
    dp_place_ended(restore(&r, 0, "--overwrite"), 0);
    exchange(&r);
    struct dp_process *first = dp_place_server(r.place, r.conf, 0);
    struct dp_process *second =
        dp_place_start(r.place, "downpour-server", "--cluster", r.conf, "--server", "1", NULL);
    dp_place_ended(second, 2);
    dp_place_says(second, "a restore did not reach all servers");
    dp_place_ended(restore(&r, 1, "--overwrite"), 0);
    second = dp_place_server(r.place, r.conf, 1);
    dp_place_stops_cleanly(second);
    dp_place_stops_cleanly(first);
    assert_string_equal(dp_place_digest(r.place, store(&r, 0), store(&r, 1)), r.digest);
}

/* What was built and never exchanged is taken back when the servers start: both have their stores of before. */
static void built_and_not_exchanged(void **state)
{
    struct restored r = trained(state);
    struct dp_process *server[2];
    as(&r, "c", 2, 1);
    for (uint32_t i = 0; i < 2; i++)
        dp_place_ended(restore(&r, i, "--overwrite"), 0);
    dp_place_ended(restore(&r, 1, "--exchange"), 2);
    for (uint32_t i = 0; i < 2; i++)
        server[i] = dp_place_server(r.place, r.conf, i);
    dp_place_says(server[1], "it is taken back");
    for (uint32_t i = 0; i < 2; i++) {
        dp_place_stops_cleanly(server[i]);
        assert_int_not_equal(access(dp_place_text(r.place, "%s.restoring", store(&r, i)), F_OK), 0);
    }
    assert_string_equal(dp_place_digest(r.place, store(&r, 0), store(&r, 1)), r.end);
    dp_place_ended(restore(&r, 0, "--exchange"), 2);
}

/* A damaged checkpoint, which only one server can notice, replaces no store. */
static void one_flipped_bit_in_the_register(void **state)
{
    struct restored r = trained(state);
    as(&r, "c", 2, 1);
    const char *path = dp_place_text(r.place, "%s/register", r.checkpoint);
    FILE *file = fopen(path, "r+be");
    assert_non_null(file);
    int byte = fgetc(file);
    assert_true(byte != EOF && fseek(file, 0, SEEK_SET) == 0 && fputc(byte ^ 1, file) != EOF);
    assert_int_equal(fclose(file), 0);
    struct dp_process *command = dp_place_try(r.place, 2, "downpour", "restore", "--cluster", r.conf,
                                              "--from", r.checkpoint, "--overwrite");
    dp_place_says(command, "checksum");
    for (uint32_t i = 0; i < 2; i++)
        assert_int_not_equal(access(dp_place_text(r.place, "%s.restoring", store(&r, i)), F_OK), 0);
    expect_serve(&r);
    assert_string_equal(dp_place_digest(r.place, store(&r, 0), store(&r, 1)), r.end);
}

static void what_is_in_the_way_is_said(void **state)
{
    struct restored r = trained(state);
    as(&r, "c", 2, 1);
    struct dp_process *server = dp_place_server(r.place, r.conf, 0);
    struct dp_process *refused = restore(&r, 0, "--overwrite");
    dp_place_ended(refused, 2);
    dp_place_says(refused, "is in use by process");
    dp_place_stops_cleanly(server);
    refused = restore(&r, 0, NULL);
    dp_place_ended(refused, 2);
    dp_place_says(refused, "--overwrite");
    (void)dp_place_try(r.place, 2, "downpour-server", "--cluster", r.conf, "--server", "0", "--overwrite");
    (void)dp_place_try(r.place, 2, "downpour-server", "--cluster", r.conf, "--server", "0", "--restore",
                       r.checkpoint, "--read-only");
    r.checkpoint = dp_place_path(r.place, "c-0");
    refused = restore(&r, 0, "--overwrite");
    dp_place_ended(refused, 2);
    dp_place_says(refused, "checkpoint");
    assert_string_equal(dp_place_digest(r.place, store(&r, 0), store(&r, 1)), r.end);
}

/* After each kill the store is whole: the old one, or the restored one. */
static void killed_at_any_moment(void **state)
{
    struct restored r = trained(state);
    uint64_t random = (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)random);
    as(&r, "one", 1, 3);
    dp_place_ended(restore(&r, 0, NULL), 0);
    for (uint32_t round = 0; round < (getenv("DP_LONG") ? 100 : 6); round++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        struct timespec nap = {.tv_nsec = (long)((random >> 33) % 120) * 1000000};
        struct dp_process *process = restore(&r, 0, "--overwrite");
        (void)nanosleep(&nap, NULL);
        dp_process_signal(process, SIGKILL);
        (void)dp_process_wait(process, DP_SOON_MS);
        dp_place_drop(r.place, &process);
        expect_serve(&r);
        assert_string_equal(dp_place_digest(r.place, store(&r, 0), NULL), r.digest);
    }
    dp_place_ended(restore(&r, 0, "--overwrite"), 0);
    assert_int_not_equal(access(dp_place_text(r.place, "%s.restoring", store(&r, 0)), F_OK), 0);
    expect_trains_on(&r);
}

static void a_small_disk(void **state)
{
    struct restored r = trained(state);
    const char *small = dp_place_path(r.place, "small");
    assert_int_equal(mkdir(small, 0777), 0);
    if (!dp_small_disk_mount(small, 6 << 20))
        skip();
    as(&r, "one", 1, 3);
    assert_int_equal(symlink(dp_place_path(r.place, "small/store"), store(&r, 0)), 0);
    assert_int_equal(mkdir(dp_place_path(r.place, "small/store"), 0777), 0);
    struct dp_process *refused = restore(&r, 0, NULL);
    dp_place_ended(refused, 2);
    dp_place_says(refused, "make room on that disk");
    assert_int_not_equal(access(dp_place_path(r.place, "small/store.restoring"), F_OK), 0);
    dp_small_disk_resize(small, 256 << 20);
    dp_place_ended(restore(&r, 0, NULL), 0);
    struct dp_process *server = dp_place_server(r.place, r.conf, 0);
    dp_place_stops_cleanly(server);
    assert_string_equal(dp_place_digest(r.place, store(&r, 0), NULL), r.digest);
    dp_small_disk_unmount(small);
}

int main(void)
{
#define RESTORE_TEST(test, mode)                                                                             \
    (struct CMUnitTest)                                                                                      \
    {                                                                                                        \
        .name = #test ", " #mode, .test_func = test, .setup_func = in_##mode,                                \
        .teardown_func = dp_place_teardown                                                                   \
    }
    const struct CMUnitTest tests[] = {
        RESTORE_TEST(the_same_servers, async),          RESTORE_TEST(the_same_servers, ssp),
        RESTORE_TEST(one_server_of_three_shards, ssp),  RESTORE_TEST(one_server_of_three_shards, sync),
        RESTORE_TEST(two_servers_of_two_shards, async), RESTORE_TEST(taken_while_it_trains, sync),
        RESTORE_TEST(built_and_not_exchanged, async),   RESTORE_TEST(one_flipped_bit_in_the_register, async),
        RESTORE_TEST(every_server_is_restored, async),  RESTORE_TEST(what_is_in_the_way_is_said, async),
        RESTORE_TEST(killed_at_any_moment, async),      RESTORE_TEST(a_small_disk, async),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
