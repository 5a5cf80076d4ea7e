/* Restores of several servers that are killed. Goal: wherever the command or a server's start ends, all servers that start afterwards
 * have their old stores, or all have the restored ones; the old ones are there until all have exchanged.
 * Method: stores of two files instead of rows; the real places, marks and renames. One of the file calls is the last (all behind it
 * fail, as in a process that is dead); each call is tried. What comes next is the start of the servers, in each order, or another
 * restore, which is killed, too; the drawn schedules (DP_TEST_SEEDS) go on for several such rounds. A loss of power: no server is
 * exchanged before the exchange of the one before is synced (checked in each run). */
#include "common/env/directory.h"
#include "common/model/mix.h"
#include "server/control/register_file.h"
#include "server/restore/restore_exchange.h"
#include "server/restore/restore_files.h"
#include "server/restore/restore_place.h"
#include "tests/lib/test.h"
#include "tests/lib/timeouts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SERVERS_MAX 3u
#define OLD         UINT64_C(1)

/* ---- calls that fail */

static uint32_t calls, fails_at; /* 0: none fails */
static bool ends_there;          /* it and all behind it; else that one alone */
static char unsynced[512];       /* store that was renamed last, and whose directory is not synced yet */

static bool fails(void)
{
    calls++;
    if (fails_at == 0 || calls < fails_at || (!ends_there && calls > fails_at))
        return false;
    errno = EIO;
    return true;
}

#define WRAPPED(type, name, parameters, arguments)                                                           \
    type __real_##name parameters;                                                                           \
    type __wrap_##name parameters;                                                                           \
    type __wrap_##name parameters                                                                            \
    {                                                                                                        \
        return fails() ? -1 : __real_##name arguments;                                                       \
    }
WRAPPED(int, unlink, (const char *path), (path))
WRAPPED(int, rmdir, (const char *path), (path))
WRAPPED(int, mkdir, (const char *path, mode_t mode), (path, mode))

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    if (fails())
        return -1;
    unsynced[0] = '\0';
    return __real_fsync(fd);
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
    const char *end = strrchr(from, '.');
    bool is_exchange = end && strcmp(end, ".restoring") == 0;
    if (fails())
        return -1;
    if (is_exchange && unsynced[0])
        fail_msg("%s is exchanged, and the exchange of %s may be lost with the power", to, unsynced);
    if (is_exchange)
        (void)snprintf(unsynced, sizeof unsynced, "%s", to);
    return __real_rename(from, to);
}

/* ---- a cluster */

struct cluster {
    char directory[256], store[SERVERS_MAX][300];
    uint32_t servers;
    uint64_t history; /* of the last restore */
    bool has_old;
};

static bool is_linked; /* the stores lie elsewhere, and links lead to them */

static void put(const char *directory, const char *name, const char *text)
{
    char path[1400];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
}

/* What a test can tell a store by: its layout's file names the history. */
static void fill(const char *directory, uint64_t history, bool is_first)
{
    char shard[1400], text[32];
    (void)snprintf(shard, sizeof shard, "%s/shard-0000", directory);
    (void)__real_mkdir(directory, 0777);
    assert_int_equal(__real_mkdir(shard, 0777), 0);
    put(shard, "CURRENT", "MANIFEST-1\n");
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)history);
    put(directory, "layout", text);
    if (is_first)
        put(directory, DP_REGISTER_FILE, "register");
}

/* 0: no store. */
static uint64_t version_of(const char *store)
{
    char path[400], text[32] = "";
    (void)snprintf(path, sizeof path, "%s/layout", store);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    (void)!fgets(text, sizeof text, file);
    (void)fclose(file);
    (void)snprintf(path, sizeof path, "%s/shard-0000/CURRENT", store);
    if (access(path, F_OK) != 0)
        fail_msg("%s is a part of a store", store);
    return strtoull(text, NULL, 10);
}

static void link_store(const struct cluster *c, uint32_t server)
{
    char disk[300], text[32];
    (void)snprintf(disk, sizeof disk, "%.250s/disk-%u", c->directory, (unsigned)server);
    (void)snprintf(text, sizeof text, "disk-%u/store/", (unsigned)server);
    assert_int_equal(__real_mkdir(disk, 0777), 0);
    assert_int_equal(symlink(text, c->store[server]), 0);
    if (c->has_old) {
        (void)snprintf(disk, sizeof disk, "%.250s/disk-%u/store", c->directory, (unsigned)server);
        assert_int_equal(__real_mkdir(disk, 0777), 0);
    }
}

static void begin(struct cluster *c, uint32_t servers, bool has_old)
{
    *c = (struct cluster){.servers = servers, .has_old = has_old, .history = OLD};
    fails_at = 0;
    unsynced[0] = '\0';
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(c->directory, sizeof c->directory, "%.200s/exchange-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(c->directory));
    for (uint32_t i = 0; i < servers; i++) {
        (void)snprintf(c->store[i], sizeof c->store[i], "%.250s/store-%u", c->directory, (unsigned)i);
        if (is_linked)
            link_store(c, i);
        if (has_old)
            fill(c->store[i], OLD, i == 0);
    }
}

static void end(struct cluster *c)
{
    struct dp_error err = {0};
    fails_at = 0;
    assert_int_equal(dp_directory_remove(c->directory, true, 0, &err), DP_OK);
}

static void list(const struct cluster *c, const char *store[SERVERS_MAX])
{
    for (uint32_t i = 0; i < c->servers; i++)
        store[i] = c->store[i];
}

static enum dp_status build(const struct cluster *c, uint32_t server, struct dp_error *err)
{
    struct dp_restore_place place = {.lock = -1};
    enum dp_status st = dp_restore_exchange_settle(c->store[server], err);
    if (st == DP_OK)
        st = dp_restore_place_begin(&place, c->store[server], true, err);
    if (st == DP_OK) {
        fill(place.building, c->history, server == 0);
        st = dp_restore_place_built(&place, c->history, err);
    }
    dp_restore_place_give_up(&place);
    return st;
}

/* As the command does it, which ends at the call `at`. */
static enum dp_status restore(struct cluster *c, uint32_t at)
{
    const char *store[SERVERS_MAX];
    struct dp_error err = {0};
    list(c, store);
    c->history++;
    calls = 0;
    fails_at = at;
    unsynced[0] = '\0';
    enum dp_status st = dp_restore_exchange_complete(store, c->servers, &err);
    for (uint32_t i = 0; st == DP_OK && i < c->servers; i++)
        st = build(c, i, &err);
    if (st == DP_OK)
        st = dp_restore_exchange_all(store, c->servers, c->history, &err);
    if (st == DP_OK)
        dp_restore_exchange_clean(store, c->servers);
    else
        dp_restore_exchange_take_back(store, c->servers, c->history);
    fails_at = 0;
    return st;
}

static enum dp_status ask(void *context, uint64_t *history, struct dp_error *err)
{
    const struct cluster *c = context;
    *history = version_of(c->store[0]);
    return DP_OK;
}

static enum dp_status start(struct cluster *c, uint32_t server, struct dp_error *err)
{
    const struct dp_restore_start it = {
        .store = c->store[server], .is_first = server == 0, .ask = ask, .context = c};
    return dp_restore_exchange_start(&it, err);
}

/* All start; one that asks the first server waits for it. Each is killed once at a call `at` of its start; 0: none is. */
static void start_all(struct cluster *c, uint32_t at)
{
    for (uint32_t i = 0; i < c->servers; i++) {
        struct dp_error err = {0};
        enum dp_status st = DP_OK;
        for (uint32_t tries = at ? 0 : 1; tries < 2; tries++) {
            calls = 0;
            fails_at = tries == 0 ? at : 0;
            unsynced[0] = '\0';
            st = start(c, i, &err);
            fails_at = 0;
        }
        if (st == DP_UNCLEAN && !c->has_old && version_of(c->store[0]) == 0)
            return; /* none had a store: the restore is to be run again */
        if (st != DP_OK)
            fail_msg("server %u does not start: %s", (unsigned)i, err.text);
    }
    for (uint32_t i = 1; i < c->servers; i++)
        if (version_of(c->store[i]) != version_of(c->store[0]))
            fail_msg("a mixture: server 0 has %llu, server %u has %llu",
                     (unsigned long long)version_of(c->store[0]), (unsigned)i,
                     (unsigned long long)version_of(c->store[i]));
    if (c->has_old)
        assert_true(version_of(c->store[0]) >= OLD);
}

static void expect_no_mixture(struct cluster *c, uint32_t at)
{
    start_all(c, at);
    /* And the next one takes place. */
    assert_int_equal(restore(c, 0), DP_OK);
    start_all(c, 0);
    assert_true(version_of(c->store[0]) == c->history);
    for (uint32_t i = 0; i < c->servers; i++) {
        char path[400];
        for (size_t left = 0; left < 2; left++) {
            (void)snprintf(path, sizeof path, "%s%s", c->store[i], left ? ".before" : ".restoring");
            if (access(path, F_OK) == 0)
                fail_msg("%s is left", path);
        }
    }
}

/* ---- each call */

static void sweep(uint32_t servers, bool has_old, bool ends)
{
    struct cluster c;
    uint32_t at = 1;
    for (bool came = true; came; at++) {
        begin(&c, servers, has_old);
        ends_there = ends;
        enum dp_status st = restore(&c, at);
        came = calls >= at;
        if (!came)
            assert_int_equal(st, DP_OK);
        ends_there = true;
        expect_no_mixture(&c, at % 7);
        end(&c);
    }
    assert_true(at > 8);
}

static void killed(void **state)
{
    for (uint32_t servers = 1; servers <= SERVERS_MAX; servers++) {
        sweep(servers, true, true);
        sweep(servers, false, true);
    }
}

/* Between the two renames the link leads nowhere. */
static void killed_behind_links(void **state)
{
    is_linked = true;
    for (uint32_t servers = 1; servers < SERVERS_MAX; servers++) {
        sweep(servers, true, true);
        sweep(servers, false, true);
    }
    is_linked = false;
}

static void one_call_fails(void **state)
{
    for (uint32_t servers = 2; servers <= SERVERS_MAX; servers++) {
        sweep(servers, true, false);
        sweep(servers, false, false);
    }
}

/* Server 1 is on another machine. The first server has exchanged; a second restore there is killed before it has built, and server 1
 * starts: it follows with the whole store that the first restore built, or stays at its own. */
static void built_again(void **state)
{
    bool came = true;
    for (uint32_t at = 1; came; at++) {
        struct cluster c;
        struct dp_error err = {0};
        begin(&c, 2, true);
        c.history++;
        assert_int_equal(build(&c, 0, &err), DP_OK);
        assert_int_equal(build(&c, 1, &err), DP_OK);
        const char *first[] = {c.store[0]};
        assert_int_equal(dp_restore_exchange_all(first, 1, c.history, &err), DP_OK);
        calls = 0;
        fails_at = at;
        ends_there = true;
        (void)build(&c, 1, &err);
        came = calls >= at;
        fails_at = 0;
        assert_int_equal(start(&c, 1, &err), DP_OK);
        assert_true(version_of(c.store[1]) == OLD || version_of(c.store[1]) == c.history);
        end(&c);
    }
}

/* A directory STORE.before that the user made: of a store that no restore has replaced, or with a file of the user's in it. */
static void before_of_the_user(void **state)
{
    struct cluster c;
    char before[400], file[500];
    for (uint32_t i = 0; i < 4; i++) {
        begin(&c, 2, true);
        (void)snprintf(before, sizeof before, "%s.before", c.store[i % 2]);
        bool is_restored = i >= 2;
        if (is_restored)
            assert_int_equal(restore(&c, 0), DP_OK);
        assert_int_equal(__real_mkdir(before, 0777), 0);
        put(before, is_restored ? "notes" : "layout", "mine");
        uint64_t there = version_of(c.store[0]);
        assert_int_equal(restore(&c, 0), DP_EXISTS);
        (void)snprintf(file, sizeof file, "%s/%s", before, is_restored ? "notes" : "layout");
        assert_int_equal(access(file, F_OK), 0);
        start_all(&c, 0);
        assert_int_equal(version_of(c.store[0]), there);
        end(&c);
    }
}

/* It was killed while a checkpoint was made, and while it noted that. */
static void the_first_server_has_a_note(void **state)
{
    (void)state;
    struct cluster c;
    begin(&c, 2, true);
    put(c.store[0], "checkpoint-order", "0000000000000abc /to\n");
    put(c.store[0], "checkpoint-order.new-7-000000001", "");
    assert_int_equal(restore(&c, 0), DP_OK);
    end(&c);
}

/* ---- drawn schedules */

static uint32_t draw(uint64_t *random, uint32_t below)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*random >> 33) % below;
}

static void schedule(uint64_t seed)
{
    struct cluster c;
    uint64_t random = dp_mix(seed);
    begin(&c, 1 + draw(&random, SERVERS_MAX), true);
    for (uint32_t round = 0; round < 4; round++) {
        ends_there = draw(&random, 4) != 0;
        (void)restore(&c, 1 + draw(&random, 90));
        ends_there = true;
        if (draw(&random, 2) == 0)
            start_all(&c, draw(&random, 9));
    }
    expect_no_mixture(&c, 0);
    end(&c);
}

static void drawn(void **state)
{
    const char *seeds = getenv("DP_TEST_SEEDS"), *seed = getenv("DP_TEST_SEED");
    uint64_t count = seeds ? strtoull(seeds, NULL, 10) : 300 / DP_PATIENCE;
    if (seed) {
        schedule(strtoull(seed, NULL, 10));
        return;
    }
    for (uint64_t i = 1; i <= count; i++) {
        print_message("seed %llu\r", (unsigned long long)i);
        schedule(i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed),
        cmocka_unit_test(killed_behind_links),
        cmocka_unit_test(one_call_fails),
        cmocka_unit_test(built_again),
        cmocka_unit_test(before_of_the_user),
        cmocka_unit_test(the_first_server_has_a_note),
        cmocka_unit_test(drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
