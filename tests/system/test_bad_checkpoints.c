/* Checkpoints of another version or model, and places where one cannot be restored: each is named and refused with what to do, by `verify`
 * and by `restore`. (Damaged ones: test_all_or_none, tests/unit/server/checkpoint/test_verify.) Method: the checkpoint of tests/data/format-1, so nothing is trained. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct bad {
    struct dp_place *place;
    struct dp_place_cluster cluster;
    const char *conf, *from;
};

static const char *in(const struct bad *b, const char *name)
{
    return dp_place_text(b->place, "%s/checkpoint-000001/%s", b->from, name);
}

static void as(struct bad *b, const char *file, uint32_t shards, const char *model)
{
    b->cluster = (struct dp_place_cluster){.file = file, .model = model, .shards = shards, .top = "id = 77;"};
    b->conf = dp_place_conf(b->place, &b->cluster);
}

static struct bad unpacked(void **state)
{
    struct bad b = {.place = *state, .from = NULL};
    b.from = dp_place_path(b.place, "checkpoints");
    (void)dp_place_try(b.place, 0, "/bin/tar", "-xzf", DP_SOURCE "/tests/data/format-1/checkpoint.tar.gz",
                       "-C", dp_place_path(b.place, "."));
    as(&b, "c", 2, "fm:3");
    return b;
}

static struct dp_process *restore(const struct bad *b, int code, const char *flag)
{
    return dp_place_ended_in(
        b->place, code,
        dp_place_start(b->place, "downpour", "restore", "--from", b->from, "--cluster", b->conf, flag, NULL));
}

static void expect_refused_by_restore(const struct bad *b, const char *names)
{
    dp_place_says(restore(b, 2, NULL), names);
    assert_int_not_equal(access(dp_place_path(b->place, "%s-0", b->cluster.file), F_OK), 0);
    assert_int_not_equal(access(dp_place_path(b->place, "%s-0.restoring", b->cluster.file), F_OK), 0);
}

static void expect_refused(const struct bad *b, const char *names)
{
    dp_place_says(dp_place_try(b->place, 2, "downpour", "inspect", b->from, "--verify"), names);
    expect_refused_by_restore(b, names);
}

static void expect_good(const struct bad *b)
{
    (void)dp_place_try(b->place, 0, "downpour", "inspect", b->from, "--verify");
    (void)restore(b, 0, NULL);
    (void)dp_place_try(b->place, 0, "/bin/rm", "-r", dp_place_path(b->place, "%s-0", b->cluster.file));
}

static void move(const char *from, const char *to)
{
    if (rename(from, to) != 0)
        fail_msg("%s cannot be renamed to %s", from, to);
}

static void a_cluster_file_in_a_checkpoint(void **state)
{
    struct bad b = unpacked(state);
    dp_place_says(dp_place_try(b.place, 2, "downpour", "restore", "--from", b.from, "--cluster",
                               in(&b, "cluster.conf")),
                  "lies in a checkpoint");
}

static void another_version(void **state)
{
    struct bad b = unpacked(state);
    const char *manifest = in(&b, "manifest.json"), *kept = dp_place_path(b.place, "manifest");
    (void)dp_place_try(b.place, 0, "/bin/cp", manifest, kept);
    (void)dp_place_try(b.place, 0, "/bin/sed", "-i", "s/\"format\": *1\\b/\"format\":2/", manifest);
    expect_refused(&b, "format 2");
    dp_place_says(dp_place_try(b.place, 2, "downpour", "inspect", b.from), "format 2");
    move(kept, manifest);
    expect_good(&b);
}

static void other_tables(void **state)
{
    struct bad b = unpacked(state);
    as(&b, "other", 2, "mlp:64-8-10");
    expect_refused_by_restore(&b, "fm:3");
    expect_refused_by_restore(&b, "mlp:64-8-10");
}

static void where_it_cannot_be(void **state)
{
    struct bad b = unpacked(state);
    const char *mine = dp_place_path(b.place, "c-0/mine");
    assert_int_equal(mkdir(dp_place_path(b.place, "c-0"), 0777), 0);
    assert_int_equal(mkdir(mine, 0777), 0);
    dp_place_says(restore(&b, 2, "--overwrite"), mine);
    assert_int_equal(rmdir(mine), 0);
    (void)restore(&b, 0, NULL);
    struct dp_process *server = dp_place_server(b.place, b.conf, 0);
    dp_place_says(restore(&b, 2, "--overwrite"), "is in use by process");
    dp_place_stops_cleanly(server);
    dp_place_says(restore(&b, 2, NULL), "--overwrite");
    /* Of one server, without its other words. */
    (void)dp_place_try(b.place, 2, "downpour-server", "--cluster", b.conf, "--server", "0", "--overwrite");
    (void)dp_place_try(b.place, 2, "downpour-server", "--cluster", b.conf, "--server", "0", "--restore",
                       b.from, "--read-only");
}

int main(void)
{
#define BAD_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        BAD_TEST(a_cluster_file_in_a_checkpoint),
        BAD_TEST(another_version),
        BAD_TEST(other_tables),
        BAD_TEST(where_it_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
