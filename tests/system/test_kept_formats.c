/* Checkpoints and stores of earlier builds, in tests/data/format-N: each is verified, restored onto one and three shards, opened, with its
 * journal replayed, and has the rows whose digest was written down when it was made (tests/data/README.md). */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FORMATS_MOST 99u

struct kept {
    struct dp_place *place;
    uint32_t number; /* tests/data/format-N */
    struct dp_place_cluster cluster;
    const char *conf;
};

static const char *data(const struct kept *k, const char *name)
{
    return dp_place_text(k->place, DP_SOURCE "/tests/data/format-%u/%s", (unsigned)k->number, name);
}

/* In a directory of its own below the place. */
static const char *unpack(const struct kept *k, const char *name)
{
    const char *to = dp_place_path(k->place, "format-%u", (unsigned)k->number);
    (void)dp_place_try(k->place, 0, "/bin/mkdir", "-p", to);
    (void)dp_place_try(k->place, 0, "/bin/tar", "-xzf", data(k, name), "-C", to);
    return to;
}

static void as(struct kept *k, const char *file, uint32_t shards)
{
    k->cluster = (struct dp_place_cluster){
        .file = file, .model = "fm:3", .shards = shards, .top = "id = 77; journal_bytes = \"16MiB\";"};
    k->conf = dp_place_conf(k->place, &k->cluster);
}

static struct dp_process *open_and_close(struct kept *k)
{
    struct dp_process *server = dp_place_server(k->place, k->conf, 0);
    dp_place_stops_cleanly(server);
    return server;
}

static void expect_digest(struct kept *k, const char *name)
{
    const char *want = dp_place_read(k->place, data(k, name), NULL);
    const char *got = dp_place_digest(k->place, dp_place_path(k->place, "%s-0", k->cluster.file), NULL);
    if (strncmp(got + 1, want, strlen(want)) != 0)
        fail_msg("format %u, %s: expected\n%sgot%s", (unsigned)k->number, name, want, got);
}

static void read_checkpoint(struct kept *k)
{
    const char *from = dp_place_text(k->place, "%s/checkpoints", unpack(k, "checkpoint.tar.gz"));
    dp_place_says(dp_place_try(k->place, 0, "downpour", "inspect", from, "--verify"),
                  "as their manifests say");
    for (uint32_t shards = 1; shards <= 3; shards++) { /* 2: as it was */
        as(k, dp_place_text(k->place, "restored-%u-%u", (unsigned)k->number, (unsigned)shards), shards);
        (void)dp_place_try(k->place, 0, "downpour", "restore", "--from", from, "--cluster", k->conf);
        (void)open_and_close(k);
        expect_digest(k, "checkpoint.digest");
    }
}

static void read_store(struct kept *k)
{
    const char *from = dp_place_text(k->place, "%s/trained", unpack(k, "store.tar.gz"));
    as(k, dp_place_text(k->place, "store-%u", (unsigned)k->number), 2);
    assert_int_equal(rename(from, dp_place_path(k->place, "%s-0", k->cluster.file)), 0);
    struct dp_process *server = open_and_close(k);
    dp_place_says(server, "was not closed cleanly: recovered in");
    expect_digest(k, "store.digest");
}

static void each_format_is_read(void **state)
{
    struct kept k = {.place = *state, .number = 1};
    uint32_t read = 0;
    for (; k.number <= FORMATS_MOST && access(data(&k, ""), F_OK) == 0; k.number++, read++) {
        read_checkpoint(&k);
        read_store(&k);
    }
    assert_true(read > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_format_is_read, dp_place_setup, dp_place_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
