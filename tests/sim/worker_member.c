/* What a worker does that has a share of its own: join, find its position, train, leave. */
#include "tests/sim/worker_inner.h"

#include <inttypes.h>

/* A training stream goes on where the servers say, or some numbers before: those are then pushed again. */
static void find_position(struct sim_worker *worker)
{
    uint64_t bits[(SIM_STEPS_MAX + 63) / 64] = {0};
    uint32_t steps = sim_pushes_of(&worker->world->plan, worker->index), told = worker->from,
             back = (uint32_t)sim_draw(worker->world, 3);
    struct dp_error err = {0};
    sim_worker_must(
        worker,
        dp_client_pushed(worker->client, sim_worker_stream(worker), 0, steps, bits, SIM_WAIT_MS, &err), &err);
    if (worker->life.dead)
        return;
    while (told < steps && bits[told / 64] >> told % 64 & 1)
        told++;
    /* (One that slept does not know yet that it has left, and another process has returned.) */
    bool is_member = worker->world->worker[worker->index] == worker;
    for (uint32_t i = told; is_member && i < steps; i++)
        if (bits[i / 64] >> i % 64 & 1)
            sim_fail(worker->world, "worker %" PRIu32 " is told of push %" PRIu32 ", and not of %" PRIu32,
                     worker->index, i, told);
    if (told < worker->acknowledged)
        sim_fail(worker->world,
                 "worker %" PRIu32 " is told of %" PRIu32 " pushes, %" PRIu32 " were acknowledged",
                 worker->index, told, worker->acknowledged);
    sim_say(worker->world, "w%" PRIu32 ": %" PRIu32 " pushes are there, from %" PRIu32 " on", worker->index,
            told - worker->from, worker->from);
    for (uint32_t i = 0; i < worker->from && i < steps; i++) /* of before it was away */
        if (bits[i / 64] >> i % 64 & 1)
            sim_model_told(worker->world->model, sim_worker_stream(worker), i + 1);
    if (told > worker->from)
        sim_model_told(worker->world->model, sim_worker_stream(worker), told);
    worker->told = told;
    worker->next = told > worker->from + back ? told - back : worker->from;
}

/* What is known to be done is pushed again without a pull in sync, where nobody is shown the weights of then any more. */
static void fetch(struct sim_worker *worker, uint32_t number, struct sim_pull *pull)
{
    sim_batch_make(worker->world, worker->index, number, &pull->batch);
    pull->batch.blind |= worker->world->plan.mode == DP_SYNC && number < worker->told;
    sim_worker_pull(worker, pull, number);
}

/* As an evaluation does: what is pulled on nobody's behalf; what somebody pushes in this step. */
static void look(struct sim_worker *worker, uint32_t number)
{
    struct sim_pull *pull = &worker->pull[2];
    sim_batch_make(worker->world, (uint32_t)sim_draw(worker->world, worker->world->plan.workers), number,
                   &pull->batch);
    pull->batch.blind = false;
    sim_worker_pull(worker, pull, SIM_NO_STEP);
    (void)sim_worker_wait_pull(worker, pull);
}

void sim_worker_push_empty(struct sim_worker *worker, uint32_t until)
{
    struct sim_pull *pull = &worker->pull[2];
    while (worker->next < until && !worker->life.dead) {
        sim_batch_make(worker->world, worker->index, worker->next, &pull->batch);
        pull->batch.parts = pull->batch.examples = 0;
        sim_worker_push(worker, pull, worker->next++);
        sim_worker_wait_pushes(worker, worker->world->plan.in_flight - 1);
    }
}

/* Steps that some shard has closed without this worker: their numbers are used up. False: there are none. */
static bool pass_over(struct sim_worker *worker, struct sim_pull *pull, uint32_t steps)
{
    uint64_t first = worker->world->plan.first_step;
    if (pull->open <= first + worker->next)
        return false;
    if (!sim_has_backups(&worker->world->plan))
        sim_fail(worker->world,
                 "worker %" PRIu32 " is told that step %" PRIu64 " is open in its step %" PRIu64,
                 worker->index, pull->open, first + worker->next);
    sim_worker_push_empty(worker, (uint32_t)(pull->open - first < steps ? pull->open - first : steps));
    return true;
}

/* As a worker's loop does it: pulls one ahead, where the plan has pushes overlap. */
void sim_worker_train(struct sim_worker *worker, uint32_t steps)
{
    const struct sim_plan *plan = &worker->world->plan;
    bool ahead = false;
    while (worker->next < steps && !worker->life.dead) {
        struct sim_pull *now = &worker->pull[worker->next % 2], *then = &worker->pull[(worker->next + 1) % 2];
        if (!ahead)
            fetch(worker, worker->next, now);
        if (worker->life.dead || !sim_worker_wait_pull(worker, now))
            return;
        if (pass_over(worker, now, steps)) {
            ahead = false;
            continue;
        }
        sim_life_think(&worker->life, sim_draw(worker->world, plan->think_ms + 1));
        ahead = plan->in_flight > 1 && worker->next + 1 < steps && !worker->life.dead;
        if (ahead)
            fetch(worker, worker->next + 1, then);
        if (!worker->life.dead)
            sim_worker_push(worker, now, worker->next);
        worker->next++;
        sim_worker_wait_pushes(worker, plan->in_flight - 1);
        if (sim_has_members(plan) && !worker->life.dead && sim_draw(worker->world, 3) == 0)
            look(worker, worker->next - 1);
    }
    sim_worker_wait_pushes(worker, 0);
}

void sim_worker_join(struct sim_worker *worker)
{
    const struct sim_plan *plan = &worker->world->plan;
    const struct dp_join options = {.run = SIM_RUN,
                                    .rank = worker->index,
                                    .members = plan->workers,
                                    .mode = plan->mode,
                                    .slack = plan->slack,
                                    .first_step = plan->first_step,
                                    .returns = plan->away && !worker->stands_in};
    struct dp_error err = {0};
    uint32_t was = worker->from;
    sim_worker_joins(worker);
    sim_worker_must(worker, dp_client_join(worker->client, &options, SIM_WAIT_MS, &err), &err);
    worker->joined = !worker->life.dead;
    worker->from = (uint32_t)(dp_client_joined_at(worker->client) - plan->first_step);
    if (worker->joined && !worker->stands_in && worker->from > was)
        sim_worker_returned(worker);
}

void sim_worker_leave(struct sim_worker *worker, uint32_t before)
{
    struct dp_error err = {0};
    uint64_t until = sim_worker_step(worker, before);
    sim_worker_must(worker, dp_client_leave(worker->client, until, SIM_WAIT_MS, &err), &err);
    if (!worker->life.dead)
        sim_model_left(worker->world->model, worker->index);
}

void sim_worker_take_part(struct sim_worker *worker)
{
    bool member = sim_has_members(&worker->world->plan);
    uint32_t steps = sim_pushes_of(&worker->world->plan, worker->index);
    worker->told = 0;
    if (member)
        sim_worker_join(worker);
    if (!worker->own && worker->life.number > 1 && !worker->life.dead)
        find_position(worker);
    if (!worker->life.dead)
        sim_worker_train(worker, steps);
    if (member && !worker->life.dead)
        sim_worker_leave(worker, steps > worker->from ? steps : worker->from);
    worker->done = !worker->life.dead;
}
