/* A restore that is killed, or that fails. Goal: wherever it ends, the store is the old one or the whole restored one, never a part; and
 * the restore can be run again. Method: one of our own file calls is the last one (all behind it fail, as in a process that is dead), or
 * the only one that finds the disk full; then the stores are opened, and the restore is run again. Calls around the change of places and
 * some of the others (with sanitizers fewer); with DP_LONG=1 each. */
#include "server/restore/restore_exchange.h"
#include "server/restore/restore_files.h"
#include "tests/lib/test.h"
#include "tests/lib/timeouts.h"
#include "tests/unit/server/restore/restore_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- calls that fail */

static uint32_t calls, fails_at; /* 0: none fails */
static bool fails_once;          /* with a full disk; else that one and all behind it */
static bool no_links;
static uint32_t place_call; /* place_call: of the last time that STORE.restoring became STORE */

/* takes_room: it is one that a full disk lets fail. */
static bool fails(bool takes_room)
{
    if (fails_once && !takes_room)
        return false;
    calls++;
    if (fails_at == 0 || calls < fails_at || (fails_once && calls > fails_at))
        return false;
    errno = fails_once ? ENOSPC : EIO;
    return true;
}

#define WRAPPED(type, name, room, parameters, arguments)                                                     \
    type __real_##name parameters;                                                                           \
    type __wrap_##name parameters;                                                                           \
    type __wrap_##name parameters                                                                            \
    {                                                                                                        \
        return fails(room) ? -1 : __real_##name arguments;                                                   \
    }
WRAPPED(int, unlink, false, (const char *path), (path))
WRAPPED(int, rmdir, false, (const char *path), (path))
WRAPPED(int, mkdir, true, (const char *path, mode_t mode), (path, mode))
WRAPPED(int, fsync, false, (int fd), (fd))
WRAPPED(int, fdatasync, false, (int fd), (fd))

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
    const char *end = strrchr(from, '.');
    if (end && strcmp(end, ".restoring") == 0)
        place_call = calls + 1;
    return fails(true) ? -1 : __real_rename(from, to);
}

ssize_t __real_write(int fd, const void *bytes, size_t count);
ssize_t __wrap_write(int fd, const void *bytes, size_t count);
ssize_t __wrap_write(int fd, const void *bytes, size_t count)
{
    return fd > STDERR_FILENO && fails(true) ? -1 : __real_write(fd, bytes, count);
}

WRAPPED(ssize_t, pwritev, true, (int fd, const struct iovec *piece, int count, off_t at),
        (fd, piece, count, at))

int __real_link(const char *from, const char *to);
int __wrap_link(const char *from, const char *to);
int __wrap_link(const char *from, const char *to)
{
    if (no_links) {
        errno = EXDEV;
        return -1;
    }
    return fails(true) ? -1 : __real_link(from, to);
}

static int set_up(void **state)
{
    no_links = fails_once = false;
    fails_at = 0;
    *state = world_new(2);
    return 0;
}

static int tear_down(void **state)
{
    fails_at = 0;
    world_free(*state);
    return 0;
}

/* ---- */

/* Something that the checkpoint has not. */
static void change(struct world *world, char digest[DP_DIGEST_TEXT])
{
    struct live *live = world_live(world, 0);
    assert_false(live_push(live, &world->sgd, 0, WORLD_KEYS, WORLD_PUSHES, 1));
    live_close(&live, LIVE_CLEAN);
    world_digest(world, digest);
    assert_string_not_equal(digest, world->digest);
}

static bool is_there(const struct world *world, const char *behind)
{
    char path[1300];
    (void)snprintf(path, sizeof path, "%s%s", world->server[0].store, behind);
    return access(path, F_OK) == 0;
}

static enum dp_status never_asked(void *context, uint64_t *history, struct dp_error *err)
{
    (void)context;
    (void)history;
    (void)err;
    fail_msg("the first server decides by itself");
    return DP_OK;
}

/* A server that starts has the old store or the restored one. old NULL: there was none. */
static void expect_old_or_new(struct world *world, const char *old, uint32_t at)
{
    char digest[DP_DIGEST_TEXT];
    struct dp_error err = {0};
    const struct dp_restore_start start = {
        .store = world->server[0].store, .is_first = true, .ask = never_asked};
    enum dp_status st = dp_restore_exchange_start(&start, &err);
    if (!old && !is_there(world, "")) {
        assert_true(st == DP_OK || st == DP_UNCLEAN);
        return;
    }
    if (st != DP_OK)
        fail_msg("killed at call %u: no store is there: %s", at, err.text);
    if (!is_there(world, ""))
        fail_msg("killed at call %u: the old store is gone", at);
    world_digest(world, digest);
    if (strcmp(digest, world->digest) != 0 && (!old || strcmp(digest, old) != 0))
        fail_msg("killed at call %u: the store is neither the old one nor the restored one", at);
}

/* Ends at this call. Returns whether it came so far. */
static bool ends_at(struct world *world, bool has_old, uint32_t at)
{
    char old[DP_DIGEST_TEXT];
    struct dp_error err = {0};
    if (has_old)
        change(world, old);
    calls = 0;
    fails_at = at;
    enum dp_status st = world_restore_one(world, 0, has_old, &err);
    bool came = calls >= at;
    fails_at = 0;
    if (st != DP_OK && fails_once && st != DP_FULL)
        fail_msg("call %u: a full disk is %s: %s", at, dp_status_name((int)st), err.text);
    expect_old_or_new(world, has_old ? old : NULL, at);
    if (st == DP_OK || !came)
        assert_true(st == DP_OK);
    if (world_restore_one(world, 0, true, &err) != DP_OK)
        fail_msg("after call %u failed: %s", at, err.text);
    world_expect_restored(world);
    assert_false(is_there(world, ".restoring") || is_there(world, ".before"));
    return came;
}

/* Those around the change of places, the first one, and every `stride`-th. */
static bool is_swept(uint32_t at, uint32_t place, uint32_t stride)
{
    return getenv("DP_LONG") || at == 1 || at % (stride * DP_PATIENCE) == 0 ||
           (at + 1 >= place && at <= place + 2);
}

static void sweep(struct world *world, const char *name, const uint32_t *shards, bool has_old,
                  uint32_t stride)
{
    struct dp_error err = {0};
    uint32_t all, place, cases = 0;
    world_cluster(world, name, shards);
    if (has_old) {
        char digest[DP_DIGEST_TEXT];
        assert_int_equal(world_restore_one(world, 0, false, &err), DP_OK);
        change(world, digest);
    }
    calls = 0;
    assert_int_equal(world_restore_one(world, 0, has_old, &err), DP_OK);
    all = calls;
    place = place_call;
    assert_true(all > 10 && place > 1 && place <= all);
    for (uint32_t at = 1; at <= all + 3; at++) {
        if (!is_swept(at, place, stride))
            continue;
        if (!has_old)
            assert_int_equal(dp_restore_remove(world->server[0].store, true, &err), DP_OK);
        cases++;
        if (!ends_at(world, has_old, at))
            break;
    }
    print_message("%s: %u of %u calls\n", name, cases, all);
}

static void the_first_store(void **state)
{
    sweep(*state, "first", WORLD_AS(2), false, 31);
}

static void in_place_of_another(void **state)
{
    sweep(*state, "other", WORLD_AS(2), true, 41);
}

static void copied(void **state)
{
    no_links = true;
    sweep(*state, "copied", WORLD_AS(2), false, 37);
}

static void other_shards(void **state)
{
    sweep(*state, "split", WORLD_AS(3), true, 83);
}

static void a_full_disk(void **state)
{
    fails_once = true;
    sweep(*state, "full", WORLD_AS(2), false, 19);
}

int main(void)
{
#define KILL_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        KILL_TEST(the_first_store), KILL_TEST(in_place_of_another), KILL_TEST(copied),
        KILL_TEST(other_shards),    KILL_TEST(a_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
