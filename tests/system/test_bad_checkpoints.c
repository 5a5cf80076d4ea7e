/* Checkpoints that are not what they say, and places where one cannot be restored: each is named and refused with what to do, by `verify` and
 * by `restore`, and with that undone all is well again. Method: the checkpoint of tests/data/format-1, so nothing is trained. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <stdio.h>
#include <string.h>
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
    dp_place_says(dp_place_try(b->place, 2, "downpour", "verify", b->from), names);
    expect_refused_by_restore(b, names);
}

static void expect_good(const struct bad *b)
{
    (void)dp_place_try(b->place, 0, "downpour", "verify", b->from);
    (void)restore(b, 0, NULL);
    (void)dp_place_try(b->place, 0, "/bin/rm", "-r", dp_place_path(b->place, "%s-0", b->cluster.file));
}

static void move(const char *from, const char *to)
{
    if (rename(from, to) != 0)
        fail_msg("%s cannot be renamed to %s", from, to);
}

static void swap(const struct bad *b, const char *one, const char *other)
{
    const char *kept = dp_place_path(b->place, "kept");
    move(one, kept);
    move(other, one);
    move(kept, other);
}

/* The file of rows that comes first in the pool of store `nth`. */
static const char *pool_file(const struct bad *b, const char *nth)
{
    const char *find =
        dp_place_text(b->place, "find %s/files -name '*.sst-*' | sort | sed -n '%sp;%sq'", b->from, nth, nth);
    const char *out = dp_process_out(dp_place_try(b->place, 0, "/bin/sh", "-c", find));
    return dp_place_text(b->place, "%.*s", (int)strcspn(out, "\n"), out);
}

static void a_file_is_missing(void **state)
{
    struct bad b = unpacked(state);
    const char *kept = dp_place_path(b.place, "kept"), *pool = pool_file(&b, "1");
    const char *files[] = {in(&b, "ids"), in(&b, "register"), in(&b, "cluster.conf"),
                           in(&b, "tail-0001/journal-0000000000000001"), pool};
    for (uint32_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        move(files[i], kept);
        expect_refused(&b, files[i]);
        move(kept, files[i]);
    }
    expect_good(&b);
}

static void files_are_swapped(void **state)
{
    struct bad b = unpacked(state);
    const char *one = pool_file(&b, "1"), *other = pool_file(&b, "2");
    swap(&b, one, other);
    expect_refused(&b, one);
    swap(&b, one, other);
    swap(&b, in(&b, "tail-0000"), in(&b, "tail-0001"));
    expect_refused(&b, in(&b, "tail-0000/journal-0000000000000001"));
    swap(&b, in(&b, "tail-0000"), in(&b, "tail-0001"));
    swap(&b, in(&b, "ids"), in(&b, "steps"));
    expect_refused(&b, in(&b, "ids"));
    swap(&b, in(&b, "ids"), in(&b, "steps"));
    expect_good(&b);
}

static void there_are_too_many(void **state)
{
    struct bad b = unpacked(state);
    const char *more[] = {"mine", "tail-0000/journal-0000000000000002"};
    for (uint32_t i = 0; i < 2; i++) {
        (void)dp_place_try(b.place, 0, "/bin/cp", in(&b, "ids"), in(&b, more[i]));
        dp_place_says(dp_place_try(b.place, 2, "downpour", "verify", b.from), in(&b, more[i]));
        assert_int_equal(unlink(in(&b, more[i])), 0);
    }
    expect_good(&b);
}

static void another_version(void **state)
{
    struct bad b = unpacked(state);
    const char *manifest = in(&b, "manifest.json"), *kept = dp_place_path(b.place, "manifest");
    (void)dp_place_try(b.place, 0, "/bin/cp", manifest, kept);
    (void)dp_place_try(b.place, 0, "/bin/sed", "-i", "s/\"format\": *1\\b/\"format\":2/", manifest);
    expect_refused(&b, "format 2");
    dp_place_says(dp_place_try(b.place, 2, "downpour", "checkpoints", b.from), "format 2");
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
}

int main(void)
{
#define BAD_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        BAD_TEST(a_file_is_missing), BAD_TEST(files_are_swapped), BAD_TEST(there_are_too_many),
        BAD_TEST(another_version),   BAD_TEST(other_tables),      BAD_TEST(where_it_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
