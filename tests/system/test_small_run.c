/* A run of a few hundred weights takes little disk: while it trains, since journals grow as they are needed, and after its end, since a
 * store that was closed cleanly keeps none. */

#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define WEIGHTS    300u
#define AFTER_MAX  (1000u * 1000u)
#define DURING_MAX ((uint64_t)5 * 1000u * 1000u) /* a shard: 1 and 2 MiB of journal, 1.2 of RocksDB */

static uint64_t taken;
static uint32_t segments;

static int add(const char *path, const struct stat *found, int kind, struct FTW *walk)
{
    taken += (uint64_t)found->st_blocks * 512;
    segments += strncmp(path + walk->base, "journal-", 8) == 0;
    return 0;
}

static uint64_t size_of(const char *directory)
{
    taken = segments = 0;
    assert_int_equal(nftw(directory, add, 8, FTW_PHYS), 0);
    return taken;
}

static const char *data(struct dp_place *place)
{
    char *text = malloc(WEIGHTS * 32), *at = text;
    assert_non_null(text);
    for (uint32_t i = 1; i < WEIGHTS; i++)
        at += snprintf(at, 32, "%u %u:0.5 %u:1\n", i % 2, i, WEIGHTS);
    const char *path = dp_place_file(place, "train.libsvm", text, (size_t)(at - text));
    free(text);
    return path;
}

static void a_small_run_leaves_little(void **state)
{
    struct dp_place *place = *state;
    const char *train = data(place), *run = dp_place_path(place, "run");
    for (uint32_t time = 0; time < 3; time++) {
        (void)dp_place_try(place, 0, "downpour", "run", "--dir", run, "--servers", "2", "--workers", "1",
                           "--model", "logistic", "--train", train, "--epochs", "2", time ? NULL : "--fresh");
        uint64_t bytes = size_of(run);
        print_message("after run %u: %llu bytes\n", time + 1, (unsigned long long)bytes);
        assert_int_equal(segments, 0);
        assert_in_range(bytes, 1, AFTER_MAX);
    }
    (void)dp_place_run_digest(place, dp_place_path(place, "run"));
}

static void a_small_store_takes_little_while_it_is_served(void **state)
{
    struct dp_place *place = *state;
    const char *train = data(place);
    struct dp_place_cluster cluster = {.shards = 4, .model = "logistic", .train = train, .test = train};
    const char *conf = dp_place_conf(place, &cluster), *store = dp_place_path(place, "c-0");
    struct dp_process *server = dp_place_server(place, conf, 0);
    dp_place_ended(dp_place_worker(place, conf, 0), 0);
    uint64_t bytes = size_of(store);
    print_message("4 shards: %llu bytes, %u segments\n", (unsigned long long)bytes, segments);
    assert_int_equal(segments, 8);
    assert_in_range(bytes, 1, 4 * DURING_MAX);
    dp_place_stops_cleanly(server);
    bytes = size_of(store);
    assert_int_equal(segments, 0);
    assert_in_range(bytes, 1, AFTER_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_small_run_leaves_little, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(a_small_store_takes_little_while_it_is_served, dp_place_setup,
                                        dp_place_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
