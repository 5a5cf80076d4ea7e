#include "tests/sim/batch.h"

#include "common/model/mix.h"

static uint64_t mixed_draw(uint64_t *state, uint64_t below)
{
    *state += 0x9e3779b97f4a7c15u;
    return (dp_mix(*state) >> 16) % below;
}

/* As a member's: a step has one rate, and one without a minibatch is empty. */
static void in_step(const struct sim_world *world, uint32_t worker, uint32_t number, struct sim_batch *out)
{
    uint64_t of_step = dp_mix(world->seed * 1000 + 99) + number, of_member = of_step + 1000 * (worker + 1);
    out->rate = mixed_draw(&of_step, 2) ? 1.0f : 0.5f;
    out->examples = 1 + (uint32_t)mixed_draw(&of_member, 8);
    if (number < world->plan.minibatches[worker])
        return;
    out->parts = out->examples = 0;
    out->blind = true;
}

void sim_batch_make(const struct sim_world *world, uint32_t worker, uint32_t number, struct sim_batch *out)
{
    const struct sim_plan *plan = &world->plan;
    uint64_t state = dp_mix(world->seed * 1000 + worker * 100 + 1) + number;
    state = dp_mix(state);
    *out = (struct sim_batch){.rate = mixed_draw(&state, 2) ? 1.0f : 0.5f};
    out->blind = mixed_draw(&state, 1000) < plan->blind;
    out->parts = (uint32_t)mixed_draw(&state, SIM_BATCH_PARTS + 1);
    if (out->parts > plan->tables)
        out->parts = plan->tables;
    uint32_t first = (uint32_t)mixed_draw(&state, plan->tables);
    out->parts = plan->sectors ? 1 : out->parts;
    for (uint32_t p = 0; p < out->parts; p++) {
        out->part[p].table = (first + p) % plan->tables;
        uint64_t key = mixed_draw(&state, plan->keys);
        uint32_t want = plan->sectors ? 1 : 1 + (uint32_t)mixed_draw(&state, SIM_BATCH_ROWS);
        for (; out->part[p].rows < want;
             out->part[p].rows++, key += 1 + mixed_draw(&state, plan->keys / SIM_BATCH_ROWS - 1))
            out->part[p].key[out->part[p].rows] = key % plan->keys;
    }
    if (sim_has_members(plan))
        in_step(world, worker, number, out);
}

void sim_batch_gradient(const struct sim_world *world, uint32_t worker, uint32_t table, uint64_t key,
                        uint64_t number, const float *weights, float *out)
{
    const struct dp_table_spec *spec = &world->plan.table[table];
    uint64_t state = dp_mix(world->seed ^ dp_mix(key * 8 + table) ^ dp_mix(number + 77));
    if (sim_has_members(&world->plan)) /* others' seeds stay */
        state += worker;
    for (uint32_t i = 0; i < spec->dim; i++) {
        int64_t whole = (int64_t)mixed_draw(&state, 9) - 4;
        out[i] = sim_is_integers(spec) ? (float)whole : (float)whole * 0.125f + 0.25f * weights[i];
    }
}
