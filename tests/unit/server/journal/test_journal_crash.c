/* Power goes at every disk operation of scripts, and at random ones of thousands more, while opening too: what was
 * answered as durable is there, in order, with its bytes, and nothing comes back that was cut.
 * DP_TEST_SEED=n runs one seed, DP_TEST_SEEDS=n so many. */
#include "tests/lib/test.h"
#include "tests/lib/timeouts.h"
#include "tests/unit/server/journal/journal_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SEEDS DP_SEEDS(3000)

static const enum dp_sim_survival survivals[] = {DP_SIM_NOTHING, DP_SIM_ALL, DP_SIM_RANDOM, DP_SIM_RANDOM};

/* Appends over segment edges, commits, releases, recycling, reopenings: the same at each call. */
static void fixed_script(struct world *world)
{
    struct dp_error err = {0};
    for (uint32_t round = 0; round < 3; round++) {
        if (world_open(world, &err) != DP_OK) {
            if (!dp_sim_disk_is_off(world->sim))
                fail_msg("%s", err.text);
            return;
        }
        for (uint32_t i = 0; i < 14; i++) {
            (void)world_append(world, 2000);
            (void)world_append(world, 100);
            if (i % 3 == 0)
                (void)world_append(world, 45000);
            if (i % 2 == 0 && world_commit(world) != DP_OK)
                return;
            if (i % 5 == 1)
                world_claim(world);
            if (i % 4 == 3)
                world_release(world, world->synced > 5 ? world->synced - 5 : 0);
        }
        if (round == 0)
            world_close(world);
        else if (round == 1)
            world_end(world);
        if (dp_sim_disk_is_off(world->sim))
            return;
    }
}

static void power_goes_at_every_operation(void **state)
{
    static struct world world;
    for (uint32_t kind = 0; kind < 16; kind++) {
        bool ended = false;
        uint64_t op = 0;
        for (op = 1; !ended; op++) {
            world_init(&world, op * 8 + kind, kind % 8 < 4 ? DP_DURABILITY_MACHINE : DP_DURABILITY_PROCESS);
            if (kind >= 8)
                world_grows(&world);
            dp_sim_disk_cut_at(world.sim, op);
            fixed_script(&world);
            ended = !dp_sim_disk_is_off(world.sim);
            if (!ended) {
                world_crash(&world, survivals[kind % 4]);
                world_recover(&world, kind == 3 ? 2 : 0);
                (void)world_append(&world, 500);
                (void)world_commit(&world);
                world_crash(&world, DP_SIM_NOTHING);
                world_recover(&world, 0);
            }
            world_clear(&world);
        }
        assert_true(op > 60);
    }
}

static void one_seed(uint64_t seed, struct world *world)
{
    world_init(world, seed, seed % 4 == 0 ? DP_DURABILITY_PROCESS : DP_DURABILITY_MACHINE);
    if (seed % 3 == 0)
        world_grows(world);
    world_recover(world, 0);
    uint32_t lives = 2 + (uint32_t)(world_draw(world) % 5);
    for (uint32_t life = 0; life < lives; life++) {
        dp_sim_disk_cut_at(world->sim, 1 + world_draw(world) % 60);
        world_script(world, 60);
        dp_sim_disk_cut_at(world->sim, 0);
        static const enum dp_sim_survival kinds[] = {DP_SIM_RANDOM,  DP_SIM_RANDOM, DP_SIM_RANDOM,
                                                     DP_SIM_NOTHING, DP_SIM_ALL,    DP_SIM_PROCESS};
        world_crash(world, dp_sim_disk_is_off(world->sim) ? kinds[world_draw(world) % 5]
                                                          : kinds[world_draw(world) % 6]);
        world_recover(world, world_draw(world) % 2 ? 0 : 1 + (uint32_t)(world_draw(world) % 3));
    }
    world_clear(world);
}

static void random_scripts(void **state)
{
    static struct world world;
    uint64_t appends = 0, losses = 0, claims = 0, seeds = SEEDS, first = 1;
    const char *one = getenv("DP_TEST_SEED"), *many = getenv("DP_TEST_SEEDS");
    if (one)
        first = seeds = strtoull(one, NULL, 10);
    else if (many)
        seeds = strtoull(many, NULL, 10);
    for (uint64_t seed = first; seed <= seeds; seed++) {
        one_seed(seed, &world);
        appends += world.appends;
        losses += world.power_losses;
        claims += world.claims;
    }
    print_message("%" PRIu64 " appends, %" PRIu64 " power losses, %" PRIu64 " claims\n", appends, losses,
                  claims);
    assert_true(one || (losses >= seeds && claims >= seeds));
}

/* Openings alone, power lost in each: neither files nor space grow. */
static void opening_again_and_again(void **state)
{
    static struct world world;
    world_init(&world, 77, DP_DURABILITY_MACHINE);
    world_recover(&world, 0);
    /* The budget is used up. */
    while (world_append(&world, 40000) == DP_OK)
        (void)world_commit(&world);
    for (uint32_t i = 0; i < 200; i++) {
        world_crash(&world, survivals[i % 4]);
        world_recover(&world, i % 3);
        assert_int_equal(world_append(&world, 10), DP_AGAIN);
    }
    world_release(&world, world.synced);
    assert_int_equal(world_commit(&world), DP_OK);
    assert_int_equal(world_append(&world, 10), DP_OK);
    assert_int_equal(world_commit(&world), DP_OK);
    assert_true(dp_sim_disk_used(world.sim) <= WORLD_BUDGET);
    world_clear(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_goes_at_every_operation),
        cmocka_unit_test(opening_again_and_again),
        cmocka_unit_test(random_scripts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
