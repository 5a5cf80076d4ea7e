/* A journal that ends: the store has all of it, its segments are removed, and nothing of them counts ever again: not when power goes
 * within, not when an old segment is copied back, not when one is damaged. */
#include "server/journal/journal_record.h"
#include "tests/lib/test.h"
#include "tests/unit/server/journal/journal_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct world world;

static void append_some(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(world_append(&world, 3000), DP_OK);
        assert_int_equal(world_commit(&world), DP_OK);
    }
}

static void opened(enum dp_durability durability, uint32_t records)
{
    world_init(&world, 31, durability);
    world_recover(&world, 0);
    append_some(records);
}

struct listed {
    char name[8][32];
    uint32_t count;
};

static void list_one(void *context, const char *name)
{
    struct listed *listed = context;
    assert_true(listed->count < 8);
    (void)snprintf(listed->name[listed->count++], 32, "%s", name);
}

static struct listed list(void)
{
    struct listed listed = {.count = 0};
    assert_int_equal(world.disk.list(world.disk.self, list_one, &listed, NULL), DP_OK);
    return listed;
}

/* A file's bytes; free them. */
static uint8_t *copy_of(const char *name, uint64_t *bytes)
{
    const uint8_t *data = dp_sim_disk_bytes(world.sim, name, bytes);
    assert_non_null(data);
    uint8_t *copy = malloc((size_t)*bytes);
    assert_non_null(copy);
    memcpy(copy, data, (size_t)*bytes);
    return copy;
}

static void put_back(const char *name, const uint8_t *data, uint64_t bytes)
{
    struct dp_file *file = NULL;
    struct dp_disk_piece piece = {data, (size_t)bytes};
    assert_int_equal(world.disk.open(world.disk.self, name, true, &file, NULL), DP_OK);
    assert_int_equal(world.disk.reserve(world.disk.self, file, bytes, NULL), DP_OK);
    assert_int_equal(world.disk.write(world.disk.self, file, 0, &piece, 1, NULL), DP_OK);
    assert_int_equal(world.disk.sync(world.disk.self, file, NULL), DP_OK);
    assert_int_equal(world.disk.sync_directory(world.disk.self, NULL), DP_OK);
    world.disk.close(world.disk.self, file);
}

static bool is_there(const char *name)
{
    uint64_t bytes;
    return dp_sim_disk_bytes(world.sim, name, &bytes) != NULL;
}

/* What comes after is recovered as ever, and numbers go on, so that no file of before can pass for a later one. */
static void an_ended_journal_leaves_nothing(void **state)
{
    for (uint32_t mode = 0; mode < 2; mode++) {
        char last[32] = "";
        opened(mode ? DP_DURABILITY_PROCESS : DP_DURABILITY_MACHINE, 40);
        for (uint32_t round = 0; round < 3; round++) {
            uint64_t before = world.last;
            struct listed names = list();
            assert_true(names.count > 0);
            for (uint32_t i = 0; i < names.count; i++)
                assert_true(strcmp(names.name[i], last) > 0);
            for (uint32_t i = 0; i < names.count; i++)
                if (strcmp(names.name[i], last) > 0)
                    memcpy(last, names.name[i], sizeof last);
            world_end(&world);
            assert_int_equal(list().count, 0);
            assert_int_equal(dp_sim_disk_used(world.sim), 0);
            world_recover(&world, 0);
            assert_int_equal(world.last, before);
            append_some(5);
            world_crash(&world, DP_SIM_NOTHING);
            world.options.must_be_there = true;
            world.options.incarnation = world.options.released + 1;
            world_recover(&world, 0);
            assert_int_equal(world.last, before + (mode ? world.last - before : 5));
            world.options.must_be_there = false;
        }
        world_clear(&world);
    }
}

/* Power goes at each operation of the end; the next opening replays nothing, and the one that ends whole leaves nothing. */
static void power_goes_at_every_operation_of_the_end(void **state)
{
    static const enum dp_sim_survival survivals[] = {DP_SIM_NOTHING, DP_SIM_ALL, DP_SIM_RANDOM};
    uint64_t most = 0;
    for (uint32_t kind = 0; kind < 6; kind++) {
        bool whole = false;
        for (uint64_t op = 1; !whole; op++) {
            opened(kind < 3 ? DP_DURABILITY_MACHINE : DP_DURABILITY_PROCESS, 40);
            dp_journal_sync(world.journal);
            dp_sim_disk_cut_at(world.sim, op);
            world_end(&world);
            whole = !dp_sim_disk_is_off(world.sim);
            dp_sim_disk_cut_at(world.sim, 0);
            assert_true(world.ends > 0);
            if (!whole)
                world_crash(&world, survivals[kind % 3]);
            world_recover(&world, (uint32_t)(op % 3));
            assert_int_equal(world.last, 40);
            append_some(3);
            world_crash(&world, DP_SIM_NOTHING);
            world_recover(&world, 0);
            world_end(&world);
            assert_int_equal(list().count, 0);
            world_clear(&world);
            most = op > most ? op : most;
        }
    }
    assert_true(most > 3);
}

/* The file lies there again, before the next opening or beside segments of a later one: it is removed, its records are not
 * replayed, though the store (older, restored) does not have all of them, and what it claims is asked of nobody. */
static void a_segment_that_is_copied_back_is_not_replayed(void **state)
{
    for (uint32_t later = 0; later < 3; later++) {
        struct dp_error err = {0};
        uint64_t bytes;
        opened(DP_DURABILITY_MACHINE, 8);
        world_claim(&world);
        char name[32] = "journal-0000000000000001";
        uint8_t *old = copy_of(name, &bytes);
        world_end(&world);
        if (later == 1) { /* beside one that is in use */
            world_recover(&world, 0);
            append_some(2);
            world_crash(&world, DP_SIM_NOTHING);
        }
        uint64_t last = world.last;
        if (later == 2) { /* and the store is an older one */
            world.marks = world.last = world.durable = world.synced = last = 3;
        }
        put_back(name, old, bytes);
        if (world_open(&world, &err) != DP_OK)
            fail_msg("%s", err.text);
        assert_int_equal(world.last, last);
        assert_false(is_there(name));
        append_some(1);
        world_crash(&world, DP_SIM_NOTHING);
        world_recover(&world, 0);
        assert_int_equal(world.last, last + 1);
        free(old);
        world_clear(&world);
    }
}

/* A build that kept its journals closed it cleanly; a bit of it flips: it is not needed, and refuses nobody, beside an older copy of the
 * store neither. */
static void damage_to_a_released_journal_is_nobodys(void **state)
{
    for (uint64_t bit = 0; bit < 3000; bit++) {
        struct dp_error err = {0};
        struct dp_journal_figures figures;
        uint64_t bytes;
        opened(DP_DURABILITY_MACHINE, 8);
        dp_journal_figures(world.journal, &figures);
        world_close(&world);
        world.marks = world.last = world.durable = world.synced = bit % 2 ? 3 : 8;
        world.options.released = figures.incarnation;
        uint8_t *data = dp_sim_disk_bytes(world.sim, "journal-0000000000000001", &bytes);
        uint64_t at = bit < 512 ? bit / 8 : DP_JOURNAL_PAGE + world_draw(&world) % 20000;
        data[at] ^= (uint8_t)(1u << bit % 8);
        if (world_open(&world, &err) != DP_OK)
            fail_msg("bit %" PRIu64 " of byte %" PRIu64 ": %s", bit % 8, at, err.text);
        assert_int_equal(world.last, bit % 2 ? 3 : 8);
        world_clear(&world);
    }
}

/* A store that was closed cleanly, of before, and the journal that was written after it. */
static void a_journal_that_goes_beyond_a_clean_store_is_refused(void **state)
{
    struct dp_error err = {0};
    opened(DP_DURABILITY_MACHINE, 8);
    world_end(&world);
    world_recover(&world, 0);
    world.options.clean = true;
    world_crash(&world, DP_SIM_NOTHING); /* nothing was pushed: there is nothing to object to */
    world_recover(&world, 0);
    append_some(4);
    world_crash(&world, DP_SIM_NOTHING);
    assert_int_equal(world_open(&world, &err), DP_CORRUPT);
    assert_non_null(strstr(err.text, "closed cleanly at lsn 8, but its journal continues to lsn 12"));
    world.options.clean = false;
    world_recover(&world, 0);
    assert_int_equal(world.last, 12);
    world_clear(&world);
}

/* One that was lost is told from one that has ended. */
static void a_journal_that_was_lost_is_missed(void **state)
{
    struct dp_error err = {0};
    opened(DP_DURABILITY_MACHINE, 8);
    world_end(&world);
    world_recover(&world, 0);
    append_some(2);
    world_crash(&world, DP_SIM_NOTHING);
    struct listed names = list();
    for (uint32_t i = 0; i < names.count; i++)
        assert_int_equal(world.disk.remove(world.disk.self, names.name[i], NULL), DP_OK);
    assert_int_equal(world.disk.sync_directory(world.disk.self, NULL), DP_OK);
    world.options.must_be_there = true;
    world.options.incarnation = world.options.released + 1;
    assert_int_equal(world_open(&world, &err), DP_CORRUPT);
    assert_non_null(strstr(err.text, "files were removed"));
    world_clear(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ended_journal_leaves_nothing),
        cmocka_unit_test(power_goes_at_every_operation_of_the_end),
        cmocka_unit_test(a_segment_that_is_copied_back_is_not_replayed),
        cmocka_unit_test(damage_to_a_released_journal_is_nobodys),
        cmocka_unit_test(a_journal_that_goes_beyond_a_clean_store_is_refused),
        cmocka_unit_test(a_journal_that_was_lost_is_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
