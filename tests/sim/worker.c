#include "tests/sim/worker.h"

#include "common/client/client_inner.h"
#include "tests/sim/batch.h"
#include "tests/sim/life.h"
#include "tests/sim/model.h"
#include "tests/sim/net.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLIGHT_MAX 4u
#define WAIT_MS    600000u
#define NO_STEP    UINT64_MAX

struct pull {
    struct sim_batch batch;
    struct dp_ticket ticket;
    struct dp_keys *keys[SIM_BATCH_PARTS];
    float weights[SIM_BATCH_PARTS][SIM_BATCH_ROWS * SIM_BATCH_DIM];
    uint32_t floor[SIM_BATCH_PARTS][SIM_BATCH_ROWS];
    struct dp_pulled_at at[SIM_SERVERS_MAX];
    uint64_t step;
    uint64_t open;   /* the greatest step that a shard's rows are of */
    uint64_t closed; /* of nobody's: the steps that it must show */
};

struct push {
    struct dp_ticket ticket;
    uint64_t stream, number;
};

struct sim_worker {
    struct sim_world *world;
    struct sim_life life;
    uint32_t index, resets[SIM_SERVERS_MAX + 1]; /* the last: of the control endpoint, none */
    bool audits, done;
    bool joined;               /* in this life */
    struct sim_worker *before; /* an earlier process in its place, that has yet to hear of it; NULL: none */
    bool own;                  /* pushes under a stream that shard 0 gives */
    uint64_t sessions;         /* opened */
    uint32_t next,
        acknowledged; /* numbers of minibatches: the next; below which all were (training stream) */
    uint32_t told;    /* below which this life was told that all are there */
    struct dp_client *client;
    struct dp_client_table *table[SIM_TABLES_MAX];
    struct pull pull[3]; /* two of its minibatches, one of nobody's */
    struct push push[FLIGHT_MAX];
    uint32_t pushes;
};

static void send_message(void *context, uint32_t server, struct dp_message *message)
{
    const struct sim_worker *worker = context;
    sim_net_to_server(worker->world, worker, server, message);
}

void sim_worker_receive(struct sim_worker *worker, uint32_t server, struct dp_message **message)
{
    sim_life_receive(&worker->life, server, message);
}

static float gradients[SIM_BATCH_PARTS]
                      [SIM_BATCH_ROWS * SIM_BATCH_DIM]; /* of the push at hand: nobody waits meanwhile */

static void compute(const struct sim_worker *worker, const struct pull *pull, uint64_t number)
{
    for (uint32_t p = 0; p < pull->batch.parts; p++) {
        uint32_t table = pull->batch.part[p].table, dim = worker->world->plan.table[table].dim;
        for (uint32_t i = 0; i < pull->batch.part[p].rows; i++)
            sim_batch_gradient(worker->world, worker->index, table, pull->batch.part[p].key[i], number,
                               pull->weights[p] + (size_t)i * dim, gradients[p] + (size_t)i * dim);
    }
}

/* ---- a step */

/* A process whose place was taken hears so, and ends. */
static void must(struct sim_worker *worker, enum dp_status st, const struct dp_error *err)
{
    if (st == DP_REPLACED && worker->world->worker[worker->index] != worker) {
        sim_say(worker->world, "w%" PRIu32 ": life %" PRIu32 " is replaced: %s", worker->index,
                worker->life.number, err->text);
        worker->life.dead = true;
    }
    if (st != DP_OK && !worker->life.dead)
        sim_fail(worker->world, "worker %" PRIu32 ": %s: %s", worker->index, dp_status_name((int)st),
                 err->text);
}

static uint64_t step_of(const struct sim_worker *worker, uint64_t number)
{
    return worker->world->plan.first_step + number;
}

/* The minibatch of this number, as a member's for its step; NO_STEP: for nobody. */
static void pull_issue(struct sim_worker *worker, struct pull *pull, uint64_t number)
{
    struct dp_pull_part parts[SIM_BATCH_PARTS];
    struct dp_error err = {0};
    bool newest = worker->audits;
    pull->ticket.id = 0;
    pull->step =
        number != NO_STEP && sim_has_members(&worker->world->plan) ? step_of(worker, number) : NO_STEP;
    pull->closed = sim_model_closed_steps(worker->world->model);
    for (uint32_t i = 0; i < worker->world->plan.servers; i++)
        pull->at[i] = (struct dp_pulled_at){.applied = DP_NOT_MEASURED};
    for (uint32_t p = 0; p < pull->batch.parts; p++) {
        uint32_t table = pull->batch.part[p].table;
        must(worker, dp_keys_set(pull->keys[p], pull->batch.part[p].key, pull->batch.part[p].rows, &err),
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
    enum dp_status st =
        pull->step == NO_STEP
            ? dp_client_pull(worker->client, parts, pull->batch.parts, pull->at, WAIT_MS, &pull->ticket, &err)
            : dp_client_pull_step(worker->client, pull->step, parts, pull->batch.parts, pull->at, WAIT_MS,
                                  &pull->ticket, &err);
    must(worker, st, &err);
}

/* False: this worker is dead. */
static bool pull_wait(struct sim_worker *worker, struct pull *pull)
{
    struct dp_error err = {0};
    struct dp_outcome outcome = {0};
    pull->open = 0;
    if (pull->batch.blind)
        return !worker->life.dead;
    enum dp_status st = dp_client_wait(worker->client, &pull->ticket, WAIT_MS, &outcome, &err);
    must(worker, st, &err); /* a disk's read that fails is AGAIN, and read once more */
    if (worker->life.dead)
        return false;
    pull->open = outcome.open;
    for (uint32_t p = 0; p < pull->batch.parts; p++) {
        uint32_t table = pull->batch.part[p].table, dim = worker->world->plan.table[table].dim;
        for (uint32_t i = 0; i < pull->batch.part[p].rows; i++) {
            const float *weights = pull->weights[p] + (size_t)i * dim;
            sim_model_pulled(worker->world->model, table, pull->batch.part[p].key[i], pull->floor[p][i],
                             weights);
            if (pull->step != NO_STEP)
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
    struct push *push = &worker->push[0];
    enum dp_status st = dp_client_wait(worker->client, &push->ticket, WAIT_MS, &outcome, &err);
    must(worker, st, &err);
    if (worker->life.dead)
        return;
    sim_say(worker->world, "w%" PRIu32 ": push %" PRIu64 " of %016" PRIx64 " is acknowledged", worker->index,
            push->number, push->stream);
    sim_model_acknowledged(worker->world->model, push->stream, push->number);
    worker->acknowledged = worker->own || push->number < worker->acknowledged ? worker->acknowledged
                                                                              : (uint32_t)push->number + 1;
    memmove(&worker->push[0], &worker->push[1], --worker->pushes * sizeof worker->push[0]);
}

static uint64_t training_stream(const struct sim_worker *worker)
{
    return UINT64_C(1) << 63 | (worker->index + 1);
}

static void push_issue(struct sim_worker *worker, const struct pull *pull, uint64_t number)
{
    struct sim_sent sent[SIM_BATCH_PARTS];
    struct dp_push_part parts[SIM_BATCH_PARTS];
    struct dp_error err = {0};
    struct dp_push_options options = {
        .rate = pull->batch.rate, .pulled_at = pull->at, .by_staleness = worker->world->plan.stales};
    options.stream = worker->own ? 0 : training_stream(worker);
    options.number = worker->own ? worker->client->next_number : number;
    options.in_step = sim_has_members(&worker->world->plan);
    options.step = options.in_step ? step_of(worker, number) : 0;
    options.examples = options.in_step ? pull->batch.examples : 0;
    for (uint32_t p = 0; p < pull->batch.parts; p++) {
        sent[p] = (struct sim_sent){pull->batch.part[p].table, pull->batch.part[p].rows,
                                    pull->batch.part[p].key, gradients[p]};
        parts[p] = (struct dp_push_part){worker->table[sent[p].table], pull->keys[p], gradients[p]};
    }
    struct push *push = &worker->push[worker->pushes];
    push->stream = worker->own ? worker->client->session.stream : options.stream;
    push->number = options.number;
    compute(worker, pull, number);
    sim_model_sends(worker->world->model, push->stream, push->number, sent, pull->batch.parts);
    must(worker,
         dp_client_push(worker->client, &options, parts, pull->batch.parts, WAIT_MS, &push->ticket, &err),
         &err);
    worker->pushes++;
}

/* A training stream goes on where the servers say, or some numbers before: those are then pushed again. */
static void find_position(struct sim_worker *worker)
{
    uint64_t bits[(SIM_STEPS_MAX + 63) / 64] = {0};
    uint32_t steps = sim_pushes_of(&worker->world->plan, worker->index), told = 0,
             back = (uint32_t)sim_draw(worker->world, 3);
    struct dp_error err = {0};
    must(worker, dp_client_pushed(worker->client, training_stream(worker), 0, steps, bits, WAIT_MS, &err),
         &err);
    if (worker->life.dead)
        return;
    while (told < steps && bits[told / 64] >> told % 64 & 1)
        told++;
    for (uint32_t i = told; i < steps; i++)
        if (bits[i / 64] >> i % 64 & 1)
            sim_fail(worker->world, "worker %" PRIu32 " is told of push %" PRIu32 ", and not of %" PRIu32,
                     worker->index, i, told);
    if (told < worker->acknowledged)
        sim_fail(worker->world,
                 "worker %" PRIu32 " is told of %" PRIu32 " pushes, %" PRIu32 " were acknowledged",
                 worker->index, told, worker->acknowledged);
    sim_say(worker->world, "w%" PRIu32 ": %" PRIu32 " pushes are there", worker->index, told);
    sim_model_told(worker->world->model, training_stream(worker), told);
    worker->told = told;
    worker->next = told > back ? told - back : 0;
}

/* What is known to be done is pushed again without a pull in sync, where nobody is shown the weights of then any more. */
static void fetch(struct sim_worker *worker, uint32_t number, struct pull *pull)
{
    sim_batch_make(worker->world, worker->index, number, &pull->batch);
    pull->batch.blind |= worker->world->plan.mode == DP_SYNC && number < worker->told;
    pull_issue(worker, pull, number);
}

static void wait_pushes(struct sim_worker *worker, uint32_t most)
{
    while (!worker->life.dead && worker->pushes > most)
        push_wait(worker);
}

/* As an evaluation does: what is pulled on nobody's behalf; what somebody pushes in this step. */
static void look(struct sim_worker *worker, uint32_t number)
{
    struct pull *pull = &worker->pull[2];
    sim_batch_make(worker->world, (uint32_t)sim_draw(worker->world, worker->world->plan.workers), number,
                   &pull->batch);
    pull->batch.blind = false;
    pull_issue(worker, pull, NO_STEP);
    (void)pull_wait(worker, pull);
}

/* Steps that some shard has closed without this worker: their numbers are used up. False: there are none. */
static bool pass_over(struct sim_worker *worker, struct pull *pull)
{
    uint64_t first = worker->world->plan.first_step;
    uint32_t steps = sim_pushes_of(&worker->world->plan, worker->index);
    if (pull->open <= first + worker->next)
        return false;
    if (!sim_has_backups(&worker->world->plan))
        sim_fail(worker->world,
                 "worker %" PRIu32 " is told that step %" PRIu64 " is open in its step %" PRIu64,
                 worker->index, pull->open, first + worker->next);
    while (worker->next < steps && first + worker->next < pull->open && !worker->life.dead) {
        sim_batch_make(worker->world, worker->index, worker->next, &pull->batch);
        pull->batch.parts = pull->batch.examples = 0;
        push_issue(worker, pull, worker->next++);
        wait_pushes(worker, worker->world->plan.in_flight - 1);
    }
    return true;
}

/* As a worker's loop does it: pulls one ahead, where the plan has pushes overlap. */
static void train(struct sim_worker *worker)
{
    const struct sim_plan *plan = &worker->world->plan;
    uint32_t steps = sim_pushes_of(plan, worker->index);
    bool ahead = false;
    while (worker->next < steps && !worker->life.dead) {
        struct pull *now = &worker->pull[worker->next % 2], *then = &worker->pull[(worker->next + 1) % 2];
        if (!ahead)
            fetch(worker, worker->next, now);
        if (worker->life.dead || !pull_wait(worker, now))
            return;
        if (pass_over(worker, now)) {
            ahead = false;
            continue;
        }
        sim_life_think(&worker->life, sim_draw(worker->world, plan->think_ms + 1));
        ahead = plan->in_flight > 1 && worker->next + 1 < steps && !worker->life.dead;
        if (ahead)
            fetch(worker, worker->next + 1, then);
        if (!worker->life.dead)
            push_issue(worker, now, worker->next);
        worker->next++;
        wait_pushes(worker, plan->in_flight - 1);
        if (sim_has_members(plan) && !worker->life.dead && sim_draw(worker->world, 3) == 0)
            look(worker, worker->next - 1);
    }
    wait_pushes(worker, 0);
}

static void join(struct sim_worker *worker)
{
    const struct sim_plan *plan = &worker->world->plan;
    const struct dp_join options = {.run = SIM_RUN,
                                    .rank = worker->index,
                                    .members = plan->workers,
                                    .mode = plan->mode,
                                    .slack = plan->slack,
                                    .first_step = plan->first_step};
    struct dp_error err = {0};
    must(worker, dp_client_join(worker->client, &options, WAIT_MS, &err), &err);
    worker->joined = !worker->life.dead;
}

static void leave(struct sim_worker *worker)
{
    struct dp_error err = {0};
    uint64_t until = step_of(worker, sim_pushes_of(&worker->world->plan, worker->index));
    must(worker, dp_client_leave(worker->client, until, WAIT_MS, &err), &err);
    if (!worker->life.dead)
        sim_model_left(worker->world->model, worker->index);
}

static void take_part(struct sim_worker *worker)
{
    bool member = sim_has_members(&worker->world->plan);
    worker->told = 0;
    if (member)
        join(worker);
    if (!worker->own && worker->life.number > 1 && !worker->life.dead)
        find_position(worker);
    if (!worker->life.dead)
        train(worker);
    if (member && !worker->life.dead)
        leave(worker);
    worker->done = !worker->life.dead;
}

/* ---- the audit */

static void audit_rows(struct sim_worker *worker)
{
    const struct sim_plan *plan = &worker->world->plan;
    struct pull *pull = &worker->pull[0];
    for (uint32_t t = 0; t < plan->tables && !worker->life.dead; t++)
        for (uint32_t k = 0; k < plan->keys && !worker->life.dead; k += SIM_BATCH_ROWS) {
            pull->batch = (struct sim_batch){.parts = 1};
            pull->batch.part[0].table = t;
            for (uint32_t i = 0; i < SIM_BATCH_ROWS && k + i < plan->keys; i++)
                pull->batch.part[0].key[pull->batch.part[0].rows++] = k + i;
            pull_issue(worker, pull, NO_STEP);
            (void)pull_wait(worker, pull);
        }
}

static void audit_repeats(struct sim_worker *worker)
{
    struct dp_error err = {0};
    for (uint32_t i = 0; i < 4; i++) {
        struct dp_outcome outcome = {0};
        struct dp_ticket ticket;
        struct dp_push_options options = {
            .rate = 1,
            .stream = training_stream(worker),
            .number = sim_draw(worker->world, sim_pushes_of(&worker->world->plan, 0))};
        if (!sim_model_is_acknowledged(worker->world->model, options.stream, options.number))
            continue;
        must(worker, dp_client_push(worker->client, &options, NULL, 0, WAIT_MS, &ticket, &err), &err);
        must(worker, dp_client_wait(worker->client, &ticket, WAIT_MS, &outcome, &err), &err);
        if (!outcome.repeated)
            sim_fail(worker->world, "push %" PRIu64 " of stream %016" PRIx64 " was taken a second time",
                     options.number, options.stream);
    }
}

/* ---- a life */

static void live(void *context)
{
    struct sim_worker *worker = context;
    static const char *const endpoints[] = {"s0", "s1", "s2"};
    const struct sim_plan *plan = &worker->world->plan;
    struct dp_client_options options = {.name = "sim",
                                        .cluster = 7,
                                        .generation = 1,
                                        .shards = endpoints,
                                        .shard_count = plan->servers,
                                        .control = sim_has_members(plan) ? "control" : NULL,
                                        .window = plan->window,
                                        .retry_ms = plan->retry_ms,
                                        .open_timeout_ms = WAIT_MS,
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
    must(worker, st, &err);
    for (uint32_t t = 0; t < plan->tables && st == DP_OK; t++) {
        st = dp_client_table(worker->client, &plan->table[t], WAIT_MS, &worker->table[t], &err);
        must(worker, st, &err);
    }
    for (uint32_t i = 0; i < 3 * SIM_BATCH_PARTS; i++)
        must(worker, dp_keys_new(&worker->pull[i / SIM_BATCH_PARTS].keys[i % SIM_BATCH_PARTS], &err), &err);
    if (worker->audits && !worker->life.dead) {
        audit_rows(worker);
        audit_repeats(worker);
        worker->done = true;
    } else if (!worker->life.dead) {
        take_part(worker);
    }
    dp_client_close(&worker->client);
    for (uint32_t i = 0; i < 3 * SIM_BATCH_PARTS; i++)
        dp_keys_free(&worker->pull[i / SIM_BATCH_PARTS].keys[i % SIM_BATCH_PARTS]);
    worker->pushes = 0;
}

static void start(void *context, uint64_t what)
{
    struct sim_worker *worker = context;
    (void)what;
    worker->done = false;
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
    worker->own = !world->plan.fixed && sim_draw(world, 4) == 0 && !sim_has_members(&world->plan);
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

/* Somebody starts another process in the place of one that lives: the register and the shards tell them apart. */
static void take_place(struct sim_worker *old)
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
    memcpy(worker->resets, old->resets, sizeof worker->resets);
    sim_say(world, "w%" PRIu32 ": is to be replaced", worker->index);
    sim_at(world, SIM_MS * (1 + sim_draw(world, 100)), start, worker, 0);
}

void sim_worker_dies(struct sim_worker *worker)
{
    if (!worker->life.runs || worker->audits)
        return;
    if (worker->joined && sim_draw(worker->world, 2)) {
        take_place(worker);
        return;
    }
    sim_say(worker->world, "w%" PRIu32 ": dies", worker->index);
    sim_life_end(&worker->life);
    worker->joined = false;
    sim_at(worker->world, SIM_MS * (1 + sim_draw(worker->world, 2000)), start, worker, 0);
}

void sim_worker_reset(struct sim_worker *worker, uint32_t server)
{
    worker->resets[server]++;
}

void sim_worker_audit(struct sim_worker *worker)
{
    worker->audits = true;
    worker->done = false;
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
    return worker->done && (!worker->before || !worker->before->life.runs);
}
