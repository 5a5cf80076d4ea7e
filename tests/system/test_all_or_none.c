/* Restores of a working cluster that cannot end well. Goal: afterwards its servers start, all with their old stores or all with the
 * restored ones; a refusal leaves the old ones, and nothing else. Method: the checkpoint of tests/data/format-1, restored over stores that
 * were restored before, onto 2 and 3 servers: (a) with one bit of each of its files flipped, the file cut to a half, and missing; (b) with a
 * full disk on one server, or a store that is a mount point; (c) not exchanged; (d) killed at drawn moments;
 * (e) without tables that the journals' tails name, and built by servers that differ in that. Servers of two
 * restores do not start together, so a mixture shows.
 * Every seventh case; with DP_LONG=1 each, and 100 kills. */
#include "tests/lib/test.h"
#include "tests/system/place.h"
#include "tests/system/small_disk.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STRIDE 7u

struct cluster {
    struct dp_place *place;
    uint32_t servers;
    const char *conf, *from;
    const char *digest; /* of the checkpoint's rows */
};

static const char *store(const struct cluster *c, uint32_t server)
{
    return dp_place_path(c->place, "c%u-%u", (unsigned)c->servers, (unsigned)server);
}

static struct dp_process *restore(const struct cluster *c, int code)
{
    return dp_place_try(c->place, code, "downpour", "restore", "--from", c->from, "--cluster", c->conf,
                        "--overwrite");
}

static const char *digest(const struct cluster *c)
{
    struct dp_process *inspect = dp_place_try(c->place, 0, "downpour", "inspect", "--verify", "--digest",
                                              store(c, 0), store(c, 1), c->servers > 2 ? store(c, 2) : NULL);
    const char *text = strstr(dp_process_out(inspect), "\ndigest ");
    assert_non_null(text);
    return text;
}

static uint32_t generation(const struct cluster *c)
{
    struct dp_process *inspect = dp_place_try(c->place, 0, "downpour", "inspect", store(c, 0));
    const char *text = strstr(dp_process_out(inspect), "generation ");
    assert_non_null(text);
    return (uint32_t)strtoul(text + strlen("generation "), NULL, 10);
}

static void start_and_stop(const struct cluster *c)
{
    struct dp_process *server[3];
    for (uint32_t i = 0; i < c->servers; i++)
        server[i] = dp_place_server(c->place, c->conf, i);
    for (uint32_t i = 0; i < c->servers; i++) {
        dp_place_stops_cleanly(server[i]);
        dp_place_drop(c->place, &server[i]);
    }
}

static void expect_whole(const struct cluster *c)
{
    start_and_stop(c);
    assert_string_equal(digest(c), c->digest);
}

static void expect_nothing_left(const struct cluster *c)
{
    for (uint32_t i = 0; i < c->servers; i++) {
        assert_int_not_equal(access(dp_place_text(c->place, "%s.restoring", store(c, i)), F_OK), 0);
        assert_int_not_equal(access(dp_place_text(c->place, "%s.before", store(c, i)), F_OK), 0);
    }
}

static void unpack(const struct cluster *c)
{
    (void)dp_place_try(c->place, 0, "/bin/tar", "-xzf", DP_SOURCE "/tests/data/format-1/checkpoint.tar.gz",
                       "-C", dp_place_path(c->place, "."));
}

static struct cluster working(void **state, uint32_t servers)
{
    struct cluster c = {.place = *state, .servers = servers};
    struct dp_place_cluster file = {.file = dp_place_text(c.place, "c%u", (unsigned)servers),
                                    .model = "fm:3",
                                    .servers = servers,
                                    .top = "id = 77;"};
    c.conf = dp_place_conf(c.place, &file);
    c.from = dp_place_path(c.place, "checkpoints");
    unpack(&c);
    (void)dp_place_try(c.place, 0, "downpour", "restore", "--from", c.from, "--cluster", c.conf);
    start_and_stop(&c);
    c.digest = digest(&c);
    return c;
}

/* ---- damaged checkpoints */

enum damage { FLIPPED, CUT, MISSING, DAMAGES };

static void damage(const struct cluster *c, const char *path, enum damage how)
{
    if (how == MISSING) {
        assert_int_equal(unlink(path), 0);
        return;
    }
    size_t size;
    char *bytes = dp_place_read(c->place, path, &size);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    bytes[size / 2] = (char)(bytes[size / 2] ^ 1);
    size_t kept = how == CUT ? size / 2 : size;
    assert_int_equal(fwrite(bytes, 1, kept, file), kept);
    assert_int_equal(fclose(file), 0);
}

static void with_damage(const struct cluster *c, const char *path, enum damage how)
{
    uint32_t before = generation(c);
    damage(c, path, how);
    struct dp_process *command = dp_place_start(c->place, "downpour", "restore", "--from", c->from,
                                                "--cluster", c->conf, "--overwrite", NULL);
    int code = dp_process_wait(command, DP_SOON_MS);
    print_message("%s, %s: exit code %d\n", path,
                  how == FLIPPED ? "flipped"
                  : how == CUT   ? "cut"
                                 : "missing",
                  code);
    assert_true(code == 0 || code == 2);
    expect_nothing_left(c);
    expect_whole(c);
    assert_true(code == 0 || generation(c) == before);
    dp_place_drop(c->place, &command);
    unpack(c);
}

static void damaged(void **state)
{
    struct cluster c = working(state, 2);
    struct dp_process *find = dp_place_try(c.place, 0, "/usr/bin/find", c.from, "-type", "f");
    uint32_t files = 0, cases = 0;
    for (const char *at = dp_process_out(find); *at; at += strcspn(at, "\n") + 1, files++) {
        const char *path = dp_place_text(c.place, "%.*s", (int)strcspn(at, "\n"), at);
        for (uint32_t how = 0; how < DAMAGES; how++)
            if (getenv("DP_LONG") || (files * DAMAGES + how) % STRIDE == 1) {
                with_damage(&c, path, (enum damage)how);
                cases++;
            }
    }
    assert_true(files >= 15 && cases >= files / STRIDE);
    with_damage(&c, dp_place_path(c.place, "checkpoints/checkpoint-000001/register"), FLIPPED);
}

/* ---- a full disk */

static void full_on_the_last(void **state)
{
    struct cluster c = working(state, 2);
    const char *small = dp_place_path(c.place, "small");
    assert_int_equal(mkdir(small, 0777), 0);
    if (!dp_small_disk_mount(small, 64 << 20))
        skip();
    (void)dp_place_try(c.place, 0, "/bin/mv", store(&c, 1), dp_place_path(c.place, "small/store"));
    assert_int_equal(symlink(dp_place_path(c.place, "small/store"), store(&c, 1)), 0);
    (void)restore(&c, 0);
    start_and_stop(&c);
    uint32_t before = generation(&c);
    dp_small_disk_fill(small);
    dp_place_says(restore(&c, 2), "make room on that disk");
    assert_int_not_equal(access(dp_place_text(c.place, "%s.restoring", store(&c, 0)), F_OK), 0);
    assert_int_not_equal(access(dp_place_path(c.place, "small/store.restoring"), F_OK), 0);
    dp_small_disk_resize(small, 256 << 20);
    assert_int_equal(generation(&c), before);
    expect_whole(&c);
    dp_small_disk_unmount(small);
}

/* ---- a mount point */

/* Of a directory on the same disk: its device says nothing, and its name cannot be changed. */
static void mounted_on_itself(void **state)
{
    struct cluster c = working(state, 2);
    const char *small = dp_place_path(c.place, "small"), *last = store(&c, 1);
    assert_int_equal(mkdir(small, 0777), 0);
    if (!dp_small_disk_mount(small, 1 << 20)) /* so that the mounts are this process's own */
        skip();
    assert_int_equal(mount(last, last, NULL, MS_BIND, NULL), 0);
    uint32_t before = generation(&c);
    dp_place_says(restore(&c, 2), "is a mount point");
    assert_int_equal(generation(&c), before);
    expect_nothing_left(&c);
    expect_whole(&c);
    assert_int_equal(umount(last), 0);
    dp_small_disk_unmount(small);
}

/* ---- ends */

static struct dp_process *of_server(const struct cluster *c, int code, const char *server, const char *flag)
{
    return dp_place_try(c->place, code, "downpour-server", "--cluster", c->conf, "--server", server,
                        "--restore", c->from, "--history", "again", flag);
}

#define WITHOUT "fm.w,fm.b"

static void of_server_without(const struct cluster *c, const char *server, const char *flag)
{
    (void)dp_place_try(c->place, 0, "downpour-server", "--cluster", c->conf, "--server", server, "--restore",
                       c->from, "--history", "again", "--without", WITHOUT, flag);
}

static struct dp_process *restore_without(const struct cluster *c)
{
    return dp_place_start(c->place, "downpour", "restore", "--from", c->from, "--cluster", c->conf,
                          "--overwrite", "--without", WITHOUT, NULL);
}

/* The digest of the rows that are left. */
static const char *leave_out(const struct cluster *c)
{
    struct dp_process *command = restore_without(c);
    dp_place_ended(command, 0);
    dp_place_says(command, "without 2 of 3 tables");
    dp_place_says(command, "table 'fm.w' is one of the model fm:3");
    start_and_stop(c);
    const char *left = digest(c);
    assert_null(strstr(left, "fm.w"));
    assert_null(strstr(left, "fm.b"));
    const char *kept = strstr(c->digest, " fm.v ");
    assert_non_null(kept); /* "digest NUMBER fm.v", in both */
    const char *line = kept - strlen("digest ") - 32;
    assert_memory_equal(left + 1, line, strcspn(line, "\n"));
    return left;
}

static void without_a_table(void **state)
{
    struct cluster c = working(state, 2);
    const char *left = leave_out(&c);
    (void)restore(&c, 0); /* the checkpoint has all of them still */
    expect_whole(&c);
    /* Built, and not exchanged. */
    of_server_without(&c, "0", "--overwrite");
    of_server_without(&c, "1", "--overwrite");
    start_and_stop(&c);
    expect_nothing_left(&c);
    expect_whole(&c);
    /* One was built with the tables: it neither follows the first one's exchange nor serves with it. */
    of_server_without(&c, "0", "--overwrite");
    (void)of_server(&c, 0, "1", "--overwrite");
    (void)of_server(&c, 2, "0", "--exchange");
    of_server_without(&c, "0", "--exchange");
    struct dp_process *first = dp_place_server(c.place, c.conf, 0);
    struct dp_process *other =
        dp_place_try(c.place, 2, "downpour-server", "--cluster", c.conf, "--server", "1");
    dp_place_says(other, "another checkpoint, --history or --without");
    dp_place_says(other, "a restore did not reach all servers");
    /* It is built like the others, and follows. */
    of_server_without(&c, "1", "--overwrite");
    struct dp_process *second = dp_place_server(c.place, c.conf, 1);
    dp_place_stops_cleanly(first);
    dp_place_stops_cleanly(second);
    assert_string_equal(digest(&c), left);
    /* A server that has no store, and that the restore does not reach, does not serve an empty one. */
    (void)dp_place_try(c.place, 0, "/bin/rm", "-r", store(&c, 0), store(&c, 1),
                       dp_place_text(c.place, "%s.before", store(&c, 0)),
                       dp_place_text(c.place, "%s.before", store(&c, 1)));
    of_server_without(&c, "0", "--overwrite");
    of_server_without(&c, "0", "--exchange");
    first = dp_place_server(c.place, c.conf, 0);
    dp_place_says(dp_place_try(c.place, 2, "downpour-server", "--cluster", c.conf, "--server", "1"),
                  "the restore did not reach this server");
    assert_int_equal(access(dp_place_text(c.place, "%s/shard-0001/CURRENT", store(&c, 1)), F_OK), -1);
    dp_place_stops_cleanly(first);
}

/* What was built and never exchanged is taken back when the servers start. */
static void built_and_not_exchanged(void **state)
{
    struct cluster c = working(state, 2);
    uint32_t before = generation(&c);
    (void)of_server(&c, 0, "0", "--overwrite");
    (void)of_server(&c, 0, "1", "--overwrite");
    (void)of_server(&c, 2, "1", "--exchange");
    struct dp_process *first = dp_place_server(c.place, c.conf, 0),
                      *second = dp_place_server(c.place, c.conf, 1);
    dp_place_says(second, "it is taken back");
    dp_place_stops_cleanly(first);
    dp_place_stops_cleanly(second);
    expect_nothing_left(&c);
    assert_int_equal(generation(&c), before);
    assert_string_equal(digest(&c), c.digest);
    (void)of_server(&c, 2, "0", "--exchange");
}

static void killed(void **state)
{
    struct cluster c = working(state, 3);
    const char *left = leave_out(&c);
    uint64_t random = (uint64_t)time(NULL);
    uint32_t rounds = getenv("DP_LONG") ? 100 : 4;
    print_message("seed %llu\n", (unsigned long long)random);
    for (uint32_t round = 0; round < rounds; round++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        struct timespec nap = {.tv_nsec = (long)((random >> 33) % 300) * 1000000};
        struct dp_process *command = round % 2
                                         ? restore_without(&c)
                                         : dp_place_start(c.place, "downpour", "restore", "--from", c.from,
                                                          "--cluster", c.conf, "--overwrite", NULL);
        (void)nanosleep(&nap, NULL); /* the moment is drawn: nothing is awaited */
        dp_process_signal(command, SIGKILL);
        (void)dp_process_wait(command, DP_SOON_MS);
        dp_place_drop(c.place, &command); /* with the processes that it started */
        start_and_stop(&c);
        const char *now = digest(&c);
        assert_true(strcmp(now, c.digest) == 0 || strcmp(now, left) == 0);
    }
    (void)restore(&c, 0);
    expect_nothing_left(&c);
    expect_whole(&c);
}

int main(void)
{
#define PLACE_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        PLACE_TEST(damaged),           PLACE_TEST(full_on_the_last),
        PLACE_TEST(mounted_on_itself), PLACE_TEST(built_and_not_exchanged),
        PLACE_TEST(without_a_table),   PLACE_TEST(killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
