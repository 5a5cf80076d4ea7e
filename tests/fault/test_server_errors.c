/* File calls of a real server fail, RocksDB's and the journal's, while a client pushes; then the server is killed or asked to stop.
 * On a sound disk it must start, have each acknowledged push, and count none twice (ledger.h).
 * Sizes     DRAWN cases of all (call, file, error, manner); DP_LONG=1: of each of them every n up to EACH, then as many drawn ones.
 *           DP_FAULT_SEED: other draws.
 * A failure prints its plan; DP_FAULT_PLAN="PLAN kill" runs that one and leaves its directory. */
#include "common/config/cluster.h"
#include "common/env/directory.h"
#include "tests/fault/disk_file.h"
#include "tests/fault/failing_plan.h"
#include "tests/fault/ledger.h"
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define DRAWN    24u
#define EACH     4u
#define PUSHES   2600u /* twice the journal: rows are written back, marks put, segments recycled */
#define WINDOW   8u
#define MORE     20u  /* pushes after the failure */
#define STUCK_MS 500u /* a server that has failed and takes no more pushes */
#define LOOK_MS  50u
#define SETTINGS "id = 77; journal_bytes = \"16MiB\"; cache_bytes = \"3MiB\";"

struct sweep {
    struct dp_place *place;
    const char *conf, *store, *counts_path;
    struct dp_cluster *cluster;
    struct dp_failing_counts *counts; /* shared with the server */
    struct dp_process *server;
    struct dp_error refusal; /* what the client heard last */
    uint64_t sent, acked;
    uint32_t cases, struck, refused, failures;
};

/* ---- the life under failures */

static void start_server(struct sweep *s, const struct dp_failing_plan *plan)
{
    const char *const argv[] = {
        DP_BIN "/downpour-server", "--cluster", s->conf, "--server", "0", "--new", NULL};
    const char *const environment[] = {
        "LD_PRELOAD=" DP_FAILING_LIBRARY, dp_place_text(s->place, DP_FAILING_ROOT "=%s", s->store),
        dp_place_text(s->place, DP_FAILING_COUNTS "=%s", s->counts_path),
        plan ? dp_place_text(s->place, DP_FAILING_PLAN "=" DP_FAILING_FORMAT, plan->call, plan->file, plan->n,
                             plan->error, (unsigned)plan->on)
             : NULL,
        NULL};
    const struct dp_process_options options = {
        .argv = argv, .prefix = dp_place_path(s->place, "failing"), .environment = environment};
    s->server = dp_process_start(&options);
}

/* The server goes on: it runs, and it has not met its failure, or has taken a push since a while ago. */
static bool goes_on(struct sweep *s, uint64_t progress)
{
    uint32_t wait_ms = s->counts->failed > 0 ? STUCK_MS : DP_SOON_MS;
    return dp_process_wait(s->server, 0) == DP_PROCESS_RUNS && dp_process_now_ms() - progress < wait_ms;
}

/* Until all is pushed; or the server is gone, or takes no more; or some pushes after the failure. */
static void push_all(struct sweep *s)
{
    struct dp_client *client = NULL;
    struct dp_client_table *table;
    struct dp_ticket ticket[WINDOW];
    uint64_t most = PUSHES, progress = dp_process_now_ms();
    enum dp_status st = DP_TIMEOUT;
    while (st == DP_TIMEOUT && goes_on(s, progress)) {
        dp_client_close(&client);
        st = dp_ledger_open(s->cluster, 0, STUCK_MS, &client, &table, &s->refusal);
    }
    while (st == DP_OK && s->acked < most) {
        for (; st == DP_OK && s->sent < most && s->sent - s->acked < WINDOW; s->sent += st == DP_OK)
            st = dp_ledger_push(client, table, 0, s->sent, &ticket[s->sent % WINDOW], &s->refusal);
        if (s->sent > s->acked)
            st = dp_client_wait(client, &ticket[s->acked % WINDOW], LOOK_MS, NULL, &s->refusal);
        if (st == DP_OK) {
            s->acked++;
            progress = dp_process_now_ms();
        } else if (st == DP_TIMEOUT && goes_on(s, progress)) {
            st = DP_OK;
        }
        if (s->counts->failed > 0 && most == PUSHES && s->sent + MORE < most)
            most = s->sent + MORE;
    }
    dp_client_close(&client);
}

static void tell(struct sweep *s, const struct dp_failing_plan *p, bool stops, const char *what)
{
    char said[80];
    s->failures++;
    print_message("%s, then %s: %s\n    again: DP_FAULT_PLAN=\"" DP_FAILING_FORMAT
                  " %s\"; acknowledged %" PRIu64 ", sent %" PRIu64 "; the failing life said: %s\n",
                  dp_failing_say(p, said, sizeof said), stops ? "SIGTERM" : "SIGKILL", what, p->call, p->file,
                  p->n, p->error, (unsigned)p->on, stops ? "stop" : "kill", s->acked, s->sent,
                  s->server ? dp_process_err(s->server) : "");
}

/* false: SIGTERM did not end it. */
static bool end_life(struct sweep *s, bool stops)
{
    dp_process_signal(s->server, stops ? SIGTERM : SIGKILL);
    return dp_process_wait(s->server, DP_SOON_MS) != DP_PROCESS_RUNS;
}

/* ---- what is there afterwards */

static void check_sound(struct sweep *s, const struct dp_failing_plan *plan, bool stops)
{
    const char *const argv[] = {
        DP_BIN "/downpour-server", "--cluster", s->conf, "--server", "0", "--new", NULL};
    const struct dp_process_options options = {.argv = argv, .prefix = dp_place_path(s->place, "sound")};
    struct dp_process *sound = dp_process_start(&options);
    struct dp_error err = {0};
    if (!dp_process_await(sound, "ready:", DP_SOON_MS))
        tell(s, plan, stops, dp_process_err(sound));
    else if (s->sent > 0 && dp_ledger_settle(s->cluster, 0, s->acked, s->sent, &err) != DP_OK)
        tell(s, plan, stops, err.text);
    else {
        dp_process_signal(sound, SIGTERM);
        if (dp_process_wait(sound, DP_SOON_MS) != 0)
            tell(s, plan, stops, dp_process_err(sound));
    }
    dp_process_free(&sound);
}

static void run_case(struct sweep *s, const struct dp_failing_plan *plan, bool stops)
{
    assert_int_equal(dp_directory_remove(s->store, false, 0, NULL), DP_OK);
    *s->counts = (struct dp_failing_counts){0};
    s->sent = s->acked = 0;
    s->refusal = (struct dp_error){0};
    start_server(s, plan);
    uint64_t began = dp_process_now_ms();
    bool ready;
    while (!(ready = dp_process_await(s->server, "ready:", LOOK_MS)) && goes_on(s, began))
        continue;
    if (ready)
        push_all(s);
    else
        s->refused++;
    if (!end_life(s, stops))
        tell(s, plan, stops, "SIGTERM does not end it");
    s->cases++;
    s->struck += s->counts->failed > 0;
    check_sound(s, plan, stops);
    dp_process_free(&s->server);
}

/* ---- all cases */

/* The sorts of failure that can occur, each as a plan without n. */
static uint32_t list_sorts(const struct dp_failing_counts *calls, struct dp_failing_plan *out)
{
    uint32_t count = 0;
    for (int call = 0; call < DP_FAILING_CALLS; call++)
        for (int file = 0; file < DP_FAILING_FILES; file++)
            for (int error = 0; error < DP_FAILING_ERRORS; error++)
                for (int on = 0; on < 2; on++)
                    if (calls->calls[call][file] > 0 &&
                        dp_failing_can((enum dp_failing_call)call, (enum dp_failing_error)error))
                        out[count++] = (struct dp_failing_plan){.call = (enum dp_failing_call)call,
                                                                .file = (enum dp_failing_file)file,
                                                                .error = (enum dp_failing_error)error,
                                                                .on = on};
    return count;
}

static void run_drawn(struct sweep *s, struct dp_failing_plan plan, const struct dp_failing_counts *calls,
                      uint64_t draw)
{
    plan.n = 1 + (uint32_t)((draw >> 1) % calls->calls[plan.call][plan.file]);
    run_case(s, &plan, draw & 1);
}

static void what_was_acknowledged_outlasts_failing_calls(void **state)
{
    static struct dp_failing_plan sort[DP_FAILING_CALLS * DP_FAILING_FILES * DP_FAILING_ERRORS * 2];
    struct sweep *s = *state;
    const struct dp_failing_plan none = {.n = 0};
    uint64_t seed = dp_failing_seed(), draws = 0;
    run_case(s, &none, true);
    const struct dp_failing_counts calls = *s->counts;
    uint32_t sorts = list_sorts(&calls, sort);
    assert_int_equal(s->failures, 0);
    assert_true(s->acked == PUSHES && sorts > 0);
    if (getenv("DP_LONG")) {
        for (uint32_t i = 0; i < sorts; i++)
            for (uint32_t n = 1; n <= 2 * EACH && n <= calls.calls[sort[i].call][sort[i].file]; n++) {
                sort[i].n = n;
                if (n <= EACH)
                    run_case(s, &sort[i], n & 1);
                else
                    run_drawn(s, sort[i], &calls, dp_disk_draw(seed, ++draws));
            }
    } else {
        for (uint32_t i = 0; i < DRAWN; i++) {
            uint64_t draw = dp_disk_draw(seed, ++draws);
            run_drawn(s, sort[(draw >> 32) % sorts], &calls, draw & UINT32_MAX);
        }
    }
    print_message("seed %" PRIu64 ": %" PRIu32 " sorts, %" PRIu32 " cases, %" PRIu32
                  " met their failure, %" PRIu32 " at their start; %" PRIu32
                  " did not start again or lost something\n",
                  seed, sorts, s->cases, s->struck, s->refused, s->failures);
    assert_int_equal(s->failures, 0);
}

/* The one that started it: the record of an ingest is in the manifest, and its sync fails. */
static void an_ingest_whose_manifest_sync_fails_is_no_damage(void **state)
{
    struct sweep *s = *state;
    struct dp_failing_plan plan = {.call = DP_FAILING_SYNC, .file = DP_FAILING_MANIFEST};
    run_case(s, &plan, true);
    uint32_t calls = s->counts->calls[plan.call][plan.file];
    for (plan.n = 1; plan.n <= calls; plan.n++)
        run_case(s, &plan, plan.n / 2 % 2);
    assert_true(calls > 8); /* an opening, and an ingest at least */
    assert_int_equal(s->failures, 0);
}

static void the_plan_that_was_given(void **state)
{
    struct sweep *s = *state;
    char end[8] = "";
    const struct dp_failing_plan plan = dp_failing_given(end);
    run_case(s, &plan, strcmp(end, "stop") == 0);
    print_message("%" PRIu32 " calls failed; acknowledged %" PRIu64 ", sent %" PRIu64
                  "; the client heard: %s; its directory: %s\n",
                  s->counts->failed, s->acked, s->sent, s->refusal.text, s->store);
    assert_int_equal(s->failures, 0);
}

/* ---- */

static int setup(void **state)
{
    struct statvfs shm;
    struct dp_error err = {0};
    struct dp_place_cluster cluster = {.file = "errors", .top = SETTINGS};
    struct sweep *s = calloc(1, sizeof *s);
    if (!s)
        return -1;
    if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0 && statvfs("/dev/shm", &shm) == 0 &&
        (uint64_t)shm.f_bavail * shm.f_frsize >= UINT64_C(1) << 30)
        (void)setenv("TMPDIR", "/dev/shm", 1);
    *state = s;
    if (dp_place_setup((void **)&s->place) != 0)
        return -1;
    s->conf = dp_place_conf(s->place, &cluster);
    s->store = dp_place_path(s->place, "errors-0");
    s->counts_path = dp_place_file(s->place, "counts", &(struct dp_failing_counts){0}, sizeof *s->counts);
    int fd = open(s->counts_path, O_RDWR | O_CLOEXEC);
    s->counts = mmap(NULL, sizeof *s->counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    return s->counts != MAP_FAILED && mkdir(s->store, 0777) == 0 &&
                   dp_cluster_read(s->conf, &s->cluster, &err) == DP_OK
               ? 0
               : -1;
}

static int teardown(void **state)
{
    struct sweep *s = *state;
    dp_process_free(&s->server);
    dp_cluster_free(&s->cluster);
    (void)munmap(s->counts, sizeof *s->counts);
    if (!getenv("DP_FAULT_PLAN"))
        (void)dp_place_teardown((void **)&s->place);
    free(s);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_ingest_whose_manifest_sync_fails_is_no_damage, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_acknowledged_outlasts_failing_calls, setup, teardown),
    };
    const struct CMUnitTest one[] = {
        cmocka_unit_test_setup_teardown(the_plan_that_was_given, setup, teardown),
    };
    return getenv("DP_FAULT_PLAN") ? cmocka_run_group_tests(one, NULL, NULL)
                                   : cmocka_run_group_tests(tests, NULL, NULL);
}
