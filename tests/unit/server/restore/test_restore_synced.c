/* What a restore built is durable before it takes the store's place. Goal: every name and every byte that our own code made is synced
 * then; the exchange is, when the restore says that it is done. (RocksDB's own files: tests/fault.) */
#include "tests/lib/test.h"
#include "tests/lib/unsynced.h"
#include "tests/unit/server/restore/restore_world.h"

static void restores(struct world *world, bool overwrite)
{
    struct dp_error err = {0};
    dp_unsynced_begin(world->directory, NULL);
    if (world_restore_one(world, 0, overwrite, &err) != DP_OK)
        fail_msg("%s", err.text);
    assert_true(dp_unsynced_expect_none() > 0);
}

static void as(const char *name, const uint32_t *shards)
{
    struct world *world = world_new(2);
    world_cluster(world, name, shards);
    restores(world, false);
    restores(world, true); /* in place of another */
    world_expect_restored(world);
    world_free(world);
}

static void the_same_number_of_shards(void **state)
{
    as("same", WORLD_AS(2));
}

static void another_number_of_shards(void **state)
{
    as("other", WORLD_AS(3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_number_of_shards),
        cmocka_unit_test(another_number_of_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
