/* A disk that fills up, here a small tmpfs: pushes are refused with the cause, pulls go on, nothing is lost, and when there is
 * room the server goes on by itself; killed while the disk is full, it recovers when there is room. */
#include "common/config/cluster.h"
#include "tests/fault/ledger.h"
#include "tests/lib/test.h"
#include "tests/system/place.h"
#include "tests/system/small_disk.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SMALL      (14u << 20) /* bytes: less than the journal may take */
#define LARGE      (96u << 20)
#define TINY       (9u << 20) /* room for two segments of the journal, and rows */
#define A_LAP      1200u      /* pushes: more than a journal holds */
#define PUSHES_MAX 3000u
#define SOON_MS    2000u

struct disk {
    struct dp_place *place;
    const char *conf, *path;
    struct dp_cluster *cluster;
    struct dp_client *client;
    struct dp_client_table *table;
    struct dp_process *server;
    struct dp_ticket ticket; /* of the push that waits */
    uint64_t pushes;         /* sent, the one that waits included */
};

static void wants(enum dp_status st, const struct dp_error *err)
{
    if (st != DP_OK)
        fail_msg("%s", err->text);
}

/* False: no right to mount. The disk is gone with this process. */
static bool begin(struct disk *disk, struct dp_place *place, uint64_t bytes)
{
    struct dp_place_cluster cluster = {.top = "journal_bytes = \"16MiB\";"};
    struct dp_error err = {0};
    *disk = (struct disk){
        .place = place, .conf = dp_place_conf(place, &cluster), .path = dp_place_path(place, "c-0")};
    assert_int_equal(mkdir(disk->path, 0777), 0);
    if (!dp_small_disk_mount(disk->path, bytes))
        return false;
    wants(dp_cluster_read(disk->conf, &disk->cluster, &err), &err);
    disk->server = dp_place_server(place, disk->conf, 0);
    wants(dp_ledger_open(disk->cluster, 0, DP_LEDGER_WAIT_MS, &disk->client, &disk->table, &err), &err);
    return true;
}

static void end(struct disk *disk)
{
    dp_client_close(&disk->client);
    dp_cluster_free(&disk->cluster);
    dp_small_disk_unmount(disk->path);
}

/* Pushes, each waited for, until one is not taken; it goes on waiting. */
static void push_until_full(struct disk *disk, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    while (st == DP_OK && disk->pushes < PUSHES_MAX) {
        wants(dp_ledger_push(disk->client, disk->table, 0, disk->pushes, &disk->ticket, err), err);
        disk->pushes++;
        st = dp_client_wait(disk->client, &disk->ticket, SOON_MS * DP_PATIENCE, NULL, err);
    }
    assert_int_equal(st, DP_TIMEOUT);
}

static void make_room(struct disk *disk)
{
    dp_small_disk_resize(disk->path, LARGE);
}

/* Pulled by another client: one's own requests keep their order, so its pulls wait behind its push. */
static void rows_are(struct disk *disk, uint64_t pushes)
{
    struct dp_error err = {0};
    struct dp_client *client = NULL;
    struct dp_client_table *table;
    uint64_t m;
    wants(dp_ledger_open(disk->cluster, 0, DP_LEDGER_WAIT_MS, &client, &table, &err), &err);
    wants(dp_ledger_check(client, table, 0, pushes, pushes, &m, &err), &err);
    dp_client_close(&client);
}

static void push_some(struct disk *disk, uint32_t count)
{
    struct dp_error err = {0};
    for (uint32_t i = 0; i < count; i++) {
        wants(dp_ledger_push(disk->client, disk->table, 0, disk->pushes++, &disk->ticket, &err), &err);
        wants(dp_client_wait(disk->client, &disk->ticket, DP_SOON_MS * DP_PATIENCE, NULL, &err), &err);
    }
}

/* Of its one shard's journal. */
static uint32_t segments_of(const struct disk *disk)
{
    char path[512];
    uint32_t count = 0;
    (void)snprintf(path, sizeof path, "%s/shard-0000/journal", disk->path);
    DIR *list = opendir(path);
    assert_non_null(list);
    for (const struct dirent *entry = readdir(list); entry; entry = readdir(list))
        count += strncmp(entry->d_name, "journal-", 8) == 0;
    (void)closedir(list);
    return count;
}

/* A push waits, and says why; with room all that was pushed and will be is there, after a restart too. */
static void ends_well(struct disk *disk, struct dp_error *err)
{
    print_message("push %" PRIu64 ": %s\n", disk->pushes, err->text);
    assert_non_null(strstr(err->text, "make room"));
    rows_are(disk, disk->pushes - 1); /* pulls go on */
    make_room(disk);
    wants(dp_client_wait(disk->client, &disk->ticket, DP_SOON_MS * DP_PATIENCE, NULL, err), err);
    push_some(disk, A_LAP);
    rows_are(disk, disk->pushes);
    dp_place_stops_cleanly(disk->server);
    disk->server = dp_place_server(disk->place, disk->conf, 0);
    rows_are(disk, disk->pushes);
    dp_place_stops_cleanly(disk->server);
    end(disk);
}

/* early: before the journal has all its segments; else after, so that rows are what has no room. */
static void check_full(struct dp_place *place, bool early)
{
    struct disk disk;
    struct dp_error err = {0};
    if (!begin(&disk, place, early ? SMALL : LARGE))
        skip();
    if (!early) {
        push_some(&disk, A_LAP);
        dp_small_disk_fill(disk.path);
    }
    push_until_full(&disk, &err);
    ends_well(&disk, &err);
}

/* The journal has two segments, both full of what is not written back, which cannot be for want of room either: neither can
 * help the other, so somebody is told what to do; when it is done all goes on by itself. */
static void a_full_journal_of_two_segments_says_what_it_needs(void **state)
{
    struct disk disk;
    struct dp_error err = {0};
    if (!begin(&disk, *state, TINY))
        skip();
    push_some(&disk, 10);
    dp_small_disk_fill(disk.path);
    push_until_full(&disk, &err);
    assert_int_equal(segments_of(&disk), 2);
    assert_non_null(strstr(err.text, "a new segment"));
    dp_place_says(disk.server, "takes no pushes: journal: a new segment");
    dp_place_says(disk.server, "rows cannot be written back");
    dp_place_says(disk.server, "make room on that disk");
    dp_place_says(disk.server, "--journal-bytes");
    ends_well(&disk, &err);
}

static void a_full_disk_refuses_pushes_until_there_is_room(void **state)
{
    check_full(*state, true);
}

static void rows_that_have_no_room_are_written_back_later(void **state)
{
    check_full(*state, false);
}

static enum dp_status open_another(const struct disk *disk, uint32_t timeout_ms, struct dp_client **client,
                                   struct dp_error *err)
{
    char endpoint[DP_HOST_MAX + 32];
    const char *const shards[] = {endpoint};
    struct dp_client_options options = {.cluster = disk->cluster->id,
                                        .shards = shards,
                                        .shard_count = 1,
                                        .retry_ms = 200,
                                        .open_timeout_ms = timeout_ms};
    dp_cluster_shard_endpoint(disk->cluster, 0, endpoint, sizeof endpoint);
    return dp_client_open(&options, client, err);
}

/* A server that has just started has no stream reserved: a new client needs a mark in the store, as a new table does. Both are
 * tried until the caller's deadline, name the cause then, and are served once there is room. */
static void new_clients_and_tables_wait_for_room(void **state)
{
    struct disk disk;
    struct dp_error err = {0};
    struct dp_client *client = NULL;
    struct dp_client_table *table = NULL;
    struct dp_table_spec spec = {.name = "late", .dim = 1};
    if (!begin(&disk, *state, LARGE))
        skip();
    spec.optimizer = dp_optimizer_defaults(DP_OPT_SGD);
    dp_place_stops_cleanly(disk.server);
    disk.server = dp_place_server(disk.place, disk.conf, 0);
    dp_small_disk_fill(disk.path);
    assert_int_equal(open_another(&disk, SOON_MS, &client, &err), DP_UNAVAILABLE);
    assert_non_null(strstr(err.text, "make room"));
    assert_int_equal(dp_client_table(disk.client, &spec, SOON_MS, &table, &err), DP_TIMEOUT);
    assert_non_null(strstr(err.text, "make room"));
    make_room(&disk);
    wants(open_another(&disk, DP_SOON_MS * DP_PATIENCE, &client, &err), &err);
    wants(dp_client_table(client, &spec, DP_SOON_MS * DP_PATIENCE, &table, &err), &err);
    dp_client_close(&client);
    dp_place_stops_cleanly(disk.server);
    end(&disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_full_disk_refuses_pushes_until_there_is_room, dp_place_setup,
                                        dp_place_teardown),
        cmocka_unit_test_setup_teardown(new_clients_and_tables_wait_for_room, dp_place_setup,
                                        dp_place_teardown),
        cmocka_unit_test_setup_teardown(rows_that_have_no_room_are_written_back_later, dp_place_setup,
                                        dp_place_teardown),
        cmocka_unit_test_setup_teardown(a_full_journal_of_two_segments_says_what_it_needs, dp_place_setup,
                                        dp_place_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
