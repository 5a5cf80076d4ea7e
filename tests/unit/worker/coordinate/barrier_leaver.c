#include "tests/unit/worker/coordinate/barrier_leaver.h"

static struct life *life_here(void)
{
    return world_here()->own;
}

uint64_t leaver_due(const struct run *run, uint32_t epochs)
{
    uint64_t with_it = run->back && epochs > run->back_at ? epochs - run->back_at : 0;
    return (uint64_t)epochs * run->each + with_it * run->brings;
}

void leaver_take(void *context, struct world *world, uint64_t step)
{
    struct run *run = context;
    if (step != run->leaver_at || !world_runs(world, run->leaver))
        return;
    world_kill(world, run->leaver,
               run->brings ? 5000 + world_random(world, 20000)
                           : 100000); /* else its next process does nothing */
    run->left_ns = world_now(world) + UINT64_C(5000000000);
}

/* As a worker that stood in has found it, and knows it until it asks again. */
bool leaver_is_gone(const void *of, uint32_t worker)
{
    const struct run *run = of;
    return run->leaver == worker && life_here()->gone;
}

enum dp_status leaver_look(void *of, struct dp_error *err)
{
    const struct run *run = of;
    life_here()->gone |= run->left_ns > 0 && world_now(run->world) >= run->left_ns && !run->back;
    return DP_OK;
}

enum dp_status leaver_recheck(void *of, struct dp_error *err)
{
    const struct run *run = of;
    if (!world_step(world_here(), 1))
        return dp_fail(err, DP_STOPPING, "killed");
    life_here()->gone &= !run->back;
    return DP_OK;
}

bool leaver_comes_back(const struct trainee *r)
{
    const struct run *run = r->run;
    return run->left_ns > 0 && run->brings > 0 && !run->back && r == &run->trainee[run->leaver];
}

/* As every shard accepts it: from a step that the slowest has not reached, or a later one. */
void leaver_come_back(struct trainee *r)
{
    struct run *run = r->run;
    uint32_t least = run->epochs;
    for (uint32_t w = 0; w < run->workers; w++) {
        const struct trainee *other = &run->trainee[w];
        uint32_t next = other->ended + (other->done > 0);
        if (other != r && other->pushes > 0 && next < least)
            least = next;
    }
    least += (uint32_t)world_random(run->world, 3);
    least = least < run->epochs ? least : run->epochs;
    run->back = true;
    run->back_at = r->ended = least;
    r->pushes = run->brings;
}
