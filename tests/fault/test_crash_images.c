/* Power cuts under the real store: a server runs under the recorder, dies in the middle of calls, recovers, is closed and started,
 * while clients push; then images of its directory at many cuts are taken from the log, and each must recover
 * (check_images.c). And each sync that the disk is made to break must be missed.
 * Sizes     60 cuts; DP_LONG=1: 1,000. DP_FAULT_CUTS, DP_FAULT_SEED: others. DP_FAULT_KEEP=1: the recording stays. */
#include "common/config/cluster.h"
#include "tests/fault/ledger.h"
#include "tests/fault/record.h"
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define PUSHES      1000u  /* of each client at least: some laps through the journal's 16 MiB */
#define PUSHES_MOST 30000u /* by then all lives are over, or a number of calls below is too high */
#define PUSHES_LIFE 140u   /* of a life that is closed */
#define WINDOW      8u     /* of a client's pushes, under way */
#define LOOK_MS     50u
/* Images are of one cluster, whatever the file is called. The cache holds some of the rows only. */
#define SETTINGS "id = 77; journal_bytes = \"16MiB\"; cache_bytes = \"3MiB\";"

/* The lives of the server: each dies before that many calls, or, at 0, is closed after PUSHES_LIFE pushes of each client. */
static const uint32_t die_at[] = {150, 4000, 700, 0, 60, 5000, 0};
#define LIVES (sizeof die_at / sizeof die_at[0])

struct client {
    struct dp_client *client;
    struct dp_client_table *table;
    struct dp_ticket ticket[WINDOW];
    uint64_t sent, acked;
};

struct recording {
    struct dp_place *place;
    const char *conf, *log, *root;
    char environment[4][1100];
    struct dp_cluster *cluster;
    struct dp_process *server;
    int log_fd;
    uint32_t life;
    struct client client[DP_LEDGER_CLIENTS];
};

static void start_life(struct recording *r)
{
    const char *const argv[] = {
        DP_BIN "/downpour-server", "--cluster", r->conf, "--server", "0", "--new", NULL};
    (void)snprintf(r->environment[0], sizeof r->environment[0], "LD_PRELOAD=%s", DP_RECORDER);
    (void)snprintf(r->environment[1], sizeof r->environment[1], DP_RECORD_ROOT "=%s", r->root);
    (void)snprintf(r->environment[2], sizeof r->environment[2], DP_RECORD_LOG "=%s", r->log);
    (void)snprintf(r->environment[3], sizeof r->environment[3], DP_RECORD_DIE_AT "=%" PRIu32,
                   r->life < LIVES ? die_at[r->life] : 0);
    const char *const environment[] = {r->environment[0], r->environment[1], r->environment[2],
                                       r->environment[3],

                                       NULL};
    const struct dp_process_options options = {.argv = argv,
                                               .prefix = dp_place_path(r->place, "life-%" PRIu32, r->life),
                                               .environment = environment};
    r->server = dp_process_start(&options);
    r->life++;
}

static void expect_killed(struct recording *r, int code)
{
    if (code != -SIGKILL)
        fail_msg("life %" PRIu32 " of the server ended with %d: %s", r->life, code,
                 dp_process_err(r->server));
}

/* A life that is over begins again; one may be too short to become ready. */
static void keep_alive(struct recording *r)
{
    for (int code; (code = dp_process_wait(r->server, 0)) != DP_PROCESS_RUNS;) {
        expect_killed(r, code);
        dp_process_free(&r->server);
        start_life(r);
    }
}

static void await_ready(struct recording *r)
{
    uint64_t deadline = dp_process_now_ms() + (uint64_t)DP_SOON_MS * DP_PATIENCE;
    while (!strstr(dp_process_err(r->server), "ready:") && dp_process_now_ms() < deadline) {
        keep_alive(r);
        dp_process_pause();
    }
}

static void note(struct recording *r, enum dp_record_kind kind, uint32_t c, uint64_t n)
{
    struct dp_record record = {.magic = DP_RECORD_MAGIC, .kind = kind, .fd = (int32_t)c, .at = n};
    assert_int_equal(write(r->log_fd, &record, sizeof record), sizeof record);
}

static void await_oldest(struct recording *r, uint32_t c)
{
    struct client *client = &r->client[c];
    struct dp_error err = {0};
    uint64_t deadline = dp_process_now_ms() + 2ull * DP_SOON_MS * DP_PATIENCE;
    enum dp_status st;
    while ((st = dp_client_wait(client->client, &client->ticket[client->acked % WINDOW], LOOK_MS, NULL,
                                &err)) == DP_TIMEOUT &&
           dp_process_now_ms() < deadline)
        keep_alive(r);
    if (st != DP_OK)
        fail_msg("push %" PRIu64 " of client %" PRIu32 ": %s; the server: %s", client->acked, c, err.text,
                 dp_process_err(r->server));
    note(r, DP_RECORD_ACKED, c, client->acked++);
}

static void push_one(struct recording *r, uint32_t c)
{
    struct client *client = &r->client[c];
    struct dp_error err = {0};
    if (client->sent - client->acked == WINDOW)
        await_oldest(r, c);
    note(r, DP_RECORD_SENT, c, client->sent);
    if (dp_ledger_push(client->client, client->table, c, client->sent, &client->ticket[client->sent % WINDOW],
                       &err) != DP_OK)
        fail_msg("%s", err.text);
    client->sent++;
}

static void await_all(struct recording *r)
{
    for (uint32_t c = 0; c < DP_LEDGER_CLIENTS; c++)
        while (r->client[c].acked < r->client[c].sent)
            await_oldest(r, c);
}

/* SIGTERM, until one is not killed on its way out. */
static void close_life(struct recording *r)
{
    int code;
    await_all(r);
    for (;;) {
        dp_process_signal(r->server, SIGTERM);
        code = dp_process_wait(r->server, 2 * DP_SOON_MS);
        if (code == 0)
            break;
        expect_killed(r, code);
        dp_process_free(&r->server);
        start_life(r);
        await_ready(r);
    }
    dp_process_free(&r->server);
}

/* Clients are opened when a life is there that lasts; those before it end in its making. */
static void record_all(struct recording *r)
{
    struct dp_error err = {0};
    start_life(r);
    await_ready(r);
    for (uint32_t c = 0; c < DP_LEDGER_CLIENTS; c++)
        if (dp_ledger_open(r->cluster, c, DP_LEDGER_WAIT_MS, &r->client[c].client, &r->client[c].table,
                           &err) != DP_OK)
            fail_msg("%s; the server: %s", err.text, dp_process_err(r->server));
    uint32_t in_life = 0;
    for (uint32_t i = 0; i < PUSHES || (r->life < LIVES && i < PUSHES_MOST); i++) {
        uint32_t life = r->life;
        for (uint32_t c = 0; c < DP_LEDGER_CLIENTS; c++)
            push_one(r, c);
        if (life < LIVES && die_at[life - 1] == 0 && in_life >= PUSHES_LIFE) {
            close_life(r);
            start_life(r);
        }
        keep_alive(r);
        in_life = r->life == life ? in_life + 1 : 0;
    }
    close_life(r);
    if (r->life < LIVES)
        fail_msg("the server had %" PRIu32 " lives of %zu", r->life, LIVES);
}

static void make_recording(struct recording *r)
{
    struct dp_error err = {0};
    struct dp_place_cluster cluster = {.file = "live", .top = SETTINGS};
    r->conf = dp_place_conf(r->place, &cluster);
    r->log = dp_place_path(r->place, "log");
    r->root = dp_place_path(r->place, "live-0");
    assert_int_equal(mkdir(r->root, 0777), 0);
    r->log_fd = open(r->log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    assert_true(r->log_fd >= 0);
    if (dp_cluster_read(r->conf, &r->cluster, &err) != DP_OK)
        fail_msg("%s", err.text);
    record_all(r);
    print_message("recorded: %" PRIu32 " lives, %" PRIu64 " pushes, %s\n", r->life,
                  r->client[0].sent + r->client[1].sent, r->log);
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

static struct dp_process *start_check(struct recording *r, const char *name, uint64_t cuts, uint32_t part,
                                      uint32_t parts, const char *plant, const char *survival)
{
    struct dp_place *place = r->place;
    struct dp_place_cluster cluster = {.file = name, .top = SETTINGS};
    const char *conf = dp_place_conf(place, &cluster);
    const char *store = dp_place_path(place, "%s-0", name);
    assert_int_equal(mkdir(store, 0777), 0);
    return dp_place_start(place, DP_CHECK_IMAGES, "--log", r->log, "--conf", conf, "--server",
                          DP_BIN "/downpour-server", "--prefix", dp_place_path(place, "%s-server", name),
                          "--seed", dp_place_text(place, "%" PRIu64, number_from("DP_FAULT_SEED", 1)),
                          "--cuts", dp_place_text(place, "%" PRIu64, cuts), "--part",
                          dp_place_text(place, "%" PRIu32, part), "--parts",
                          dp_place_text(place, "%" PRIu32, parts), "--plant", plant,
                          survival ? "--survival" : NULL, survival, NULL);
}

static void every_image_recovers(void **state)
{
    struct recording *r = *state;
    uint64_t cuts = number_from("DP_FAULT_CUTS", getenv("DP_LONG") ? 1000 : 60);
    struct dp_process *part[2];
    for (uint32_t i = 0; i < 2; i++)
        part[i] = start_check(r, i ? "second" : "first", cuts, i, 2, "sound", NULL);
    for (int i = 0; i < 2; i++) {
        int code = dp_process_wait(part[i], 2400000);
        if (code != 0)
            fail_msg("check_images ended with %d: %s%s", code, dp_process_out(part[i]),
                     dp_process_err(part[i]));
        print_message("%s", dp_process_out(part[i]));
    }
}

/* Disks that lie: what they break must be noticed, or the test above is worth nothing. */
static void a_disk_that_lies_is_noticed(void **state)
{
    static const struct {
        const char *plant, *survival, *text;
    } plants[] = {
        {"no-journal-sync", "nothing", "cut behind"},  {"late-journal-sync", "nothing", "cut behind"},
        {"no-journal-names", "nothing", "cut behind"}, {"no-sst-names", "nothing", "cut behind"},
        {"no-sst-sync", "nothing", "cut behind"},
    };
    struct recording *r = *state;
    for (size_t i = 0; i < sizeof plants / sizeof plants[0]; i++) {
        struct dp_process *check =
            start_check(r, plants[i].plant, 30, 0, 1, plants[i].plant, plants[i].survival);
        int code = dp_process_wait(check, 300000);
        if (code != 1 || !strstr(dp_process_out(check), plants[i].text))
            fail_msg("plant %s was not found: %d, %s", plants[i].plant, code, dp_process_out(check));
        print_message("%s: %s", plants[i].plant, dp_process_out(check));
    }
}

/* ---- */

static int setup(void **state)
{
    struct statvfs shm;
    struct recording *r = calloc(1, sizeof *r);
    if (!r)
        return -1;
    /* Images are many and short-lived: in memory where there is room. */
    if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0 && statvfs("/dev/shm", &shm) == 0 &&
        (uint64_t)shm.f_bavail * shm.f_frsize >= UINT64_C(2) << 30)
        (void)setenv("TMPDIR", "/dev/shm", 1);
    *state = r;
    if (dp_place_setup((void **)&r->place) != 0)
        return -1;
    make_recording(r);
    return 0;
}

static int teardown(void **state)
{
    struct recording *r = *state;
    for (uint32_t c = 0; c < DP_LEDGER_CLIENTS; c++)
        dp_client_close(&r->client[c].client);
    dp_process_free(&r->server);
    dp_cluster_free(&r->cluster);
    if (r->log_fd > 0)
        (void)close(r->log_fd);
    if (!getenv("DP_FAULT_KEEP"))
        (void)dp_place_teardown((void **)&r->place);
    free(r);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_image_recovers),
        cmocka_unit_test(a_disk_that_lies_is_noticed),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
