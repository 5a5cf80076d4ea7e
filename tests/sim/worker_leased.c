/* Work that the first server hands out, as worker/coordinate/work_leases.c and step_leased.c take it.
 *     ask -> GIVEN: train | TELL: what every shard has -> ask | WAIT -> ask | OVER: the next epoch
 * While it has something to train, a first server that is away is not waited for. What is left when an epoch is over is trained all the
 * same: others did it too. */
#include "tests/sim/counts.h"
#include "tests/sim/worker_inner.h"

#include <inttypes.h>
#include <string.h>

#define SOON_MS 250u
#define AWAY_MS 1000u

struct sim_held {
    uint32_t epoch;
    uint64_t number[SIM_LEASED_MAX]; /* held: those begun first */
    uint32_t count, begun;
    uint64_t done[SIM_LEASED_MAX]; /* to be told */
    uint32_t done_count;
    uint32_t wait_ms; /* until the next ask */
};

uint32_t sim_worker_epoch(const struct sim_worker *worker)
{
    return worker->held ? worker->held->epoch : 0;
}

void sim_worker_leased_answered(struct sim_worker *worker, uint64_t number)
{
    struct sim_held *held = worker->held;
    DP_ASSERT(held->begun > 0 && held->number[0] == number && held->done_count < SIM_LEASED_MAX);
    memmove(held->number, held->number + 1, --held->count * sizeof held->number[0]);
    held->begun--;
    held->done[held->done_count++] = number;
}

static void take(struct sim_worker *worker, const struct dp_leased *given)
{
    struct sim_held *held = worker->held;
    for (uint32_t i = 0; i < given->count; i++) {
        for (uint32_t k = 0; k < held->count; k++)
            if (held->number[k] == given->number[i])
                sim_fail(worker->world, "worker %" PRIu32 " is given number %" PRIu64 ", which it holds",
                         worker->index, given->number[i]);
        DP_ASSERT(held->count < SIM_LEASED_MAX);
        held->number[held->count++] = given->number[i];
    }
}

static void look_at_shards(struct sim_worker *worker, uint64_t bits[SIM_LEASED_MAX / 64])
{
    uint64_t total = worker->world->plan.total, stream = sim_worker_stream(worker);
    struct dp_error err = {0};
    memset(bits, 0, SIM_LEASED_MAX / 8);
    sim_worker_must(worker, dp_client_pushed(worker->client, stream, 0, total, bits, SIM_WAIT_MS, &err),
                    &err);
    for (uint64_t n = 0; n < total && !worker->life.dead; n++)
        if (bits[n / 64] >> n % 64 & 1)
            sim_model_told_of(worker->world->model, stream, n);
    sim_life_think(&worker->life, sim_draw(worker->world, 300));
}

/* Patient: until there is an answer. WAIT where this worker is dead. */
static enum dp_lease_state ask(struct sim_worker *worker, bool patient)
{
    uint64_t bits[SIM_LEASED_MAX / 64];
    struct sim_held *held = worker->held;
    struct dp_leased given = {.state = DP_LEASE_TELL};
    struct dp_error err = {0};
    uint32_t room = SIM_LEASED_MAX - held->count;
    struct dp_lease lease = {.run = SIM_RUN,
                             .epoch = held->epoch,
                             .total = worker->world->plan.total,
                             .rank = worker->index,
                             .want =
                                 1 + (uint32_t)sim_draw(worker->world, sim_draw(worker->world, 4) ? 4 : 32),
                             .held = held->number,
                             .held_count = held->count,
                             .done = held->done,
                             .done_count = held->done_count};
    lease.want = lease.want < room ? lease.want : room;
    while (given.state == DP_LEASE_TELL && !worker->life.dead) {
        enum dp_status st =
            dp_client_lease(worker->client, &lease, patient ? SIM_WAIT_MS : SOON_MS, &given, &err);
        if (!patient && (st == DP_TIMEOUT || st == DP_UNAVAILABLE)) {
            held->wait_ms = AWAY_MS;
            return DP_LEASE_WAIT;
        }
        sim_worker_must(worker, st, &err);
        if (st == DP_OK && given.state == DP_LEASE_TELL) {
            look_at_shards(worker, bits);
            lease.pushed = bits;
        }
    }
    if (worker->life.dead)
        return DP_LEASE_WAIT;
    take(worker, &given);
    held->done_count = 0;
    held->wait_ms = given.wait_ms;
    worker->joined = true;
    return given.state;
}

static void train_one(struct sim_worker *worker)
{
    const struct sim_plan *plan = &worker->world->plan;
    struct sim_held *held = worker->held;
    uint64_t number = held->number[held->begun], slow = worker->index == 0 && plan->slow ? 4 : 1;
    struct sim_pull *pull = &worker->pull[held->begun % 2];
    sim_batch_make(worker->world, held->epoch, (uint32_t)number, &pull->batch);
    sim_worker_pull(worker, pull, number);
    if (worker->life.dead || !sim_worker_wait_pull(worker, pull))
        return;
    sim_life_think(&worker->life, slow * sim_draw(worker->world, plan->think_ms + 1));
    if (worker->life.dead)
        return;
    held->begun++;
    sim_worker_push(worker, pull, number);
    sim_worker_wait_pushes(worker, plan->in_flight - 1);
}

static void train_epoch(struct sim_worker *worker)
{
    struct sim_held *held = worker->held;
    uint64_t ask_at_ns = 0;
    while (!worker->life.dead) {
        bool idle = held->begun == held->count;
        if (idle)
            sim_worker_wait_pushes(worker, 0);
        if (idle || (worker->world->now_ns >= ask_at_ns && sim_draw(worker->world, 3) == 0)) {
            enum dp_lease_state state = ask(worker, idle);
            if (state == DP_LEASE_OVER && idle)
                return;
            if (state == DP_LEASE_WAIT && idle)
                sim_life_think(&worker->life, held->wait_ms);
            ask_at_ns = worker->world->now_ns + held->wait_ms * SIM_MS;
        }
        if (held->begun < held->count && !worker->life.dead)
            train_one(worker);
    }
}

void sim_worker_train_leased(struct sim_worker *worker)
{
    struct sim_held held = {0};
    worker->held = &held;
    worker->replaced = false;
    for (; held.epoch < worker->world->plan.epochs && !worker->life.dead; held.epoch++) {
        held.count = held.begun = held.done_count = 0;
        train_epoch(worker);
        if (sim_draw(worker->world, 2)) /* it evaluates */
            sim_life_think(&worker->life, sim_draw(worker->world, 3000));
    }
    worker->held = NULL;
}
