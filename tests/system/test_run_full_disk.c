/* `downpour run` on a disk that fills up while a worker and a server are killed: both are started again and wait, the cause is named,
 * and when there is room the training ends bit for bit as one that nothing happened to. */
#include "tests/lib/test.h"
#include "tests/system/place.h"
#include "tests/system/small_disk.h"

#include <ctype.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENOUGH  (192u << 20)
#define EPOCHS  "300" /* some seconds: the disk fills up long before their end */
#define SECONDS 240u  /* for all of it, where others use the machine too */

/* One worker whose order is fixed, and one shard: no kill changes a bit (test_kills.c). */
static struct dp_process *start_run(struct dp_place *place, const char *dir)
{
    static const char base[] =
        "name = \"t\"; model = \"mlp:64-64-10\"; data = { train = \"" DP_DIGITS_TRAIN "\"; };\n"
        "servers = ({ host = \"127.0.0.1\"; port = 7000; store = \"s\"; });\n"
        "training = { pushes_max = 1; };\n";
    return dp_place_start(place, "downpour", "run", "--dir", dir, "--cluster",
                          dp_place_file(place, "base.conf", base, sizeof base - 1), "--no-overlap", "--scale",
                          "0.0625", "--batch", "16", "--epochs", EPOCHS, "--journal-bytes", "16MiB",
                          "--timeout", "240", NULL);
}

static const char *digest_of(struct dp_place *place, const char *dir)
{
    return dp_place_run_digest(place, dir);
}

/* A line is broken where it would be wider than a terminal. */
static bool has(const char *lines, const char *text)
{
    char *one = strdup(lines);
    assert_non_null(one);
    size_t n = 0;
    for (const char *c = lines; *c; c++)
        if (!isspace((unsigned char)*c) || n == 0 || one[n - 1] != ' ')
            one[n++] = isspace((unsigned char)*c) ? ' ' : *c;
    one[n] = '\0';
    bool found = strstr(one, text) != NULL;
    free(one);
    return found;
}

/* Asks until the answer holds the text, on stderr where the servers do not serve. */
static void await_status(struct dp_place *place, const char *conf, const char *text)
{
    uint64_t deadline = dp_process_now_ms() + (uint64_t)DP_SOON_MS * DP_PATIENCE;
    bool said = false;
    while (!said) {
        assert_true(dp_process_now_ms() < deadline);
        struct dp_process *status =
            dp_place_start(place, "downpour", "status", "--cluster", conf, "--timeout", "1", NULL);
        assert_int_not_equal(dp_process_wait(status, DP_SOON_MS), DP_PROCESS_RUNS);
        said = has(dp_process_err(status), text) || has(dp_process_out(status), text);
        dp_place_drop(place, &status);
    }
}

/* Pushes come until `least` of them, or until they stand still. */
static void await_pushes(struct dp_place *place, const char *conf, double least)
{
    uint64_t deadline = dp_process_now_ms() + (uint64_t)DP_SOON_MS * DP_PATIENCE;
    double before = -1, now = dp_place_counter(place, conf, "pushes");
    for (; now < least && now != before; now = dp_place_counter(place, conf, "pushes")) {
        assert_true(dp_process_now_ms() < deadline);
        before = least < HUGE_VAL ? -1 : now;
    }
}

static void kill_one(struct dp_place *place, struct dp_process *run, const char *program, const char *name)
{
    dp_place_kill_child(run, program);
    dp_place_awaits(run,
                    dp_place_text(place, "%s was killed by signal 9 (Killed); it is started again", name));
}

static void a_run_goes_on_when_there_is_room(void **state)
{
    struct dp_place *place = *state;
    const char *calm = dp_place_path(place, "calm"), *dir = dp_place_path(place, "run");
    const char *conf = dp_place_path(place, "run/cluster.conf");
    assert_int_equal(mkdir(dir, 0777), 0);
    if (!dp_small_disk_mount(dir, ENOUGH))
        skip();
    struct dp_process *run = start_run(place, calm);
    assert_int_equal(dp_process_wait(run, SECONDS * 1000), 0);
    run = start_run(place, dir);
    dp_place_awaits(run, "/" EPOCHS " "); /* the servers serve, and are asked */
    await_pushes(place, conf, 100);
    dp_small_disk_fill(dir);
    await_pushes(place, conf, HUGE_VAL);
    kill_one(place, run, "/downpour-worker", "worker 0");
    kill_one(place, run, "/downpour-server", "server 0");
    await_status(place, conf, "waits for room: ");
    await_status(place, conf, "make room on that disk");
    kill_one(place, run, "/downpour-worker", "worker 0");
    assert_int_equal(dp_process_wait(run, 0), DP_PROCESS_RUNS);
    dp_small_disk_resize(dir, ENOUGH);
    if (dp_process_wait(run, SECONDS * 1000) != 0)
        fail_msg("%s\n%s\n%s", dp_process_err(run),
                 dp_place_read(place, dp_place_path(place, "run/log/server-0.log"), NULL),
                 dp_place_read(place, dp_place_path(place, "run/log/worker-0.log"), NULL));
    assert_string_equal(digest_of(place, dir), digest_of(place, calm));
    dp_small_disk_unmount(dir);
}

/* Takes all that is left of it. */
static void fill_up(const char *path)
{
    static const char page[4096];
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)setvbuf(file, NULL, _IONBF, 0);
    while (fwrite(page, 1, sizeof page, file) == sizeof page)
        ;
    (void)fclose(file);
}

static uint32_t count_of(const char *text, const char *part)
{
    uint32_t n = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        n++;
    return n;
}

/* The cause is said at once, not again and again, and the run ends at its deadline with it. */
static void a_start_without_room_ends(void **state)
{
    struct dp_place *place = *state;
    const char *dir = dp_place_path(place, "run"), *ballast = dp_place_path(place, "run/ballast");
    assert_int_equal(mkdir(dir, 0777), 0);
    if (!dp_small_disk_mount(dir, ENOUGH))
        skip();
    fill_up(ballast);
    struct stat is;
    assert_int_equal(stat(ballast, &is), 0);
    assert_int_equal(truncate(ballast, is.st_size - (1 << 20)),
                     0); /* for logs and settings, not for a store */
    uint64_t began = dp_process_now_ms();
    struct dp_process *run =
        dp_place_start(place, "downpour", "run", "--dir", dir, "--model", "mlp:64-64-10", "--train",
                       DP_DIGITS_TRAIN, "--scale", "0.0625", "--epochs", "1", "--timeout", "12", NULL);
    dp_place_awaits(run, "waits for room: ");
    assert_true(dp_process_now_ms() - began < 8000 * DP_PATIENCE);
    dp_place_ended(run, 2);
    assert_true(dp_process_now_ms() - began <
                60000 * DP_PATIENCE); /* ten times the timeout is for a journal */
    dp_place_says(run, "no room on a disk for 12 s (--timeout): ");
    assert_int_equal(count_of(dp_process_err(run), "KiB left, but opening a store needs"), 2);
    dp_small_disk_unmount(dir);
}

/* The disk of the report alone: the training has ended, and waits with its result. */
static void a_report_waits_for_room(void **state)
{
    struct dp_place *place = *state;
    const char *small = dp_place_path(place, "small"), *ballast = dp_place_path(place, "small/ballast");
    const char *report = dp_place_path(place, "small/report.json"),
               *log = dp_place_path(place, "run/log/worker-0.log");
    assert_int_equal(mkdir(small, 0777), 0);
    if (!dp_small_disk_mount(small, 1u << 20))
        skip();
    fill_up(ballast);
    struct dp_process *run =
        dp_place_start(place, "downpour", "run", "--dir", dp_place_path(place, "run"), "--report", report,
                       "--model", "mlp:64-64-10", "--train", DP_DIGITS_TRAIN, "--scale", "0.0625", "--epochs",
                       "2", "--timeout", "240", NULL);
    uint64_t deadline = dp_process_now_ms() + (uint64_t)DP_SOON_MS * DP_PATIENCE;
    char *text = NULL;
    while (!text || !strstr(text, "retrying for 240 s")) {
        assert_true(dp_process_now_ms() < deadline && dp_process_wait(run, 0) == DP_PROCESS_RUNS);
        free(text);
        text = dp_process_slurp(log, NULL);
        dp_process_pause();
    }
    free(text);
    assert_int_equal(unlink(ballast), 0);
    dp_place_ended(run, 0);
    assert_true(dp_place_number(place, report, "epochs.1.epoch") == 2);
    dp_small_disk_unmount(small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_goes_on_when_there_is_room, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(a_start_without_room_ends, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(a_report_waits_for_room, dp_place_setup, dp_place_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
