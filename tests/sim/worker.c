#include "common/model/stream.h"
#include "tests/sim/counts.h"
#include "tests/sim/net.h"
#include "tests/sim/server.h"
#include "tests/sim/worker_inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void send_message(void *context, uint32_t server, struct dp_message *message)
{
    const struct sim_worker *worker = context;
    sim_net_to_server(worker->world, worker, server, message);
}

void sim_worker_receive(struct sim_worker *worker, uint32_t server, struct dp_message **message)
{
    sim_life_receive(&worker->life, server, message);
}

static void start(void *context, uint64_t what);

/* A process that heard it was replaced has ended. Where the other one has ended, too, and has not finished, somebody starts a new one. */
static void look_after_place(void *context, uint64_t what)
{
    struct sim_worker *worker = context;
    if (worker->life.runs || worker->done || worker->gone)
        return;
    if (worker->before && worker->before->life.runs)
        sim_at(worker->world, SIM_S, look_after_place, worker, 0);
    else if (worker->before && worker->before->done)
        worker->done = true;
    else
        start(worker, 0);
}

static void take_leased(struct sim_worker *worker)
{
    sim_worker_train_leased(worker);
    worker->done = !worker->life.dead;
    if (worker->replaced && worker->world->worker[worker->index] == worker)
        sim_at(worker->world, SIM_S, look_after_place, worker, 0);
}

/* ---- the audit */

static void audit_rows(struct sim_worker *worker)
{
    const struct sim_plan *plan = &worker->world->plan;
    struct sim_pull *pull = &worker->pull[0];
    for (uint32_t t = 0; t < plan->tables && !worker->life.dead; t++)
        for (uint32_t k = 0; k < plan->keys && !worker->life.dead; k += SIM_BATCH_ROWS) {
            pull->batch = (struct sim_batch){.parts = 1};
            pull->batch.part[0].table = t;
            for (uint32_t i = 0; i < SIM_BATCH_ROWS && k + i < plan->keys; i++)
                pull->batch.part[0].key[pull->batch.part[0].rows++] = k + i;
            sim_worker_pull(worker, pull, SIM_NO_STEP);
            (void)sim_worker_wait_pull(worker, pull);
        }
}

/* The model fails if a shard appends one again. (The answer need not say so: a push that was sent again may be repeated by that alone.) */
static void audit_repeats(struct sim_worker *worker)
{
    struct dp_error err = {0};
    for (uint32_t i = 0; i < 4; i++) {
        struct dp_outcome outcome = {0};
        struct dp_ticket ticket;
        const struct sim_plan *plan = &worker->world->plan;
        struct dp_push_options options = {
            .rate = 1,
            .stream = plan->leased
                          ? dp_stream_of_run(SIM_RUN, (uint32_t)sim_draw(worker->world, plan->epochs))
                          : sim_worker_stream(worker),
            .number = sim_draw(worker->world, plan->leased ? plan->total : sim_pushes_of(plan, 0))};
        if (!sim_model_is_acknowledged(worker->world->model, options.stream, options.number))
            continue;
        sim_worker_must(worker, dp_client_push(worker->client, &options, NULL, 0, SIM_WAIT_MS, &ticket, &err),
                        &err);
        sim_worker_must(worker, dp_client_wait(worker->client, &ticket, SIM_WAIT_MS, &outcome, &err), &err);
    }
}

/* ---- a life */

static void start(void *context, uint64_t what);

/* The member has left. (Another process may have come for it meanwhile.) */
static void stay_away(struct sim_worker *worker)
{
    if (worker->world->worker[worker->index] != worker)
        return;
    worker->stands_in = worker->joined = false;
    worker->done = sim_draw(worker->world, 4) == 0; /* for good */
    if (!worker->done)
        sim_at(worker->world,
               SIM_MS * (1 + sim_draw(worker->world, sim_draw(worker->world, 2) ? 20000 : 500)), start,
               worker, 0);
}

static void live(void *context)
{
    struct sim_worker *worker = context;
    static const char *const endpoints[] = {"s0", "s1", "s2"};
    const struct sim_plan *plan = &worker->world->plan;
    bool left = false;
    struct dp_client_options options = {.name = "sim",
                                        .cluster = 7,
                                        .generation = worker->world->generation,
                                        .shards = endpoints,
                                        .shard_count = plan->servers,
                                        .control = worker->world->control ? "control" : NULL,
                                        .window = plan->window,
                                        .retry_ms = plan->retry_ms,
                                        .open_timeout_ms = SIM_WAIT_MS,
                                        .bf16_values = plan->bf16,
                                        .gives_up = sim_life_is_dead,
                                        .gives_up_context = &worker->life};
    struct dp_transport transport = sim_life_transport(&worker->life);
    struct dp_clock clock = sim_life_clock(&worker->life);
    struct dp_error err = {0};
    /* A store whose disk fails answers AGAIN until somebody has started it anew: the client goes on by itself. */
    enum dp_status st =
        dp_client_open_over(&options, &transport, &clock,
                            1 + worker->sessions++ * SIM_WORKERS_MAX + worker->index, &worker->client, &err);
    sim_worker_must(worker, st, &err);
    for (uint32_t t = 0; t < plan->tables && st == DP_OK; t++) {
        st = dp_client_table(worker->client, &plan->table[t], SIM_WAIT_MS, &worker->table[t], &err);
        sim_worker_must(worker, st, &err);
    }
    for (uint32_t i = 0; i < 3 * SIM_BATCH_PARTS; i++)
        sim_worker_must(
            worker, dp_keys_new(&worker->pull[i / SIM_BATCH_PARTS].keys[i % SIM_BATCH_PARTS], &err), &err);
    if (worker->audits && !worker->life.dead) {
        audit_rows(worker);
        audit_repeats(worker);
        worker->done = true;
    } else if (!worker->life.dead && plan->leased) {
        take_leased(worker);
    } else if (!worker->life.dead && worker->stands_in) {
        sim_worker_stand_in(worker);
        left = !worker->life.dead;
    } else if (!worker->life.dead) {
        sim_worker_take_part(worker);
    }
    dp_client_close(&worker->client);
    for (uint32_t i = 0; i < 3 * SIM_BATCH_PARTS; i++)
        dp_keys_free(&worker->pull[i / SIM_BATCH_PARTS].keys[i % SIM_BATCH_PARTS]);
    worker->pushes = 0;
    if (left)
        stay_away(worker);
}

static void start(void *context, uint64_t what)
{
    struct sim_worker *worker = context;
    worker->done = worker->replaced = false;
    sim_say(worker->world, "w%" PRIu32 ": begins life %" PRIu32 " at minibatch %" PRIu32, worker->index,
            worker->life.number + 1, worker->next);
    sim_life_begin(&worker->life);
}

static struct sim_worker *make(struct sim_world *world, uint32_t index, uint32_t slot)
{
    struct sim_worker *worker = calloc(1, sizeof *worker);
    DP_ASSERT(worker);
    worker->world = world;
    worker->index = index;
    worker->life = (struct sim_life){
        .world = world, .slot = slot, .live = live, .send = send_message, .context = worker};
    world->worker[index] = worker;
    return worker;
}

struct sim_worker *sim_worker_new(struct sim_world *world, uint32_t index)
{
    struct sim_worker *worker = make(world, index, index);
    worker->own = !world->plan.fixed && sim_draw(world, 4) == 0 && !sim_has_members(&world->plan) &&
                  !world->plan.leased;
    sim_at(world, sim_draw(world, SIM_S), start, worker, 0);
    return worker;
}

void sim_worker_free(struct sim_worker **out)
{
    struct sim_worker *worker = *out;
    if (worker->before)
        sim_worker_free(&worker->before);
    sim_life_end(&worker->life);
    free(worker);
    *out = NULL;
}

/* Somebody starts another process in the place of one that lives: the register and the shards tell them apart. Or another worker stands in
 * for it. */
static void take_place(struct sim_worker *old, bool stands_in)
{
    struct sim_world *world = old->world;
    uint32_t slot = old->life.slot < SIM_WORKERS_MAX ? old->index + SIM_WORKERS_MAX : old->index;
    if (old->before) /* (freed with the world, as its events are) */
        sim_life_end(&old->before->life);
    struct sim_worker *worker = make(world, old->index, slot);
    worker->before = old;
    worker->life.number = old->life.number;
    worker->sessions = old->sessions;
    worker->acknowledged = old->acknowledged;
    worker->from = old->from;
    memcpy(worker->resets, old->resets, sizeof worker->resets);
    worker->stands_in = stands_in;
    sim_say(world, "w%" PRIu32 ": is to %s", worker->index, stands_in ? "leave" : "be replaced");
    sim_at(world, SIM_MS * (1 + sim_draw(world, 100)), start, worker, 0);
}

static void suspend(struct sim_worker *worker)
{
    uint64_t ms = 1 + sim_draw(worker->world, 20000);
    sim_say(worker->world, "w%" PRIu32 ": sleeps for %" PRIu64 " ms", worker->index, ms);
    sim_life_suspend(&worker->life, ms * SIM_MS);
}

/* It is dead, or sleeps, or was unheard, and goes on until it hears of it. */
static void let_leave(struct sim_worker *worker)
{
    uint64_t how = sim_draw(worker->world, 4);
    if (how < 2)
        sim_life_end(&worker->life);
    else if (how == 2)
        suspend(worker);
    take_place(worker, true);
}

static void leaves_again(void *context, uint64_t life)
{
    struct sim_worker *worker = context;
    if (!worker->world->calm && worker->life.runs && worker->life.number == life && worker->joined &&
        !worker->stands_in && worker->world->worker[worker->index] == worker)
        let_leave(worker);
}

void sim_worker_returned(struct sim_worker *worker)
{
    sim_counts_add(SIM_RETURNED, 1);
    if (sim_draw(worker->world, 4) == 0)
        sim_at(worker->world, sim_draw(worker->world, 1500) * SIM_MS, leaves_again, worker,
               worker->life.number);
}

static void sleeps(void *context, uint64_t life)
{
    struct sim_worker *worker = context;
    if (!worker->world->calm && worker->life.runs && worker->life.number == life)
        suspend(worker);
}

void sim_worker_joins(struct sim_worker *worker)
{
    struct sim_world *world = worker->world;
    if (world->plan.away && sim_draw(world, 2))
        sim_at(world, sim_draw(world, 2) ? 1000 * sim_draw(world, 3000) : sim_draw(world, 300) * SIM_MS,
               sleeps, worker, worker->life.number);
}

void sim_worker_was_passed(struct sim_world *world, uint32_t rank, uint32_t server)
{
    struct sim_worker *worker = world->worker[rank];
    sim_counts_add(SIM_PASSED, 1);
    if (world->calm || sim_draw(world, 2))
        return;
    if (worker->life.runs)
        suspend(worker);
    sim_server_loses_power_at_job(world->server[server], true);
}

/* The step that is open stays so meanwhile, and another member's push of it is there. */
static void another_leaves(const struct sim_worker *worker)
{
    struct sim_world *world = worker->world;
    struct sim_worker *other = world->worker[1 + sim_draw(world, world->plan.workers - 1)];
    if (other != worker)
        sim_at(world, sim_draw(world, 3000) * SIM_MS, leaves_again, other, other->life.number);
}

static bool others_live(const struct sim_worker *worker)
{
    const struct sim_world *world = worker->world;
    for (uint32_t i = 0; i < world->plan.workers; i++)
        if (i != worker->index && !world->worker[i]->gone)
            return true;
    return false;
}

void sim_worker_dies(struct sim_worker *worker)
{
    struct sim_world *world = worker->world;
    if (!worker->life.runs || worker->audits)
        return;
    if (world->plan.away && sim_draw(world, 4) == 0) {
        suspend(worker);
        another_leaves(worker);
        return;
    }
    if (worker->joined && world->plan.away && worker->index > 0 && sim_draw(world, 2)) {
        let_leave(worker);
        return;
    }
    if (worker->joined && sim_draw(world, 2)) {
        take_place(worker, false);
        return;
    }
    if (worker->stands_in) /* another one follows, or it is back in time */
        worker->stands_in = sim_draw(world, 2);
    worker->gone = world->plan.leased && others_live(worker) && sim_draw(world, 3) == 0;
    sim_say(world, "w%" PRIu32 ": dies%s", worker->index, worker->gone ? " for good" : "");
    sim_life_end(&worker->life);
    worker->joined = false;
    if (worker->gone) {
        sim_counts_add(SIM_GONE, 1);
        if (worker->before)
            sim_life_end(&worker->before->life);
        return;
    }
    uint64_t down_ms = world->plan.away && sim_draw(world, 4) == 0 ? 60000 : 2000;
    sim_at(world, SIM_MS * (1 + sim_draw(world, down_ms)), start, worker, 0);
}

void sim_worker_reset(struct sim_worker *worker, uint32_t server)
{
    worker->resets[server]++;
}

bool sim_worker_is_pushing(const struct sim_worker *worker)
{
    return worker->life.runs && worker->pushes > 0;
}

void sim_worker_end(struct sim_worker *worker)
{
    if (worker->before)
        sim_worker_end(worker->before);
    sim_life_end(&worker->life);
    worker->joined = false;
}

/* It knows nothing of what it had done: the servers do. (An earlier process stays the world's.) */
void sim_worker_restored(struct sim_worker *worker)
{
    worker->acknowledged = worker->next = worker->from = 0;
    worker->done = false;
    worker->life.number += worker->life.number == 0; /* it looks where to go on */
    sim_at(worker->world, sim_draw(worker->world, SIM_S), start, worker, 0);
}

void sim_worker_audit(struct sim_worker *worker)
{
    worker->audits = true;
    worker->done = worker->gone = false;
    worker->own = false;
    start(worker, 0);
}

struct sim_worker *sim_worker_of(const struct sim_world *world, uint32_t index, uint32_t life)
{
    struct sim_worker *worker = world->worker[index];
    return worker->before && worker->before->life.number == life ? worker->before : worker;
}

uint32_t sim_worker_index(const struct sim_worker *worker)
{
    return worker->index;
}

uint32_t sim_worker_life(const struct sim_worker *worker)
{
    return worker->life.number;
}

uint32_t sim_worker_resets(const struct sim_worker *worker, uint32_t server)
{
    return worker->resets[server];
}

bool sim_worker_has_own_stream(const struct sim_worker *worker)
{
    return worker->own;
}

bool sim_worker_is_done(const struct sim_worker *worker)
{
    return (worker->done || worker->gone) && (!worker->before || !worker->before->life.runs);
}
