/* File calls of `downpour-server --restore` fail, RocksDB's and our own, while it replaces a store. Afterwards the store is the old one or
 * the restored one, whole, and the restored one if it said so; and a restore on a sound disk succeeds.
 * Sizes     DRAWN cases of all (call, file, error, manner, n); DP_LONG=1: LONG times as many. DP_FAULT_SEED: other draws.
 * The last line before a failure is its plan. */
#include "tests/fault/disk_file.h"
#include "tests/fault/failing_plan.h"
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DRAWN 60u
#define LONG  20u

struct restores {
    struct dp_place *place;
    const char *conf, *store, *root, *counts_path;
    const char *checkpoint[2];
    char digest[2][80];
    struct dp_failing_counts *counts; /* shared with the process that restores */
    uint32_t cases, struck, failed;
};

/* ---- two checkpoints */

static void note_digest(const struct restores *r, char to[80])
{
    (void)snprintf(to, 80, "%s", dp_place_digest(r->place, r->store, NULL));
}

static void make_checkpoints(struct restores *r)
{
    struct dp_place_cluster cluster = {.file = "c", .shards = 2, .epochs = 6, .batch = 8, .top = "id = 77;"};
    const char *conf = dp_place_conf(r->place, &cluster), *to = dp_place_path(r->place, "checkpoints");
    struct dp_process *server = dp_place_server(r->place, conf, 0),
                      *worker = dp_place_worker(r->place, conf, 0);
    dp_place_awaits(worker, "epoch 2 of");
    dp_process_signal(worker, SIGKILL);
    dp_place_ended(worker, -SIGKILL);
    (void)dp_place_try(r->place, 0, "downpour", "checkpoint", "--cluster", conf, "--to", to);
    dp_place_ended(dp_place_worker(r->place, conf, 0), 0);
    (void)dp_place_try(r->place, 0, "downpour", "checkpoint", "--cluster", conf, "--to", to);
    dp_place_stops_cleanly(server);
}

static int restore(struct restores *r, uint32_t which, const struct dp_failing_plan *plan)
{
    const char *const argv[] = {
        DP_BIN "/downpour-server", "--cluster",   r->conf, "--server", "0", "--restore",
        r->checkpoint[which],      "--overwrite", NULL};
    const char *const environment[] = {
        "LD_PRELOAD=" DP_FAILING_LIBRARY, dp_place_text(r->place, DP_FAILING_ROOT "=%s", r->root),
        dp_place_text(r->place, DP_FAILING_COUNTS "=%s", r->counts_path),
        plan ? dp_place_text(r->place, DP_FAILING_PLAN "=" DP_FAILING_FORMAT, plan->call, plan->file, plan->n,
                             plan->error, (unsigned)plan->on)
             : NULL,
        NULL};
    const struct dp_process_options options = {
        .argv = argv, .prefix = dp_place_path(r->place, "failing"), .environment = environment};
    *r->counts = (struct dp_failing_counts){0};
    struct dp_process *process = dp_process_start(&options);
    int code = dp_process_wait(process, DP_SOON_MS);
    if (code != 0 && !plan)
        fail_msg("%s", dp_process_err(process));
    dp_process_free(&process);
    return code;
}

/* ---- cases */

static struct dp_failing_plan drawn(const struct dp_failing_counts *calls, uint64_t *seed)
{
    struct dp_failing_plan plan = {0};
    do {
        uint64_t draw = dp_disk_draw(*seed, 1);
        *seed = draw;
        plan = (struct dp_failing_plan){.call = (enum dp_failing_call)(draw % DP_FAILING_CALLS),
                                        .file = (enum dp_failing_file)(draw / 7 % DP_FAILING_FILES),
                                        .error = (enum dp_failing_error)(draw / 56 % DP_FAILING_ERRORS),
                                        .on = draw >> 63 != 0};
        uint32_t count = calls->calls[plan.call][plan.file];
        plan.n = count > 0 ? 1 + (uint32_t)(draw >> 32) % count : 0;
    } while (plan.n == 0 || !dp_failing_can(plan.call, plan.error));
    return plan;
}

/* *has: which checkpoint the store is of. */
static void run_case(struct restores *r, const struct dp_failing_plan *plan, uint32_t *has)
{
    char digest[80];
    print_message("DP_FAILING=\"" DP_FAILING_FORMAT "\"\n", plan->call, plan->file, plan->n, plan->error,
                  (unsigned)plan->on);
    int code = restore(r, 1 - *has, plan);
    /* It ends by itself, with a word. (Debian's RocksDB aborts where its info log cannot be written: server/store/rocks_db.c.) */
    assert_true(code == 0 || code == 2 || (code == -SIGABRT && plan->file == DP_FAILING_OTHER));
    note_digest(r, digest);
    bool is_new = strcmp(digest, r->digest[1 - *has]) == 0;
    if (!is_new)
        assert_string_equal(digest, r->digest[*has]);
    assert_true(is_new || code != 0);
    r->cases++;
    r->struck += r->counts->failed > 0;
    r->failed += code != 0;
    if (is_new)
        *has = 1 - *has;
}

static void a_store_is_whole_whatever_call_fails(void **state)
{
    struct restores *r = *state;
    uint64_t seed = dp_failing_seed();
    uint32_t has = 0, cases = getenv("DP_LONG") ? DRAWN * LONG : DRAWN;
    for (uint32_t i = 2; i-- > 0;) { /* the first one last */
        (void)restore(r, i, NULL);
        note_digest(r, r->digest[i]);
    }
    assert_string_not_equal(r->digest[0], r->digest[1]);
    const struct dp_failing_counts calls = *r->counts;
    for (uint32_t i = 0; i < cases; i++) {
        const struct dp_failing_plan plan = drawn(&calls, &seed);
        run_case(r, &plan, &has);
    }
    (void)restore(r, 1 - has, NULL);
    note_digest(r, r->digest[has]);
    assert_string_equal(r->digest[0], r->digest[1]);
    print_message("%u cases, %u met their failure, %u restores failed\n", r->cases, r->struck, r->failed);
    assert_true(r->struck > r->cases / 2 && r->failed > r->cases / 4);
}

/* ---- */

static int setup(void **state)
{
    struct dp_place_cluster cluster = {.file = "r", .shards = 3, .top = "id = 77;"};
    struct restores *r = calloc(1, sizeof *r);
    if (!r)
        return -1;
    if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0)
        (void)setenv("TMPDIR", "/dev/shm", 1);
    *state = r;
    if (dp_place_setup((void **)&r->place) != 0)
        return -1;
    make_checkpoints(r);
    r->conf = dp_place_conf(r->place, &cluster);
    r->store = dp_place_path(r->place, "r-0");
    r->root = dp_place_path(r->place, ".");
    for (uint32_t i = 0; i < 2; i++)
        r->checkpoint[i] = dp_place_path(r->place, "checkpoints/checkpoint-%06u", (unsigned)i + 1);
    r->counts_path = dp_place_file(r->place, "counts", &(struct dp_failing_counts){0}, sizeof *r->counts);
    int fd = open(r->counts_path, O_RDWR | O_CLOEXEC);
    r->counts = mmap(NULL, sizeof *r->counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    return r->counts != MAP_FAILED ? 0 : -1;
}

static int teardown(void **state)
{
    struct restores *r = *state;
    (void)munmap(r->counts, sizeof *r->counts);
    (void)dp_place_teardown((void **)&r->place);
    free(r);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_store_is_whole_whatever_call_fails, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
