#include "tests/sim/worker_inner.h"

#include "common/model/stream.h"

#include <inttypes.h>
#include <string.h>

static float gradients[SIM_BATCH_PARTS]
                      [SIM_BATCH_ROWS * SIM_BATCH_DIM]; /* of the push at hand: nobody waits meanwhile */

static void compute(const struct sim_worker *worker, const struct sim_pull *pull, uint64_t number)
{
    for (uint32_t p = 0; p < pull->batch.parts; p++) {
        uint32_t table = pull->batch.part[p].table, dim = worker->world->plan.table[table].dim;
        for (uint32_t i = 0; i < pull->batch.part[p].rows; i++)
            sim_batch_gradient(worker->world, worker->index, table, pull->batch.part[p].key[i], number,
                               pull->weights[p] + (size_t)i * dim, gradients[p] + (size_t)i * dim);
    }
}

/* (Of leases, also one that came later: of two that ask a first server which has started again, who asks last stays.) */
void sim_worker_must(struct sim_worker *worker, enum dp_status st, const struct dp_error *err)
{
    if (st == DP_REPLACED && (worker->world->worker[worker->index] != worker || worker->world->plan.leased)) {
        sim_say(worker->world, "w%" PRIu32 ": life %" PRIu32 " is replaced: %s", worker->index,
                worker->life.number, err->text);
        worker->life.dead = worker->replaced = true;
        if (worker->world->plan.away)
            sim_model_lost_its_place(worker->world->model, worker->index, worker->client->place.incarnation,
                                     dp_client_was_let_leave(worker->client));
    }
    if (st != DP_OK && !worker->life.dead)
        sim_fail(worker->world, "worker %" PRIu32 ": %s: %s", worker->index, dp_status_name((int)st),
                 err->text);
}

uint64_t sim_worker_step(const struct sim_worker *worker, uint64_t number)
{
    return worker->world->plan.first_step + number;
}

void sim_worker_pull(struct sim_worker *worker, struct sim_pull *pull, uint64_t number)
{
    struct dp_pull_part parts[SIM_BATCH_PARTS];
    struct dp_error err = {0};
    bool newest = worker->audits;
    pull->ticket.id = 0;
    pull->step = number != SIM_NO_STEP && sim_has_members(&worker->world->plan)
                     ? sim_worker_step(worker, number)
                     : SIM_NO_STEP;
    pull->closed = sim_model_closed_steps(worker->world->model);
    for (uint32_t i = 0; i < worker->world->plan.servers; i++)
        pull->at[i] = (struct dp_pulled_at){.applied = DP_NOT_MEASURED};
    for (uint32_t p = 0; p < pull->batch.parts; p++) {
        uint32_t table = pull->batch.part[p].table;
        sim_worker_must(worker,
                        dp_keys_set(pull->keys[p], pull->batch.part[p].key, pull->batch.part[p].rows, &err),
                        &err);
        parts[p] = (struct dp_pull_part){worker->table[table], pull->keys[p], pull->weights[p]};
        for (uint32_t i = 0; i < pull->batch.part[p].rows; i++)
            pull->floor[p][i] =
                newest ? sim_model_newest(worker->world->model, table, pull->batch.part[p].key[i])
                       : sim_model_floor(worker->world->model, table, pull->batch.part[p].key[i]);
    }
    if (pull->batch.blind) {
        memset(pull->weights, 0, sizeof pull->weights);
        return;
    }
    enum dp_status st = pull->step == SIM_NO_STEP
                            ? dp_client_pull(worker->client, parts, pull->batch.parts, pull->at, SIM_WAIT_MS,
                                             &pull->ticket, &err)
                            : dp_client_pull_step(worker->client, pull->step, parts, pull->batch.parts,
                                                  pull->at, SIM_WAIT_MS, &pull->ticket, &err);
    sim_worker_must(worker, st, &err);
}

/* False: this worker is dead. */
bool sim_worker_wait_pull(struct sim_worker *worker, struct sim_pull *pull)
{
    struct dp_error err = {0};
    struct dp_outcome outcome = {0};
    pull->open = 0;
    if (pull->batch.blind)
        return !worker->life.dead;
    enum dp_status st = dp_client_wait(worker->client, &pull->ticket, SIM_WAIT_MS, &outcome, &err);
    sim_worker_must(worker, st, &err); /* a disk's read that fails is AGAIN, and read once more */
    if (worker->life.dead)
        return false;
    pull->open = outcome.open;
    for (uint32_t p = 0; p < pull->batch.parts; p++) {
        uint32_t table = pull->batch.part[p].table, dim = worker->world->plan.table[table].dim;
        for (uint32_t i = 0; i < pull->batch.part[p].rows; i++) {
            const float *weights = pull->weights[p] + (size_t)i * dim;
            sim_model_pulled(worker->world->model, table, pull->batch.part[p].key[i], pull->floor[p][i],
                             weights);
            if (pull->step != SIM_NO_STEP)
                sim_model_pulled_in_step(worker->world->model, table, pull->batch.part[p].key[i], pull->step,
                                         weights);
            else
                sim_model_pulled_between_steps(worker->world->model, table, pull->batch.part[p].key[i],
                                               pull->closed, weights);
        }
    }
    return true;
}

static void push_wait(struct sim_worker *worker)
{
    struct dp_error err = {0};
    struct dp_outcome outcome;
    struct sim_push *push = &worker->push[0];
    enum dp_status st = dp_client_wait(worker->client, &push->ticket, SIM_WAIT_MS, &outcome, &err);
    sim_worker_must(worker, st, &err);
    if (worker->life.dead)
        return;
    sim_say(worker->world, "w%" PRIu32 ": push %" PRIu64 " of %016" PRIx64 " is acknowledged", worker->index,
            push->number, push->stream);
    sim_model_acknowledged(worker->world->model, push->stream, push->number);
    if (worker->held)
        sim_worker_leased_answered(worker, push->number);
    else if (!worker->own && push->number >= worker->acknowledged)
        worker->acknowledged = (uint32_t)push->number + 1;
    memmove(&worker->push[0], &worker->push[1], --worker->pushes * sizeof worker->push[0]);
}

uint64_t sim_worker_stream(const struct sim_worker *worker)
{
    if (worker->world->plan.leased)
        return dp_stream_of_run(SIM_RUN, sim_worker_epoch(worker));
    return UINT64_C(1) << 63 | (worker->index + 1);
}

void sim_worker_push(struct sim_worker *worker, const struct sim_pull *pull, uint64_t number)
{
    struct sim_sent sent[SIM_BATCH_PARTS];
    struct dp_push_part parts[SIM_BATCH_PARTS];
    struct dp_error err = {0};
    struct dp_push_options options = {
        .rate = pull->batch.rate, .pulled_at = pull->at, .by_staleness = worker->world->plan.stales};
    options.stream = worker->own ? 0 : sim_worker_stream(worker);
    options.number = worker->own ? worker->client->next_number : number;
    options.in_step = sim_has_members(&worker->world->plan);
    options.step = options.in_step ? sim_worker_step(worker, number) : 0;
    options.examples = options.in_step ? pull->batch.examples : 0;
    for (uint32_t p = 0; p < pull->batch.parts; p++) {
        sent[p] = (struct sim_sent){pull->batch.part[p].table, pull->batch.part[p].rows,
                                    pull->batch.part[p].key, gradients[p]};
        parts[p] = (struct dp_push_part){worker->table[sent[p].table], pull->keys[p], gradients[p]};
    }
    struct sim_push *push = &worker->push[worker->pushes];
    push->stream = worker->own ? worker->client->session.stream : options.stream;
    push->number = options.number;
    compute(worker, pull, number);
    sim_model_sends(worker->world->model, push->stream, push->number, sent, pull->batch.parts);
    sim_worker_must(
        worker,
        dp_client_push(worker->client, &options, parts, pull->batch.parts, SIM_WAIT_MS, &push->ticket, &err),
        &err);
    worker->pushes++;
}

void sim_worker_wait_pushes(struct sim_worker *worker, uint32_t most)
{
    while (!worker->life.dead && worker->pushes > most)
        push_wait(worker);
}
