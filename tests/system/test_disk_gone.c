/* A server's disk is gone: it comes back with the last checkpoint, and so do all others, by one order; before that, and where only one was
 * restored, all refuse by name. The run then ends with the bits of one that nothing happened to. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

struct gone {
    struct dp_place *place;
    const char *dir, *to; /* of the run, of the checkpoints */
};

static struct dp_process *begin(struct dp_place *place, const char *dir)
{
    return dp_place_start(place, "downpour", "run", "--dir", dir, "--model", "mlp:64-64-10", "--train",
                          DP_DIGITS_TRAIN, "--test", DP_DIGITS_TEST, "--scale", "0.0625", "--servers", "2",
                          "--workers", "1", "--no-overlap", "--batch", "4", "--epochs", "12", NULL);
}

static const char *server(const struct gone *g, const char *dir, uint32_t number)
{
    return dp_place_text(g->place, "%s/runs/1/store/server-%u", dir, (unsigned)number);
}

static const char *digest(const struct gone *g, const char *dir)
{
    return dp_place_digest(g->place, server(g, dir, 0), server(g, dir, 1));
}

/* A process that is killed may hold its locks for a moment more. */
static void await_lock(const struct gone *g)
{
    uint64_t until_ms = dp_process_now_ms() + DP_SOON_MS;
    int fd = open(dp_place_text(g->place, "%s/lock", g->dir), O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    while (flock(fd, LOCK_EX | LOCK_NB) != 0 && dp_process_now_ms() < until_ms)
        dp_process_pause();
    (void)close(fd);
}

/* Nobody restarts anybody, and nobody closes anything. */
static void kill_all(const struct gone *g, struct dp_process *run)
{
    dp_process_signal(run, SIGSTOP);
    dp_place_kill_child(run, "--server 0");
    dp_place_kill_child(run, "--server 1");
    dp_place_kill_child(run, "--worker 0");
    dp_process_signal(run, SIGKILL);
    assert_int_equal(dp_process_wait(run, DP_SOON_MS), -SIGKILL);
    uint64_t until_ms = dp_process_now_ms() + DP_SOON_MS;
    while (dp_process_left(run) > 0 &&
           dp_process_now_ms() < until_ms) /* what is killed ends soon, not at once */
        dp_process_pause();
    dp_place_ended(run, -SIGKILL);
    await_lock(g);
}

static void lose(const struct gone *g, uint32_t number)
{
    (void)dp_place_try(g->place, 0, "/bin/rm", "-r", server(g, g->dir, number));
}

static struct dp_process *resume(const struct gone *g, int code)
{
    return dp_place_try(g->place, code, "downpour", "run", "--dir", g->dir, "--resume");
}

static void restore_all(const struct gone *g)
{
    dp_place_says(
        dp_place_try(g->place, 0, "downpour", "restore", "--from", g->to, "--dir", g->dir, "--overwrite"),
        "2 of 2 servers");
}

static void all_go_back_together(void **state)
{
    struct gone g = {.place = *state, .dir = NULL, .to = NULL};
    g.dir = dp_place_path(g.place, "run");
    g.to = dp_place_path(g.place, "checkpoints");
    struct dp_process *run = begin(g.place, g.dir);
    dp_place_awaits(run, "\n    2 ");
    (void)dp_place_try(g.place, 0, "downpour", "checkpoint", "--dir", g.dir, "--to", g.to);
    kill_all(&g, run);
    lose(&g, 1);
    dp_place_says(resume(&g, 2), server(&g, g.dir, 1));
    assert_int_not_equal(access(server(&g, g.dir, 1), F_OK), 0); /* nothing is begun anew */
    (void)dp_place_try(g.place, 0, "downpour-server", "--cluster",
                       dp_place_text(g.place, "%s/cluster.conf", g.dir), "--server", "1", "--restore", g.to,
                       "--history", "alone");
    dp_place_says(resume(&g, 2), server(&g, g.dir, 1)); /* built, and in no place: one server is no restore */
    restore_all(&g);
    (void)resume(&g, 0);
    const char *end = digest(&g, g.dir), *other = dp_place_path(g.place, "other");
    dp_place_ended(begin(g.place, other), 0);
    assert_string_equal(digest(&g, other), end);
    lose(&g, 0); /* with the register */
    restore_all(&g);
    (void)resume(&g, 0);
    assert_string_equal(digest(&g, g.dir), end);
}

static void build(const struct gone *g, const char *number)
{
    (void)dp_place_try(g->place, 0, "downpour-server", "--cluster",
                       dp_place_text(g->place, "%s/cluster.conf", g->dir), "--server", number, "--restore",
                       g->to, "--history", "half", "--overwrite");
}

/* A restore of both servers was killed between the two renames of the first one, which decided it: the run completes it. */
static void killed_within_the_exchange(void **state)
{
    struct gone g = {.place = *state, .dir = NULL, .to = NULL};
    g.dir = dp_place_path(g.place, "run");
    g.to = dp_place_path(g.place, "checkpoints");
    struct dp_process *run = begin(g.place, g.dir);
    dp_place_awaits(run, "\n    2 ");
    (void)dp_place_try(g.place, 0, "downpour", "checkpoint", "--dir", g.dir, "--to", g.to);
    kill_all(&g, run);
    build(&g, "0");
    build(&g, "1");
    const char *first = server(&g, g.dir, 0);
    assert_int_equal(rename(first, dp_place_text(g.place, "%s.before", first)), 0);
    dp_place_says(dp_place_try(g.place, 2, "downpour", "predict", "--from", g.dir, "--data", DP_DIGITS_TEST),
                  "a restore was interrupted");
    dp_place_says(resume(&g, 0), "an interrupted restore is completed");
    const char *end = digest(&g, g.dir), *other = dp_place_path(g.place, "other");
    dp_place_ended(begin(g.place, other), 0);
    assert_string_equal(digest(&g, other), end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_go_back_together, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(killed_within_the_exchange, dp_place_setup, dp_place_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
