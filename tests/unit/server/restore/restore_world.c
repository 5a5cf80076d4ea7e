#include "tests/unit/server/restore/restore_world.h"

#include "common/base/bytes.h"
#include "common/model/stream.h"
#include "server/control/register.h"
#include "server/durable/table_mark.h"
#include "server/inspect/inspect_view.h"
#include "server/restore/restore_exchange.h"
#include "server/restore/restore_place.h"
#include "server/store/rocks_store.h"
#include "tests/lib/test.h"
#include "tests/unit/server/store/form.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the cluster that trained */

static void make_register(const char *directory)
{
    struct dp_disk disk;
    struct dp_error err = {0};
    struct dp_control_register *values = NULL;
    struct dp_control_register_entry now;
    static const char *const names[] = {"members", "run/1/plan", "stores", "zero"};
    bool made = false;
    assert_int_equal(dp_disk_open(directory, &disk, &err), DP_OK);
    const struct dp_control_register_options options = {.disk = &disk, .new_id = 77, .create = true};
    assert_int_equal(dp_control_register_open(&options, &values, &made, &err), DP_OK);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct dp_control_register_change change = {
            .name = names[i], .nonce = i + 1, .bytes = names[i], .size = strlen(names[i])};
        assert_int_equal(dp_control_register_set(values, &change, &now, &err), DP_OK);
    }
    dp_control_register_close(&values);
    dp_disk_close(&disk);
}

static void train(struct world *world, const char *store, uint32_t shard, uint32_t from, uint32_t upto,
                  enum live_end end)
{
    struct live *live = live_open(store, shard, world->made.shards);
    if (from == 0) {
        live_table(live, &world->sgd);
        live_table(live, &world->adam);
    }
    for (uint32_t number = from; number < upto; number++) {
        const bool is_last = number == WORLD_PUSHES - 1; /* in the tail: to both tables */
        const struct dp_table_spec *const specs[] = {number % 2 ? &world->sgd : &world->adam,
                                                     is_last ? &world->adam : NULL, NULL};
        assert_false(
            live_push_tables(live, specs, number * 7 % 50, WORLD_KEYS - 50, number, 0.5f + (float)number));
    }
    live_close(&live, end);
}

/* It goes on after the checkpoint, which tells the rows of then. */
static void as_trained(struct world *world)
{
    const uint32_t trained[] = {world->made.shards, 0};
    char store[512];
    (void)snprintf(store, sizeof store, "trained-%u", (unsigned)world->made.shards);
    world_cluster(world, store, trained);
    (void)snprintf(world->server[0].store, sizeof world->server[0].store, "%s/%s", world->directory, store);
}

struct dp_table_spec world_table(const char *name, uint32_t dim, enum dp_optimizer_kind kind)
{
    struct dp_table_spec spec = {.dim = dim, .seed = 3, .optimizer = dp_optimizer_defaults(kind)};
    (void)snprintf(spec.name, sizeof spec.name, "%s", name);
    return spec;
}

struct world *world_new(uint32_t shards)
{
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    temp_directory_make(world->directory, sizeof world->directory);
    world->sgd = world_table("weights", 2, DP_OPT_SGD);
    world->adam = world_table("items", 4, DP_OPT_ADAM);
    assert_int_equal(dp_push_ids_new(&world->ids), DP_OK);
    for (uint32_t number = 0; number < WORLD_PUSHES; number++)
        assert_int_equal(dp_push_ids_restore(world->ids, LIVE_STREAM, number, DP_OK), DP_OK);
    assert_int_equal(dp_push_ids_restore(world->ids, LIVE_STREAM, WORLD_ELSEWHERE, DP_OK), DP_OK);
    static const uint32_t none[] = {0};
    world_cluster(world, "unused", none);
    world->made = (struct made){.directory = world->directory,
                                .number = 1,
                                .shards = shards,
                                .ids = world->ids,
                                .register_directory = world->directory};
    make_register(world->directory);
    for (uint32_t i = 0; i < shards; i++) {
        (void)snprintf(world->made.shard[i], sizeof world->made.shard[i], "%s/trained-%u/shard-%04u",
                       world->directory, (unsigned)shards, (unsigned)i);
        train(world, world->made.shard[i], i, 0, WORLD_PUSHES - 1, LIVE_CLEAN);
        train(world, world->made.shard[i], i, WORLD_PUSHES - 1, WORLD_PUSHES, LIVE_KILLED);
    }
    made_checkpoint(&world->made);
    (void)snprintf(world->checkpoint, sizeof world->checkpoint, "%s/checkpoint-000001", world->directory);
    as_trained(world);
    world_digest(world, world->digest);
    assert_int_equal(world->rows, WORLD_ROWS);
    return world;
}

void world_free(struct world *world)
{
    dp_push_ids_free(&world->ids);
    temp_directory_remove(world->directory);
    free(world);
}

/* ---- what it is restored as */

void world_cluster(struct world *world, const char *name, const uint32_t *shards)
{
    char directory[sizeof world->directory];
    memcpy(directory, world->directory,
           sizeof directory); /* GCC 12 sees an overlap of the fields otherwise */
    world->history = "word";
    world->without = NULL;
    world->cluster = (struct dp_cluster){.name = "test",
                                         .id = LIVE_CLUSTER,
                                         .cache_bytes = 64u << 20,
                                         .journal_bytes = 64u << 20,
                                         .durability = DP_CLUSTER_MACHINE,
                                         .server = world->server};
    for (uint32_t i = 0; shards[i] > 0; i++) {
        world->server[i] = (struct dp_cluster_server){.shards = shards[i]};
        (void)snprintf(world->server[i].store, sizeof world->server[i].store, "%s/%s-%u", directory, name,
                       (unsigned)i);
        world->cluster.server_count++;
    }
}

enum dp_status world_restore_one(struct world *world, uint32_t server, bool overwrite, struct dp_error *err)
{
    const struct dp_restore_options options = {.checkpoint = world->checkpoint,
                                               .cluster = &world->cluster,
                                               .server = server,
                                               .overwrite = overwrite,
                                               .history = world->history,
                                               .without = world->without};
    return dp_restore(&options, err);
}

void world_restore(struct world *world, const char *name, const uint32_t *shards)
{
    struct dp_error err = {0};
    world_cluster(world, name, shards);
    for (uint32_t i = 0; i < world->cluster.server_count; i++)
        if (world_restore_one(world, i, false, &err) != DP_OK)
            fail_msg("server %u: %s", (unsigned)i, err.text);
    world_exchange(world);
}

void world_exchange(struct world *world)
{
    const char *store[4];
    struct dp_error err = {0};
    uint32_t servers = world->cluster.server_count;
    uint64_t history = dp_restore_place_history(world->server[0].store);
    char building[700];
    (void)snprintf(building, sizeof building, "%.600s.restoring", world->server[0].store);
    if (dp_restore_place_history(building) != 0)
        history = dp_restore_place_history(building);
    for (uint32_t i = 0; i < servers; i++)
        store[i] = world->server[i].store;
    if (dp_restore_exchange_all(store, servers, history, &err) != DP_OK)
        fail_msg("%s", err.text);
    dp_restore_exchange_clean(store, servers);
}

const char *world_shard(struct world *world, uint32_t shard, char path[700])
{
    uint32_t server = 0, first = 0;
    while (shard >= first + world->server[server].shards)
        first += world->server[server++].shards;
    (void)snprintf(path, 700, "%.500s/shard-%04u", world->server[server].store, (unsigned)shard);
    return path;
}

struct live *world_live(struct world *world, uint32_t shard)
{
    char path[700];
    return live_open(world_shard(world, shard, path), shard, dp_cluster_shards(&world->cluster));
}

void world_digest(struct world *world, char digest[DP_DIGEST_TEXT])
{
    static struct dp_inspect_view views[MADE_SHARDS_MAX];
    const struct dp_inspect_view_options options = {.digest = true};
    uint32_t shards = dp_cluster_shards(&world->cluster);
    struct dp_error err = {0};
    char path[700];
    size_t tables = 0;
    for (uint32_t i = 0; i < shards; i++) {
        struct live *live = world_live(world, i);
        live_close(&live, LIVE_CLEAN);
        if (dp_inspect_view_gather(world_shard(world, i, path), &options, &views[i], &err) != DP_OK)
            fail_msg("%s", err.text);
        if (!dp_inspect_view_is_clean(&views[i]))
            fail_msg("shard %u: %s", (unsigned)i, views[i].damages ? views[i].damage[0].text : "unclean");
        for (size_t t = 0; t < views[i].tables; t++) /* a count that a close cuts short is not known */
            if (views[i].table[t].marked_rows != DP_TABLE_ROWS_UNKNOWN)
                assert_int_equal(views[i].table[t].marked_rows, views[i].table[t].rows);
    }
    struct dp_digest_table *sum = dp_inspect_view_sum(views, shards, &tables);
    world->tables = tables;
    if (tables > 0)
        dp_digest_text(&sum[0].digest, world->items);
    struct dp_digest all = dp_digest_of_all(sum, tables);
    world->rows = all.rows;
    dp_digest_text(&all, digest);
    free(sum);
    for (uint32_t i = 0; i < shards; i++)
        dp_inspect_view_clear(&views[i]);
}

void world_expect_restored(struct world *world)
{
    char digest[DP_DIGEST_TEXT];
    world_digest(world, digest);
    assert_int_equal(world->tables, 2);
    assert_string_equal(digest, world->digest);
}
