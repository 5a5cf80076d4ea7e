/* Each file call of a store fails in turn, then the process ends, and the store must open on a sound disk and have all that it
 * acknowledged: for each call, file, error and n the script (store_script.c) runs under the failing library (failing.h), until it ends
 * before its n-th call. The failure strikes once, or from then on; the process ends by _exit or by a close.
 * Sizes     One n, drawn, of each call, file, error and manner; DP_LONG=1: all. DP_FAULT_SEED: other draws.
 * A failure prints its plan; DP_FAULT_PLAN="PLAN exit" runs that one and leaves its directory. */
#include "common/env/directory.h"
#include "tests/fault/disk_file.h"
#include "tests/fault/failing_plan.h"
#include "tests/lib/process.h"
#include "tests/lib/test.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLOTS      2u
#define CASE_MS    60000u
#define TOLD       8u /* failures that are printed */
#define LEEWAY     8u /* a run's calls may be more than the first one's: background threads */
#define PATH_BYTES 256u

/* The processes of a case, one after the other. */
enum stage { LIVE, OPEN, CHECK, STAGES };
static const char *const stage_names[STAGES] = {"live", "open", "check"};

struct slot {
    char directory[PATH_BYTES];
    struct dp_failing_plan plan, opening; /* of LIVE, of OPEN; opening.n 0: no such stage */
    enum stage stage;
    bool closes;
    struct dp_process *process;
    uint64_t until;
};

struct sweep {
    char root[PATH_BYTES];
    struct slot slot[SLOTS];
    uint32_t cases, struck, died, failures;
};

/* ---- one case */

static const char *path_in(const struct slot *slot, const char *name, char out[2 * PATH_BYTES])
{
    (void)snprintf(out, 2 * PATH_BYTES, "%s/%s", slot->directory, name);
    return out;
}

static void start_process(struct slot *slot)
{
    char store[2 * PATH_BYTES], acks[2 * PATH_BYTES], counts[2 * PATH_BYTES], prefix[2 * PATH_BYTES];
    char root_is[3 * PATH_BYTES], counts_are[3 * PATH_BYTES], plan_is[3 * PATH_BYTES];
    const struct dp_failing_plan *plan = slot->stage == OPEN ? &slot->opening : &slot->plan;
    const char *const argv[] = {DP_STORE_SCRIPT,
                                stage_names[slot->stage],
                                path_in(slot, "store", store),
                                path_in(slot, "acks", acks),
                                slot->closes ? "close" : "exit",
                                NULL};
    (void)snprintf(root_is, sizeof root_is, DP_FAILING_ROOT "=%s", store);
    (void)snprintf(counts_are, sizeof counts_are, DP_FAILING_COUNTS "=%s", path_in(slot, "counts", counts));
    (void)snprintf(plan_is, sizeof plan_is, DP_FAILING_PLAN "=" DP_FAILING_FORMAT, plan->call, plan->file,
                   plan->n, plan->error, (unsigned)plan->on);
    const char *const environment[] = {"LD_PRELOAD=" DP_FAILING_LIBRARY, root_is, counts_are, plan_is, NULL};
    const struct dp_process_options options = {.argv = argv,
                                               .prefix = path_in(slot, stage_names[slot->stage], prefix),
                                               .environment = slot->stage == CHECK ? NULL : environment};
    slot->process = dp_process_start(&options);
    slot->until = dp_process_now_ms() + CASE_MS;
}

static void put_counts(const struct slot *slot)
{
    static const struct dp_failing_counts none;
    char path[2 * PATH_BYTES];
    int fd = open(path_in(slot, "counts", path), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    assert_int_equal(write(fd, &none, sizeof none), sizeof none);
    (void)close(fd);
}

static void start_case(struct slot *slot, const struct dp_failing_plan *plan, bool closes)
{
    char path[2 * PATH_BYTES];
    assert_int_equal(dp_directory_remove(slot->directory, true, 0, NULL), DP_OK);
    assert_int_equal(mkdir(slot->directory, 0777), 0);
    assert_int_equal(mkdir(path_in(slot, "store", path), 0777), 0);
    put_counts(slot);
    slot->plan = *plan;
    slot->opening = (struct dp_failing_plan){.n = 0};
    slot->closes = closes;
    slot->stage = LIVE;
    start_process(slot);
}

static struct dp_failing_counts counts_of(const struct slot *slot)
{
    char path[2 * PATH_BYTES];
    struct dp_failing_counts counts;
    int fd = open(path_in(slot, "counts", path), O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, &counts, sizeof counts), sizeof counts);
    (void)close(fd);
    return counts;
}

static void tell(struct sweep *sweep, struct slot *slot, const char *what, int code)
{
    const struct dp_failing_plan *p = &slot->plan;
    char path[2 * PATH_BYTES], said[80];
    if (sweep->failures++ >= TOLD)
        return;
    char *live = dp_process_slurp(path_in(slot, "live.out", path), NULL);
    print_message("%s, %s: %s ended with %d: %s%s\n    again: DP_FAULT_PLAN=\"" DP_FAILING_FORMAT
                  " %s\"; the life said: %s\n",
                  dp_failing_say(p, said, sizeof said), slot->closes ? "closed" : "exited", what, code,
                  dp_process_out(slot->process), dp_process_err(slot->process), p->call, p->file, p->n,
                  p->error, (unsigned)p->on, slot->closes ? "close" : "exit", live ? live : "");
    if (slot->opening.n > 0)
        print_message("    an opening followed, with " DP_FAILING_FORMAT "\n", slot->opening.call,
                      slot->opening.file, slot->opening.n, slot->opening.error, (unsigned)slot->opening.on);
    free(live);
}

/* The process of a slot, if it has ended, is judged; the next one of the case follows. */
static void go_on(struct sweep *sweep, struct slot *slot)
{
    int code = dp_process_wait(slot->process, 0);
    bool late = code == DP_PROCESS_RUNS && dp_process_now_ms() > slot->until;
    if (code == DP_PROCESS_RUNS && !late)
        return;
    enum stage ended = slot->stage;
    if (late || (ended == CHECK && code != 0)) {
        tell(sweep, slot, stage_names[ended], code);
    } else if (ended == (slot->opening.n > 0 ? OPEN : LIVE)) {
        sweep->cases++;
        sweep->struck += counts_of(slot).failed > 0;
        sweep->died += code != 0; /* an assertion of RocksDB's build: an end like any other */
    }
    dp_process_free(&slot->process);
    if (late || ended == CHECK)
        return;
    slot->stage = ended == LIVE && slot->opening.n > 0 ? OPEN : CHECK;
    if (slot->stage == OPEN)
        put_counts(slot);
    start_process(slot);
}

/* A slot that has nothing to do. */
static struct slot *free_slot(struct sweep *sweep)
{
    for (;;) {
        for (uint32_t i = 0; i < SLOTS; i++) {
            if (sweep->slot[i].process)
                go_on(sweep, &sweep->slot[i]);
            if (!sweep->slot[i].process)
                return &sweep->slot[i];
        }
        dp_process_pause();
    }
}

static void drain(struct sweep *sweep)
{
    for (uint32_t i = 0; i < SLOTS; i++)
        while (sweep->slot[i].process) {
            go_on(sweep, &sweep->slot[i]);
            dp_process_pause();
        }
}

/* ---- all cases */

/* How many calls of each sort an undisturbed life makes. */
static struct dp_failing_counts probe(struct sweep *sweep)
{
    const struct dp_failing_plan none = {.n = 0};
    struct slot *slot = free_slot(sweep);
    start_case(slot, &none, true);
    drain(sweep);
    if (sweep->failures > 0)
        fail_msg("the script fails on a sound disk");
    return counts_of(slot);
}

static void sweep_one(struct sweep *sweep, struct dp_failing_plan plan, uint32_t calls, bool all,
                      uint64_t *draws, uint64_t seed)
{
    uint32_t most = calls + LEEWAY;
    for (plan.n = 1; plan.n <= most && all; plan.n++)
        for (int closes = 0; closes < 2; closes++)
            start_case(free_slot(sweep), &plan, closes);
    if (!all) {
        uint64_t draw = dp_disk_draw(seed, ++*draws);
        plan.n = 1 + (uint32_t)((draw >> 1) % calls);
        start_case(free_slot(sweep), &plan, draw & 1);
    }
}

static void what_was_acknowledged_outlasts_any_failing_call(void **state)
{
    struct sweep *sweep = *state;
    struct dp_failing_counts calls = probe(sweep);
    uint64_t seed = dp_failing_seed(), draws = 0;
    bool all = getenv("DP_LONG") != NULL;
    for (int call = 0; call < DP_FAILING_CALLS; call++)
        for (int file = 0; file < DP_FAILING_FILES; file++)
            for (int error = 0; error < DP_FAILING_ERRORS; error++)
                for (int on = 0; on < 2; on++) {
                    struct dp_failing_plan plan = {.call = (enum dp_failing_call)call,
                                                   .file = (enum dp_failing_file)file,
                                                   .error = (enum dp_failing_error)error,
                                                   .on = on};
                    if (calls.calls[call][file] > 0 && dp_failing_can(plan.call, plan.error))
                        sweep_one(sweep, plan, calls.calls[call][file], all, &draws, seed);
                }
    drain(sweep);
    print_message("seed %" PRIu64 ": %" PRIu32 " cases, %" PRIu32 " met their failure, %" PRIu32
                  " of them died of it; %" PRIu32 " did not open or lost something\n",
                  seed, sweep->cases, sweep->struck, sweep->died, sweep->failures);
    assert_int_equal(sweep->failures, 0);
}

/* The one that started it: the record of an ingest is in the manifest, and its sync fails. */
static void an_ingest_whose_manifest_sync_fails_is_no_damage(void **state)
{
    struct sweep *sweep = *state;
    struct dp_failing_plan plan = {.call = DP_FAILING_SYNC, .file = DP_FAILING_MANIFEST};
    struct dp_failing_counts calls = probe(sweep);
    for (plan.n = 1; plan.n <= calls.calls[plan.call][plan.file]; plan.n += plan.n > 20 ? 2 : 1)
        start_case(free_slot(sweep), &plan, plan.n / 2 % 2);
    drain(sweep);
    assert_int_equal(sweep->failures, 0);
}

/* The open that puts a portion back is no more lasting: each of its calls fails, too. First, a sync is found of which the failure
 * makes the opening put something back; its calls are counted. */
static void an_opening_after_a_failed_sync_may_fail(void **state)
{
    struct sweep *sweep = *state;
    struct dp_failing_plan ingest = {.call = DP_FAILING_SYNC, .file = DP_FAILING_MANIFEST, .n = 10};
    struct dp_failing_counts calls = {0};
    struct slot *slot;
    for (; calls.calls[DP_FAILING_RENAME][DP_FAILING_TABLE] != 1; ingest.n++) {
        assert_true(ingest.n < 40);
        slot = free_slot(sweep);
        start_case(slot, &ingest, false);
        slot->opening = (struct dp_failing_plan){.n = UINT32_MAX};
        drain(sweep);
        calls = counts_of(slot);
    }
    ingest.n--;
    for (int call = 0; call < DP_FAILING_CALLS; call++)
        for (int file = 0; file < DP_FAILING_FILES; file++)
            for (uint32_t n = 1; n <= calls.calls[call][file]; n++) {
                slot = free_slot(sweep);
                start_case(slot, &ingest, n % 2);
                slot->opening = (struct dp_failing_plan){.call = (enum dp_failing_call)call,
                                                         .file = (enum dp_failing_file)file,
                                                         .n = n,
                                                         .on = n / 2 % 2};
            }
    drain(sweep);
    print_message("%" PRIu32 " openings, %" PRIu32 " met their failure\n", sweep->cases, sweep->struck);
    assert_int_equal(sweep->failures, 0);
}

/* RocksDB only tries to remove the portion that it has taken in. It must not be written over. */
static void an_ingested_portion_that_stays_is_not_written_over(void **state)
{
    struct sweep *sweep = *state;
    struct dp_failing_plan plan = {.call = DP_FAILING_REMOVE, .file = DP_FAILING_TABLE};
    uint32_t calls = probe(sweep).calls[plan.call][plan.file];
    for (plan.n = 1; plan.n <= calls; plan.n++) {
        plan.on = plan.n % 4 == 0;
        start_case(free_slot(sweep), &plan, plan.n / 2 % 2);
    }
    drain(sweep);
    assert_int_equal(sweep->failures, 0);
}

static void the_plan_that_was_given(void **state)
{
    struct sweep *sweep = *state;
    char end[8] = "";
    const struct dp_failing_plan plan = dp_failing_given(end);
    struct slot *slot = free_slot(sweep);
    start_case(slot, &plan, strcmp(end, "close") == 0);
    drain(sweep);
    print_message("its directory: %s\n", slot->directory);
    assert_int_equal(sweep->failures, 0);
}

/* ---- */

/* In memory where it can be: the cases sync a great deal. */
static int setup(void **state)
{
    struct sweep *sweep = calloc(1, sizeof *sweep);
    const char *above = getenv("TMPDIR");
    if (!sweep)
        return -1;
    if (!above)
        above = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    (void)snprintf(sweep->root, sizeof sweep->root, "%s/dp_errors_XXXXXX", above);
    if (!mkdtemp(sweep->root))
        return -1;
    for (uint32_t i = 0; i < SLOTS; i++)
        if (snprintf(sweep->slot[i].directory, PATH_BYTES, "%s/%" PRIu32, sweep->root, i) >= (int)PATH_BYTES)
            return -1;
    *state = sweep;
    return 0;
}

static int teardown(void **state)
{
    struct sweep *sweep = *state;
    for (uint32_t i = 0; i < SLOTS; i++)
        dp_process_free(&sweep->slot[i].process);
    if (!getenv("DP_FAULT_PLAN"))
        assert_int_equal(dp_directory_remove(sweep->root, true, 0, NULL), DP_OK);
    free(sweep);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_ingest_whose_manifest_sync_fails_is_no_damage, setup, teardown),
        cmocka_unit_test_setup_teardown(an_opening_after_a_failed_sync_may_fail, setup, teardown),
        cmocka_unit_test_setup_teardown(an_ingested_portion_that_stays_is_not_written_over, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_acknowledged_outlasts_any_failing_call, setup, teardown),
    };
    const struct CMUnitTest one[] = {
        cmocka_unit_test_setup_teardown(the_plan_that_was_given, setup, teardown),
    };
    return getenv("DP_FAULT_PLAN") ? cmocka_run_group_tests(one, NULL, NULL)
                                   : cmocka_run_group_tests(tests, NULL, NULL);
}
