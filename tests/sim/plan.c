#include "tests/sim/plan.h"

#include "common/model/row.h"
#include "tests/sim/world.h"

#include <stdio.h>
#include <stdlib.h>

enum sim_scene sim_scene = SIM_MIXED;

static uint32_t up_to(struct sim_world *world, uint32_t most)
{
    return (uint32_t)sim_draw(world, most + 1);
}

/* Nothing, half of the time. */
static uint32_t maybe(struct sim_world *world, uint32_t most)
{
    return sim_draw(world, 2) ? 0 : up_to(world, most);
}

static void make_table(struct sim_world *world, struct dp_table_spec *spec, uint32_t index, bool wide)
{
    static const enum dp_optimizer_kind kinds[] = {DP_OPT_SGD, DP_OPT_ADAM, DP_OPT_ADAGRAD, DP_OPT_FTRL};
    static const uint32_t dims[] = {1, 2, 3, 8, 17, 100, 200};
    *spec = (struct dp_table_spec){.seed = sim_draw(world, 1000)};
    (void)snprintf(spec->name, sizeof spec->name, "table-%u", index);
    spec->dim = dims[wide ? 5 + sim_draw(world, 2) : sim_draw(world, sizeof dims / sizeof dims[0])];
    enum dp_optimizer_kind kind = index == 0 ? DP_OPT_SGD : kinds[sim_draw(world, 4)];
    spec->optimizer = dp_optimizer_defaults(kind);
    if (index > 0) {
        spec->init = (struct dp_init_spec){.kind = DP_INIT_UNIFORM, .scale = 0.5f};
        if (kind == DP_OPT_SGD)
            spec->optimizer.momentum = 0.5f;
    }
}

static int by_event(const void *a, const void *b)
{
    const struct sim_fault *x = a, *y = b;
    return x->event != y->event ? (x->event > y->event) - (x->event < y->event)
                                : (x->choice > y->choice) - (x->choice < y->choice);
}

static void make_faults(struct sim_world *world, struct sim_plan *plan)
{
    uint32_t kinds = (uint32_t)sim_draw(world, 1u << SIM_FAULT_KINDS); /* those that this seed has */
    uint64_t events = 300 + (uint64_t)plan->workers * plan->steps * plan->servers * 12;
    plan->calm_event = events;
    plan->faults = sim_draw(world, 16) == 0 ? 0 : up_to(world, SIM_FAULTS_MAX);
    /* Who does a step again asks for the weights from before it; a dead worker's leases are others'. */
    if (plan->mode == DP_SYNC || plan->leased)
        kinds |= 1u << SIM_WORKER_DIES;
    if (plan->fixed)
        kinds &= ~(1u << SIM_WORKER_DIES);
    if (kinds == 0)
        plan->faults = 0;
    for (uint32_t i = 0; i < plan->faults; i++) {
        struct sim_fault *fault = &plan->fault[i];
        do
            fault->kind = (enum sim_fault_kind)sim_draw(world, SIM_FAULT_KINDS);
        while (!(kinds >> fault->kind & 1));
        fault->kind = plan->away && i % 2 == 0 ? SIM_WORKER_DIES : fault->kind;
        fault->event = 20 + sim_draw(world, events);
        fault->choice = sim_draw(world, 1u << 20);
    }
    qsort(plan->fault, plan->faults, sizeof plan->fault[0], by_event);
}

/* A row cache that is smaller than a shard's rows, but never so small that a request does not fit, or what opening
 * takes at once. */
static uint64_t cache_bytes(struct sim_world *world, const struct sim_plan *plan)
{
    uint64_t largest = 0, all = 0;
    for (uint32_t t = 0; t < plan->tables; t++) {
        uint64_t row = dp_row_bytes(&plan->table[t]) + 200;
        largest = row > largest ? row : largest;
        all += row * plan->keys / plan->servers;
    }
    uint64_t kept = plan->mode == DP_SYNC ? 24 * plan->workers : 0; /* a step's rows are at most half of it */
    return (26 + kept) * largest + (16u << 10) + sim_draw(world, all / 4);
}

/* Not drawn: the others stay. */
static void make_mode(const struct sim_world *world, struct sim_plan *plan)
{
    uint64_t chance = world->seed / 12;
    if (plan->away)
        chance = world->seed / 2 * 3 + 1 + world->seed % 2;
    for (uint32_t i = 0; i < SIM_WORKERS_MAX; i++)
        plan->minibatches[i] = plan->steps;
    if (chance % 3 == 0 || plan->sectors || plan->leased)
        return;
    plan->mode = chance % 3 == 1 ? DP_SSP : DP_SYNC;
    chance /= 3;
    plan->slack = plan->mode == DP_SSP                  ? (uint32_t)(chance % 4)
                  : chance % 8 / 4 && plan->workers > 1 ? 1 + (uint32_t)(chance / 8 % (plan->workers - 1))
                                                        : 0;
    plan->first_step = chance % 5 * 1000;
    plan->leaves = chance % 2;
    for (uint32_t i = 1; i < SIM_WORKERS_MAX; i++)
        plan->minibatches[i] -= (uint32_t)((chance + i) % 4);
}

/* About as many pushes as workers that are no members make. A third has more numbers in an epoch than may be under way. */
static void make_leases(const struct sim_world *world, struct sim_plan *plan)
{
    uint64_t chance = world->seed / 12;
    plan->leased = true;
    plan->epochs = chance % 3 == 0 ? 1 : 1 + (uint32_t)(chance / 3 % SIM_EPOCHS_MAX);
    plan->total = chance % 3 == 0 ? SIM_SPAN + 1 + (uint32_t)(chance / 3 % (SIM_LEASED_MAX - SIM_SPAN))
                                  : 2 + (uint32_t)(chance / 9 % SIM_SPAN);
    plan->slow = chance % 2;
    plan->steps = (plan->epochs * plan->total + plan->workers - 1) / plan->workers;
}

/* A synchronous step and its close may take an eighth of the journal (server/shard/step_buffering.c), and some seeds have no more than that.
 * Where servers start often most have more: each opening begins a segment, before what is kept of an open step can be appended anew. */
static uint64_t budget_bytes(const struct sim_world *world, const struct sim_plan *plan)
{
    uint64_t row = 0;
    for (uint32_t t = 0; t < plan->tables; t++)
        row = 8 + 4 * plan->table[t].dim > row ? 8 + 4 * plan->table[t].dim : row;
    uint64_t step = plan->workers * (8192 + SIM_ROWS_MAX * 2 * row); /* a push takes a page at least */
    uint64_t least = (8 * step + plan->segment_bytes - 1) / plan->segment_bytes * plan->segment_bytes;
    uint64_t bytes = plan->budget_bytes;
    if (plan->mode != DP_SYNC)
        return bytes;
    if (plan->away) /* a step stays open for as long as members sleep */
        bytes *= 4;
    else if ((plan->storm || plan->faults > 1) && (world->seed % 25 != 3 || sim_scene == SIM_CHECKPOINT))
        bytes *= plan->storm ? 3 : 2;
    return least > bytes ? least : bytes;
}

/* Orders of checkpoints are events, too. */
static void make_restores(struct sim_world *world, struct sim_plan *plan)
{
    plan->checkpoints = true;
    plan->restores = 1 + up_to(world, SIM_RESTORES_MAX - 1);
    plan->calm_event *= 3;
    for (uint32_t i = 0; i < plan->faults; i++)
        plan->fault[i].event *= 1 + i % 3;
    qsort(plan->fault, plan->faults, sizeof plan->fault[0], by_event);
    for (uint32_t i = 0; i < plan->restores; i++)
        plan->restore_event[i] = sim_draw(world, plan->calm_event);
}

/* Many pushes wait for one write. */
static void make_writes_late(struct sim_world *world, struct sim_plan *plan)
{
    plan->sync_ms = 20 + up_to(world, 60);
    plan->think_ms = plan->mail.slow = 0;
    plan->blind = 1000;
    plan->window = 8;
    plan->retry_ms = 100;
}

void sim_plan_make(struct sim_world *world, struct sim_plan *plan)
{
    static const uint32_t keys[] = {12, 30, 60, 96};
    *plan = (struct sim_plan){.servers = 1 + up_to(world, SIM_SERVERS_MAX - 1),
                              .workers = 1 + up_to(world, SIM_WORKERS_MAX - 1),
                              .tables = 1 + up_to(world, 2),
                              .keys = keys[sim_draw(world, 4)],
                              .steps = 8 + up_to(world, SIM_STEPS_MAX - 8),
                              .segment_bytes = 64u << 10,
                              .cache_bytes = 64u << 20};
    plan->away = sim_scene == SIM_AWAY;
    if (plan->away) /* somebody stays */
        plan->workers = 2 + plan->workers % (SIM_WORKERS_MAX - 1);
    plan->steps = plan->workers > 1 && !plan->away ? plan->steps / 2 + 4 : plan->steps;
    plan->durability = sim_draw(world, 4) ? DP_DURABILITY_MACHINE : DP_DURABILITY_PROCESS;
    plan->process = plan->durability == DP_DURABILITY_PROCESS || sim_draw(world, 5) == 0;
    plan->storm = !plan->process && sim_draw(world, 4) == 0;
    plan->budget_bytes = plan->segment_bytes * (3 + up_to(world, 2));
    plan->sectors =
        !plan->process && sim_draw(world, 4) == 0 && sim_scene != SIM_AWAY && sim_scene != SIM_CHECKPOINT;
    plan->storm |= plan->sectors;
    if (plan->sectors) {
        plan->servers = plan->tables = 1;
        plan->workers = SIM_WORKERS_MAX;
    }
    plan->fixed =
        plan->workers == 1 && sim_draw(world, 2) && (sim_scene == SIM_MIXED || sim_scene == SIM_CHECKPOINT);
    plan->bf16 = !plan->fixed && sim_draw(world, 4) == 0;
    plan->in_flight = plan->fixed ? 1 : 1 + up_to(world, 3);
    bool small = sim_draw(world, 4) == 0;
    bool wide = small || sim_draw(world, 3) == 0; /* so much that the journal fills up */
    plan->keys = small ? SIM_KEYS_MAX : plan->keys;
    plan->steps = small ? SIM_STEPS_MAX : plan->steps;
    for (uint32_t t = 0; t < plan->tables; t++)
        make_table(world, &plan->table[t], t, wide);
    if (plan->sectors) {
        plan->table[0].dim = 80;
        plan->in_flight = 4;
        plan->bf16 = false;
    }
    if (sim_scene == SIM_LEASES)
        make_leases(world, plan);
    make_mode(world, plan);
    plan->stales = world->seed % 3 == 0 && !plan->fixed && plan->mode != DP_SYNC;
    if (small)
        plan->cache_bytes = cache_bytes(world, plan);
    plan->blind = sim_draw(world, 3) ? 0 : up_to(world, 1000);
    plan->mail.lose = maybe(world, 100);
    plan->mail.twice = maybe(world, 150);
    plan->mail.slow = maybe(world, 300);
    plan->mail.slow_ms = 1 + up_to(world, 800);
    plan->think_ms = plan->away && world->seed % 4 > 0 ? up_to(world, 1500) : maybe(world, 1500);
    plan->sync_ms = maybe(world, sim_draw(world, 2) ? 5 : 200);
    plan->job_ms = maybe(world, sim_draw(world, 2) ? 5 : 500);
    plan->turn_us = maybe(world, sim_draw(world, 2) ? 200 : 20000);
    plan->jobs_max = 2 + up_to(world, 6);
    plan->requests_max = sim_draw(world, 4) ? 64 : 3;
    plan->window = 1 + up_to(world, 15);
    plan->retry_ms = 100 + up_to(world, 900);
    if (plan->sectors)
        make_writes_late(world, plan);
    make_faults(world, plan);
    if (sim_scene == SIM_CHECKPOINT)
        make_restores(world, plan);
    plan->budget_bytes = budget_bytes(world, plan);
    plan->taken_rows =
        world->seed % 3 ? 1 + (uint32_t)(world->seed / 3 % 4) : 0; /* not drawn: old seeds stay */
    plan->idle_ms = world->seed % 4 ? 5 : 100;                     /* likewise */
    plan->behind = plan->sectors || sim_draw(world, 2) ? 0 : 1 + up_to(world, 1);
}
