/* downpour inspect on the stores of real servers: clean, killed and in use; nothing is changed. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <ftw.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* One worker whose order is fixed: each push is answered before the next pull. */
static struct dp_place_cluster fixed_order(const char *file, uint32_t servers, uint32_t shards)
{
    return (struct dp_place_cluster){.file = file,
                                     .servers = servers,
                                     .shards = shards,
                                     .epochs = 6,
                                     .batch = 8,
                                     .timeout_ms = 60000,
                                     .training = "overlap = false; pushes_max = 1;",
                                     .top = "journal_bytes = \"16MiB\";"};
}

/* Names, bytes and times of all files, folded. */
static uint64_t print;

static int fold(const char *path, const struct stat *found, int kind, struct FTW *walk)
{
    uint64_t one =
        (uint64_t)found->st_mtim.tv_nsec * 31 + (uint64_t)found->st_mtim.tv_sec + (uint64_t)found->st_size;
    size_t size = 0;
    char *bytes = S_ISREG(found->st_mode) ? dp_process_slurp(path, &size) : NULL;
    for (const char *c = path; *c; c++)
        one = one * UINT64_C(1099511628211) + (unsigned char)*c;
    for (size_t i = 0; i < size; i++)
        one = one * UINT64_C(1099511628211) + (unsigned char)bytes[i];
    free(bytes);
    print ^= one;
    return 0;
}

static uint64_t print_of(const char *directory)
{
    print = 0;
    assert_int_equal(nftw(directory, fold, 8, FTW_PHYS), 0);
    return print;
}

static void a_clean_store_is_shown_whole_and_not_changed(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = fixed_order("c", 1, 2);
    const char *conf = dp_place_conf(place, &cluster), *store = dp_place_path(place, "c-0");
    struct dp_process *server = dp_place_server(place, conf, 0);
    dp_place_ended(dp_place_worker(place, conf, 0), 0);
    dp_place_stops_cleanly(server);
    uint64_t before = print_of(store);
    struct dp_process *inspect =
        dp_place_try(place, 0, "downpour", "inspect", store, "--verify", "--digest", "--all");
    const char *const texts[] = {"c-0/shard-0000",
                                 "c-0/shard-0001",
                                 "clean: ",
                                 "mlp.w1",
                                 "adam",
                                 "he",
                                 "journal     none: the rows have all pushes that its opening 1 took",
                                 "training",
                                 "verified: no damage"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        dp_place_says(inspect, texts[i]);
    inspect = dp_place_try(place, 0, "downpour", "inspect", "--json", "--digest", store);
    const char *out = dp_process_out(inspect), *json = dp_place_file(place, "out.json", out, strlen(out));
    assert_true(dp_place_number(place, json, "stores.0.tables.0.rows") >= 1);
    assert_true(dp_place_number(place, json, "stores.1.rows_lsn") > 0);
    assert_true(dp_place_number(place, json, "stores.0.streams.0.low") > 0);
    assert_true(dp_place_number(place, json, "stores.0.damages") == 0);
    assert_true(dp_place_number(place, json, "stores.0.journal.opening") == 1);
    assert_true(dp_place_number(place, json, "stores.0.journal.durable_lsn") > 0);
    inspect = dp_place_try(place, 0, "downpour", "inspect", store, "--rows", "mlp.w1", "--key", "0", "--key",
                           "999999");
    dp_place_says(inspect, "key 0  step ");
    dp_place_says(inspect, "weights ");
    dp_place_says(inspect, "key 999999  is not stored");
    assert_true(print_of(store) == before);
}

static void a_store_in_use_and_a_killed_one_are_told(void **state)
{
    struct dp_place *place = *state;
    struct dp_place_cluster cluster = fixed_order("c", 1, 1);
    cluster.epochs = 100000;
    const char *conf = dp_place_conf(place, &cluster), *store = dp_place_path(place, "c-0");
    struct dp_process *server = dp_place_server(place, conf, 0), *worker = dp_place_worker(place, conf, 0);
    dp_place_awaits(worker, "epoch 3 of");
    struct dp_process *inspect = dp_place_try(place, 0, "downpour", "inspect", store);
    dp_place_says(inspect, "in use      by process ");
    inspect = dp_place_try(place, 2, "downpour", "inspect", store, "--digest");
    dp_place_says(inspect, "is in use: its digest is not final");
    dp_place_says(inspect, "--as-stored");
    inspect = dp_place_try(place, 0, "downpour", "inspect", store, "--digest", "--as-stored");
    dp_place_says(inspect, "of all ");
    dp_process_signal(worker, SIGKILL);
    dp_place_ended(worker, -SIGKILL);
    dp_process_signal(server, SIGKILL);
    dp_place_ended(server, -SIGKILL);
    inspect = dp_place_try(place, 0, "downpour", "inspect", store, "--verify");
    dp_place_says(inspect, "open-journaled: ");
    dp_place_says(inspect, "to replay   ");
    assert_null(strstr(dp_process_out(inspect), "to replay   0 records"));
    inspect = dp_place_try(place, 2, "downpour", "inspect", store, "--digest");
    dp_place_says(inspect, "not closed cleanly, and its journal has more: its digest is not final");
    server = dp_place_server(place, conf, 0);
    dp_place_stops_cleanly(server);
    (void)dp_place_digest(place, store, NULL);
}

static void what_is_no_store_and_bad_flags_are_told(void **state)
{
    struct dp_place *place = *state;
    struct dp_process *inspect = dp_place_try(place, 2, "downpour", "inspect", dp_place_path(place, "."));
    dp_place_says(inspect, "is no store");
    dp_place_says(inspect, "CURRENT");
    inspect = dp_place_try(place, 2, "downpour", "inspect", dp_place_path(place, "nowhere"));
    dp_place_says(inspect, "No such file");
    inspect = dp_place_try(place, 2, "downpour", "inspect");
    dp_place_says(inspect, "directory of a store is required");
    inspect = dp_place_try(place, 2, "downpour", "inspect", dp_place_path(place, "."), "--verfy");
    dp_place_says(inspect, "--verify");
    inspect = dp_place_try(place, 2, "downpour", "inspect", dp_place_path(place, "."), "--key", "1");
    dp_place_says(inspect, "--rows");
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_clean_store_is_shown_whole_and_not_changed),
        TEST(a_store_in_use_and_a_killed_one_are_told),
        TEST(what_is_no_store_and_bad_flags_are_told),
    };
    return cmocka_run_group_tests_name("inspect", tests, NULL, NULL);
}
