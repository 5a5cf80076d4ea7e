/* A checkpoint restored. Goal: the restored shards have its rows, ids and register, whatever their number; a push of before is known,
 * and a new one is applied. Method: shards on RocksDB and real journals train and are killed; a checkpoint is made of what they
 * left; it is restored, and the rows' digest compared with that of the shards themselves. */
#include "common/base/bytes.h"
#include "common/model/mix.h"
#include "common/model/row.h"
#include "server/cache/cached_tables.h"
#include "server/control/register_file.h"
#include "server/layout.h"
#include "server/restore/restore_exchange.h"
#include "server/restore/restore_place.h"
#include "server/store/rocks_store.h"
#include "server/store/store_view.h"
#include "tests/lib/test.h"
#include "tests/unit/server/restore/restore_world.h"

#include "common/env/directory.h"
#include "common/env/read_only_disk.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int set_up(void **state)
{
    *state = world_new(2);
    return 0;
}

static int tear_down(void **state)
{
    world_free(*state);
    return 0;
}

/* The shards that own a key push it anew: its row changes by the rate times the gradient. */
static void expect_push_counts(struct world *world, uint64_t key, uint64_t number)
{
    uint32_t shards = dp_cluster_shards(&world->cluster);
    for (uint32_t i = 0; i < shards; i++) {
        struct live *live = world_live(world, i);
        bool own = dp_range_has(live->range, dp_mix(key));
        assert_true(live_push(live, &world->sgd, key, 1, 0, 1)); /* of before: known */
        assert_true(live_push(live, &world->sgd, key, 1, WORLD_PUSHES - 1, 1));
        assert_true(live_push(live, &world->sgd, key, 1, WORLD_ELSEWHERE, 1));
        float before = own ? live_value(live, &world->sgd, key) : 0;
        assert_false(live_push(live, &world->sgd, key, 1, number, 2));
        if (own)
            assert_true(live_value(live, &world->sgd, key) < before - 1.9f);
        assert_true(live_push(live, &world->sgd, key, 1, number, 2));
        live_close(&live, i % 2 ? LIVE_KILLED : LIVE_CLEAN);
        live = world_live(world, i); /* and it lasts */
        if (own)
            assert_true(live_value(live, &world->sgd, key) < before - 1.9f);
        live_close(&live, LIVE_CLEAN);
    }
}

static void expect_register(struct world *world)
{
    struct dp_disk disk;
    struct dp_error err = {0};
    struct dp_control_register_content content;
    assert_int_equal(dp_read_only_disk_open(world->server[0].store, &disk, &err), DP_OK);
    assert_int_equal(dp_control_register_file_read(&disk, true, &content, &err), DP_OK);
    dp_disk_close(&disk);
    assert_int_equal(content.count, 3);
    assert_string_equal(content.item[0]->name, "members");
    assert_string_equal(content.item[1]->name, "run/1/plan");
    assert_string_equal(content.item[2]->name, "zero");
    assert_true(content.id != 77);
    dp_control_register_content_clear(&content);
}

static void expect_layout(struct world *world)
{
    struct dp_layout layout = {.total = dp_cluster_shards(&world->cluster)};
    for (uint32_t i = 0; i < world->cluster.server_count; i++) {
        bool known = false;
        struct dp_error err = {0};
        layout.count = world->server[i].shards;
        assert_int_equal(dp_layout_check(world->server[i].store, &layout, false, &known, &err), DP_OK);
        assert_true(known);
        layout.first += layout.count;
    }
}

static void the_same_number_of_shards(void **state)
{
    struct world *world = *state;
    world_restore(world, "same", WORLD_AS(2));
    expect_layout(world);
    expect_register(world);
    world_expect_restored(world);
    expect_push_counts(world, 3, WORLD_PUSHES);
}

/* Servers without a journal could not replay one: the stores are whole when they are there. */
static void onto_durability_none(void **state)
{
    struct world *world = *state;
    struct dp_error err = {0};
    char path[700];
    world_cluster(world, "none", WORLD_AS(2));
    world->cluster.durability = DP_CLUSTER_NONE;
    assert_int_equal(world_restore_one(world, 0, false, &err), DP_OK);
    for (uint32_t i = 0; i < 2; i++) {
        struct dp_store_view *view = NULL;
        assert_int_equal(dp_store_view_open(world_shard(world, i, path), NULL, &view, &err), DP_OK);
        assert_int_equal(dp_store_view_own(view)->state, DP_STORE_VIEW_CLEAN);
        dp_store_view_close(&view);
    }
    expect_layout(world);
    world_expect_restored(world);
    expect_push_counts(world, 3, WORLD_PUSHES);
}

static void the_same_shards_on_other_servers(void **state)
{
    struct world *world = *state;
    world_restore(world, "two", WORLD_AS(1, 1));
    expect_layout(world);
    world_expect_restored(world);
}

static void more_shards_and_fewer(void **state)
{
    struct world *world = *state;
    world_restore(world, "more", WORLD_AS(1, 2));
    expect_layout(world);
    expect_register(world);
    world_expect_restored(world);
    expect_push_counts(world, 3, WORLD_PUSHES);
    expect_push_counts(world, 4, WORLD_PUSHES + 1);
    expect_push_counts(world, 9, WORLD_PUSHES + 2);
    world_digest(world, world->digest);
    /* 3 shards become 1. */
    for (uint32_t i = 0; i < 3; i++)
        (void)world_shard(world, i, world->made.shard[i]);
    world->made.shards = 3;
    world->made.number = 2;
    for (uint32_t number = 0; number < 3; number++)
        assert_int_equal(dp_push_ids_restore(world->ids, LIVE_STREAM, WORLD_PUSHES + number, DP_OK), DP_OK);
    made_checkpoint(&world->made);
    (void)snprintf(world->checkpoint, sizeof world->checkpoint, "%s/checkpoint-000002", world->directory);
    world_restore(world, "one", WORLD_AS(1));
    world_expect_restored(world);
    expect_push_counts(world, 3, WORLD_PUSHES + 3);
    expect_push_counts(world, 380, WORLD_PUSHES + 4);
}

/* A table came to one shard before the cut, and to the other one behind its link, whose tail has pushes to it all the same. */
static void a_table_that_a_link_lacks(void **state)
{
    struct world *world = *state;
    char early[512];
    const struct dp_table_spec late = world_table("late", 3, DP_OPT_SGD);
    world_cluster(world, "trained", WORLD_AS(2));
    for (uint32_t i = 0; i < 2; i++) {
        char path[700];
        (void)snprintf(world->made.shard[i], sizeof world->made.shard[i], "%.480s",
                       world_shard(world, i, path));
        struct live *live = world_live(world, i);
        live_table(live, &world->sgd);
        live_table(live, &world->adam);
        if (i == 0)
            live_table(live, &late);
        assert_false(live_push(live, &world->sgd, 0, WORLD_KEYS, 0, 1));
        live_close(&live, LIVE_CLEAN);
        if (i == 1) {
            (void)snprintf(early, sizeof early, "%.400s/early", world->directory);
            made_copy_rows(world->made.shard[1], early);
        }
        live = world_live(world, i);
        if (i == 1)
            live_table(live, &late);
        assert_false(live_push(live, &late, 0, WORLD_KEYS, 1, 1));
        live_close(&live, LIVE_KILLED);
    }
    world->made.link[1] = early;
    world->made.number = 2;
    made_checkpoint(&world->made);
    (void)snprintf(world->checkpoint, sizeof world->checkpoint, "%.400s/checkpoint-000002", world->directory);
    for (uint32_t as = 2; as <= 3; as++) {
        world_restore(world, as == 2 ? "late2" : "late3", as == 2 ? WORLD_AS(2) : WORLD_AS(3));
        for (uint32_t i = 0; i < as; i++) {
            struct live *live = world_live(world, i);
            for (uint64_t key = 0; key < 20; key++)
                if (dp_range_has(live->range, dp_mix(key)))
                    assert_true(live_value(live, &late, key) < -0.9f);
            live_close(&live, LIVE_CLEAN);
        }
    }
}

/* The ids of the restored stores are new: an old store is never taken for one of them. */
static void the_stores_are_others(void **state)
{
    struct world *world = *state;
    uint64_t ids[4] = {0};
    world_restore(world, "first", WORLD_AS(2));
    for (uint32_t i = 0; i < 4; i++) {
        struct dp_store_view *view = NULL;
        struct dp_error err = {0};
        char path[700];
        assert_int_equal(dp_store_view_open(i < 2 ? world_shard(world, i, path) : world->made.shard[i - 2],
                                            NULL, &view, &err),
                         DP_OK);
        ids[i] = dp_store_view_own(view)->id.id;
        assert_int_equal(dp_store_view_own(view)->id.generation, DP_GENERATION_FIRST + (i < 2));
        assert_true((dp_store_view_own(view)->id.history != 0) == (i < 2));
        assert_true(ids[i] != 0);
        if (i < 2)
            assert_true(dp_store_view_own(view)->id.register_id == 0 &&
                        dp_store_view_own(view)->id.before == 0);
        for (uint32_t other = 0; other < i; other++)
            assert_true(ids[i] != ids[other]);
        dp_store_view_close(&view);
    }
}

static struct dp_store_id id_of(struct world *world, uint32_t shard)
{
    struct dp_store_view *view = NULL;
    struct dp_error err = {0};
    char path[700];
    assert_int_equal(dp_store_view_open(world_shard(world, shard, path), NULL, &view, &err), DP_OK);
    struct dp_store_id id = dp_store_view_own(view)->id;
    dp_store_view_close(&view);
    return id;
}

/* One history for all servers of a restore, another one for the next restore. */
static void the_history_is_one_for_all_servers(void **state)
{
    struct world *world = *state;
    struct dp_error err = {0};
    uint64_t before = 0;
    world_cluster(world, "history", WORLD_AS(1, 2));
    world->history = NULL;
    assert_int_equal(world_restore_one(world, 0, false, &err), DP_ARGUMENT);
    assert_non_null(strstr(err.text, "--history"));
    static const char *const words[] = {"monday", "tuesday", "00000000000000ab"};
    for (size_t i = 0; i < 3; i++) {
        world->history = words[i];
        for (uint32_t server = 0; server < 2; server++)
            assert_int_equal(world_restore_one(world, server, true, &err), DP_OK);
        world_exchange(world);
        for (uint32_t shard = 0; shard < 3; shard++) {
            assert_int_equal(id_of(world, shard).generation, DP_GENERATION_FIRST + 1);
            assert_true(id_of(world, shard).history == id_of(world, 0).history);
        }
        assert_true(id_of(world, 0).history != before);
        before = id_of(world, 0).history;
    }
    /* One server takes another checkpoint than the others: whatever the word, it is not one of them. */
    world->made.number = 2;
    made_checkpoint(&world->made);
    (void)snprintf(world->checkpoint, sizeof world->checkpoint, "%s/checkpoint-000002", world->directory);
    char building[700];
    (void)snprintf(building, sizeof building, "%.600s.restoring", world->server[1].store);
    assert_int_equal(world_restore_one(world, 1, true, &err), DP_OK);
    assert_true(dp_restore_place_history(world->server[0].store) == before);
    assert_true(dp_restore_place_history(world->server[1].store) == before);
    assert_true(dp_restore_place_history(building) != 0 && dp_restore_place_history(building) != before);
    world_cluster(world, "alone", WORLD_AS(2)); /* it can draw one */
    world->history = NULL;
    assert_int_equal(world_restore_one(world, 0, false, &err), DP_OK);
    assert_true(id_of(world, 0).history != 0 && id_of(world, 0).history != before);
}

/* ---- tables that are left out */

/* The tail of each shard has a push to both tables. */
static void a_table_is_left_out(void **state)
{
    struct world *world = *state;
    char items[DP_DIGEST_TEXT], digest[DP_DIGEST_TEXT];
    struct dp_error err = {0};
    memcpy(items, world->items, sizeof items);
    static const uint32_t as[][4] = {{2, 0}, {1, 1, 0}, {1, 2, 0}, {1, 0}};
    for (size_t i = 0; i < sizeof as / sizeof as[0]; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "out%zu", i);
        world_cluster(world, name, as[i]);
        for (uint32_t s = 0; s < world->cluster.server_count; s++) {
            world->without = "weights,weights";
            if (world_restore_one(world, s, false, &err) != DP_OK)
                fail_msg("%s", err.text);
        }
        world_exchange(world);
        world_digest(world, digest);
        assert_int_equal(world->tables, 1);
        assert_string_equal(world->items, items);
        uint32_t shards = dp_cluster_shards(&world->cluster);
        for (uint32_t s = 0; s < shards; s++) {
            struct live *live = world_live(world, s);
            const struct dp_table_spec *const both[] = {&world->sgd, &world->adam, NULL};
            assert_true(live_push(live, &world->adam, 0, WORLD_KEYS, WORLD_PUSHES - 1, 1)); /* known */
            assert_true(live_push(live, &world->adam, 0, WORLD_KEYS, WORLD_ELSEWHERE, 1));
            live_table(live, &world->sgd); /* made again: it has no row of before */
            for (uint64_t key = 0; key < WORLD_KEYS; key++)
                if (dp_range_has(live->range, dp_mix(key)))
                    assert_true(live_value(live, &world->sgd, key) == 0);
            assert_false(live_push_tables(live, both, 0, WORLD_KEYS, WORLD_PUSHES, 1));
            live_close(&live, LIVE_KILLED);
            live = world_live(world, s);
            for (uint64_t key = 0; key < WORLD_KEYS; key++)
                if (dp_range_has(live->range, dp_mix(key)))
                    assert_in_range((int)(-1000 * live_value(live, &world->sgd, key)), 1000, 2000);
            live_close(&live, LIVE_CLEAN);
        }
    }
    world_restore(world, "again", WORLD_AS(2)); /* the checkpoint has it still */
    world_expect_restored(world);
    expect_push_counts(world, 3, WORLD_PUSHES);
}

static void all_tables_are_left_out(void **state)
{
    struct world *world = *state;
    char digest[DP_DIGEST_TEXT];
    struct dp_error err = {0};
    world_cluster(world, "empty", WORLD_AS(2));
    world->without = "weights,items";
    assert_int_equal(world_restore_one(world, 0, false, &err), DP_OK);
    world_digest(world, digest);
    assert_int_equal(world->tables, 0);
    struct live *live = world_live(world, 0);
    live_table(live, &world->sgd);
    assert_true(live_push(live, &world->sgd, 3, 1, WORLD_PUSHES - 1, 1));
    assert_false(live_push(live, &world->sgd, 3, 1, WORLD_PUSHES, 1));
    live_close(&live, LIVE_CLEAN);
}

/* As many tables as a shard can have, of which another shard lacks nearly all; and one more there. */
static void many_tables(void **state)
{
    struct world *world = *state;
    char digest[DP_DIGEST_TEXT], name[32];
    struct dp_error err = {0};
    world_cluster(world, "many", WORLD_AS(2));
    for (uint32_t i = 0; i < 2; i++) {
        char path[700];
        (void)snprintf(world->made.shard[i], sizeof world->made.shard[i], "%.480s",
                       world_shard(world, i, path));
        struct live *live = world_live(world, i);
        for (uint32_t t = 0; t < (i == 0 ? DP_CACHED_TABLES_MAX : 2); t++) {
            (void)snprintf(name, sizeof name, "%s%u", i == 1 && t == 1 ? "other" : "t", (unsigned)t);
            const struct dp_table_spec spec = world_table(name, 2, DP_OPT_SGD);
            live_table(live, &spec);
        }
        live_close(&live, LIVE_CLEAN);
    }
    world->made.number = 2;
    made_checkpoint(&world->made);
    (void)snprintf(world->checkpoint, sizeof world->checkpoint, "%.400s/checkpoint-000002", world->directory);
    for (uint32_t shards = 2; shards > 0; shards--) {
        (void)snprintf(name, sizeof name, "many%u", (unsigned)shards);
        world_cluster(world, name, (const uint32_t[]){shards, 0});
        assert_int_equal(world_restore_one(world, 0, false, &err), DP_UNSUPPORTED);
        assert_non_null(strstr(err.text, "have 1025 tables together"));
        world->without = "t1"; /* each source has all of them */
        assert_int_equal(world_restore_one(world, 0, false, &err), DP_OK);
        world_digest(world, digest);
        assert_int_equal(world->tables, DP_CACHED_TABLES_MAX);
        world->without = "other1,t3";
        assert_int_equal(world_restore_one(world, 0, true, &err), DP_OK);
        world_digest(world, digest);
        assert_int_equal(world->tables, DP_CACHED_TABLES_MAX - 1);
    }
}

/* One server has a table that another lacks: they are of two histories, and are not exchanged together. */
static void servers_that_differ_are_of_two_histories(void **state)
{
    struct world *world = *state;
    struct dp_error err = {0};
    static const char *const lists[] = {NULL, "items", "weights", "items,weights", "weights,items,weights"};
    uint64_t history[5];
    world_cluster(world, "differ", WORLD_AS(1, 1));
    for (size_t i = 0; i < 5; i++) {
        char building[700];
        world->without = lists[i];
        (void)snprintf(building, sizeof building, "%.600s.restoring", world->server[1].store);
        assert_int_equal(world_restore_one(world, 1, true, &err), DP_OK);
        history[i] = dp_restore_place_history(building);
        for (size_t k = 0; k < i; k++)
            assert_true((history[i] == history[k]) == (i == 4 && k == 3));
    }
    world->without = "items";
    assert_int_equal(world_restore_one(world, 0, true, &err), DP_OK);
    const char *const store[] = {world->server[0].store, world->server[1].store};
    assert_int_equal(dp_restore_exchange_all(store, 2, history[1], &err), DP_NOT_FOUND);
    assert_int_equal(access(store[0], F_OK), -1);
    const struct dp_restore_options exchange = {.checkpoint = world->checkpoint,
                                                .cluster = &world->cluster,
                                                .exchanges = true,
                                                .history = world->history,
                                                .without = "weights"};
    assert_int_equal(dp_restore(&exchange, &err), DP_NOT_FOUND); /* not what server 0 built */
    assert_int_equal(world_restore_one(world, 1, true, &err), DP_OK);
    world_exchange(world);
    assert_true(dp_restore_place_history(store[1]) == history[1]);
}

static void a_table_that_the_checkpoint_lacks_is_refused(void **state)
{
    struct world *world = *state;
    static const char *const lists[] = {
        "item",
        "weights,item",
        "",
        "items,",
        ",items",
        "items,,weights",
        "items,weights,this-name-is-longer-than-any-table-can-have-in-a-shard"};
    world_cluster(world, "lacks", WORLD_AS(2));
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct dp_error err = {0};
        world->without = lists[i];
        assert_int_equal(world_restore_one(world, 0, false, &err), DP_ARGUMENT);
        assert_non_null(strstr(err.text, "items, weights"));
        assert_true(!!strstr(err.text, "did you mean 'items'?") == (i < 2));
        assert_int_equal(access(world->server[0].store, F_OK), -1);
    }
}

/* ---- what is there */

static void expect_refused(struct world *world, bool overwrite, enum dp_status why, const char *text)
{
    struct dp_error err = {0};
    enum dp_status st = world_restore_one(world, 0, overwrite, &err);
    if (st != why || !strstr(err.text, text))
        fail_msg("%s: %s", dp_status_name((int)st), err.text);
}

static void expect_nothing_built(const struct world *world)
{
    char path[1300];
    (void)snprintf(path, sizeof path, "%s.restoring", world->server[0].store);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void a_directory_that_is_none_is_refused(void **state)
{
    struct world *world = *state;
    char path[512];
    world_cluster(world, "none", WORLD_AS(2));
    memcpy(path, world->checkpoint, sizeof path);
    (void)snprintf(world->checkpoint, sizeof world->checkpoint, "%s/trained-2", world->directory);
    expect_refused(world, false, DP_NOT_FOUND, "no checkpoint");
    (void)snprintf(world->checkpoint, sizeof world->checkpoint, "%s/making-0000000000001234",
                   world->directory);
    assert_int_equal(rename(path, world->checkpoint), 0);
    expect_refused(world, false, DP_NOT_FOUND, "no checkpoint");
    assert_int_equal(rename(world->checkpoint, path), 0);
    memcpy(world->checkpoint, path, sizeof path);
    (void)snprintf(world->checkpoint, sizeof world->checkpoint, "%s/", world->directory);
    world_restore(world, "none", WORLD_AS(2)); /* the last one of the directory */
    world_expect_restored(world);
}

/* Two checkpoints that were moved over each other: the older one's rows would be restored as the later one. */
static void another_number_than_its_own_is_refused(void **state)
{
    struct world *world = *state;
    char path[512];
    world_cluster(world, "moved", WORLD_AS(2));
    memcpy(path, world->checkpoint, sizeof path);
    (void)snprintf(world->checkpoint, sizeof world->checkpoint, "%s/checkpoint-000099", world->directory);
    assert_int_equal(rename(path, world->checkpoint), 0);
    expect_refused(world, false, DP_CORRUPT, "by its manifest");
    expect_refused(world, false, DP_CORRUPT, strrchr(path, '/') + 1);
    expect_nothing_built(world);
    assert_int_equal(rename(world->checkpoint, path), 0);
    memcpy(world->checkpoint, path, sizeof path);
    world_restore(world, "moved", WORLD_AS(2));
    world_expect_restored(world);
}

int main(void)
{
#define RESTORE_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        RESTORE_TEST(the_same_number_of_shards),
        RESTORE_TEST(onto_durability_none),
        RESTORE_TEST(the_same_shards_on_other_servers),
        RESTORE_TEST(more_shards_and_fewer),
        RESTORE_TEST(a_table_that_a_link_lacks),
        RESTORE_TEST(the_stores_are_others),
        RESTORE_TEST(the_history_is_one_for_all_servers),
        RESTORE_TEST(a_table_is_left_out),
        RESTORE_TEST(all_tables_are_left_out),
        RESTORE_TEST(many_tables),
        RESTORE_TEST(servers_that_differ_are_of_two_histories),
        RESTORE_TEST(a_table_that_the_checkpoint_lacks_is_refused),
        RESTORE_TEST(a_directory_that_is_none_is_refused),
        RESTORE_TEST(another_number_than_its_own_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
