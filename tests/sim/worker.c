#include "tests/sim/worker.h"

#include "common/client/client_inner.h"
#include "common/model/init.h"
#include "common/model/mix.h"
#include "common/model/optimizer.h"
#include "common/model/row.h"
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

struct pull {
    struct sim_batch batch;
    struct dp_ticket ticket;
    struct dp_keys *keys[SIM_BATCH_PARTS];
    float weights[SIM_BATCH_PARTS][SIM_BATCH_ROWS * SIM_BATCH_DIM];
    uint32_t floor[SIM_BATCH_PARTS][SIM_BATCH_ROWS];
    uint64_t applied[SIM_SERVERS_MAX];
};

struct push {
    struct dp_ticket ticket;
    uint64_t stream, number;
};

struct sim_worker {
    struct sim_world *world;
    struct sim_life life;
    uint32_t index, resets[SIM_SERVERS_MAX];
    bool audits, done;
    bool own;          /* pushes under a stream that shard 0 gives */
    uint64_t sessions; /* opened */
    uint32_t next,
        acknowledged; /* numbers of minibatches: the next; below which all were (training stream) */
    struct dp_client *client;
    struct dp_client_table *table[SIM_TABLES_MAX];
    struct pull pull[2];
    struct push push[FLIGHT_MAX];
    uint32_t pushes;
};

static void send_message(void *context, uint32_t server, struct dp_message *message)
{
    const struct sim_worker *worker = context;
    sim_net_to_server(worker->world, worker->index, server, message);
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
            sim_batch_gradient(worker->world, table, pull->batch.part[p].key[i], number,
                               pull->weights[p] + (size_t)i * dim, gradients[p] + (size_t)i * dim);
    }
}

/* ---- a step */

static void must(const struct sim_worker *worker, enum dp_status st, const struct dp_error *err)
{
    if (st != DP_OK && !worker->life.dead)
        sim_fail(worker->world, "worker %" PRIu32 ": %s: %s", worker->index, dp_status_name((int)st),
                 err->text);
}

static void pull_issue(struct sim_worker *worker, struct pull *pull, bool newest)
{
    struct dp_pull_part parts[SIM_BATCH_PARTS];
    struct dp_error err = {0};
    pull->ticket.id = 0;
    for (uint32_t i = 0; i < worker->world->plan.servers; i++)
        pull->applied[i] = DP_NOT_MEASURED;
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
        dp_client_pull(worker->client, parts, pull->batch.parts, pull->applied, WAIT_MS, &pull->ticket, &err);
    must(worker, st, &err);
}

/* False: this worker is dead. */
static bool pull_wait(struct sim_worker *worker, struct pull *pull)
{
    struct dp_error err = {0};
    if (pull->batch.blind)
        return !worker->life.dead;
    enum dp_status st = dp_client_wait(worker->client, &pull->ticket, WAIT_MS, NULL, &err);
    must(worker, st, &err); /* a disk's read that fails is AGAIN, and read once more */
    if (worker->life.dead)
        return false;
    for (uint32_t p = 0; p < pull->batch.parts; p++) {
        uint32_t table = pull->batch.part[p].table, dim = worker->world->plan.table[table].dim;
        for (uint32_t i = 0; i < pull->batch.part[p].rows; i++)
            sim_model_pulled(worker->world->model, table, pull->batch.part[p].key[i], pull->floor[p][i],
                             pull->weights[p] + (size_t)i * dim);
    }
    return true;
}

static void push_wait(struct sim_worker *worker)
{
    struct dp_error err = {0};
    struct dp_outcome outcome;
    struct push *push = &worker->push[0];
    enum dp_status st = dp_client_wait(worker->client, &push->ticket, WAIT_MS, &outcome, &err);
    if (worker->life.dead)
        return;
    must(worker, st, &err);
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
    struct dp_push_options options = {.rate = pull->batch.rate, .applied = pull->applied};
    options.stream = worker->own ? 0 : training_stream(worker);
    options.number = worker->own ? worker->client->next_number : number;
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
    uint32_t steps = worker->world->plan.steps, told = 0, back = (uint32_t)sim_draw(worker->world, 3);
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
    worker->next = told > back ? told - back : 0;
}

/* As a worker's loop does it: pulls one ahead, where the plan has pushes overlap. */
static void train(struct sim_worker *worker)
{
    const struct sim_plan *plan = &worker->world->plan;
    bool ahead = false;
    if (!worker->own && worker->life.number > 1)
        find_position(worker);
    while (worker->next < plan->steps && !worker->life.dead) {
        struct pull *now = &worker->pull[worker->next % 2], *then = &worker->pull[(worker->next + 1) % 2];
        if (!ahead) {
            sim_batch_make(worker->world, worker->index, worker->next, &now->batch);
            pull_issue(worker, now, false);
        }
        if (worker->life.dead || !pull_wait(worker, now))
            return;
        sim_life_think(&worker->life, sim_draw(worker->world, plan->think_ms + 1));
        ahead = plan->in_flight > 1 && worker->next + 1 < plan->steps && !worker->life.dead;
        if (ahead) {
            sim_batch_make(worker->world, worker->index, worker->next + 1, &then->batch);
            pull_issue(worker, then, false);
        }
        if (!worker->life.dead)
            push_issue(worker, now, worker->next);
        worker->next++;
        while (!worker->life.dead && worker->pushes > 0 && worker->pushes >= plan->in_flight)
            push_wait(worker);
    }
    while (!worker->life.dead && worker->pushes > 0)
        push_wait(worker);
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
            pull_issue(worker, pull, true);
            (void)pull_wait(worker, pull);
        }
}

static void audit_repeats(struct sim_worker *worker)
{
    struct dp_error err = {0};
    for (uint32_t i = 0; i < 4; i++) {
        struct dp_outcome outcome = {0};
        struct dp_ticket ticket;
        struct dp_push_options options = {.rate = 1,
                                          .stream = training_stream(worker),
                                          .number = sim_draw(worker->world, worker->world->plan.steps)};
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
    for (uint32_t i = 0; i < 2 * SIM_BATCH_PARTS; i++)
        must(worker, dp_keys_new(&worker->pull[i / SIM_BATCH_PARTS].keys[i % SIM_BATCH_PARTS], &err), &err);
    if (worker->audits && !worker->life.dead) {
        audit_rows(worker);
        audit_repeats(worker);
        worker->done = true;
    } else if (!worker->life.dead) {
        train(worker);
    }
    dp_client_close(&worker->client);
    for (uint32_t i = 0; i < 2 * SIM_BATCH_PARTS; i++)
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

struct sim_worker *sim_worker_new(struct sim_world *world, uint32_t index)
{
    struct sim_worker *worker = calloc(1, sizeof *worker);
    DP_ASSERT(worker);
    worker->world = world;
    worker->index = index;
    worker->life = (struct sim_life){
        .world = world, .slot = index, .live = live, .send = send_message, .context = worker};
    worker->own = !world->plan.fixed && sim_draw(world, 4) == 0;
    world->worker[index] = worker;
    sim_at(world, sim_draw(world, SIM_S), start, worker, 0);
    return worker;
}

void sim_worker_free(struct sim_worker **out)
{
    sim_life_end(&(*out)->life);
    free(*out);
    *out = NULL;
}

void sim_worker_dies(struct sim_worker *worker)
{
    if (!worker->life.runs || worker->audits)
        return;
    sim_say(worker->world, "w%" PRIu32 ": dies", worker->index);
    sim_life_end(&worker->life);
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
    return worker->done;
}

/* ---- the undisturbed run */

void sim_worker_compare(struct sim_world *world)
{
    static char rows[SIM_TABLES_MAX][SIM_KEYS_MAX][DP_ROW_HEADER + 3 * SIM_BATCH_DIM * sizeof(float)]
        __attribute__((aligned(8)));
    struct dp_optimizer *optimizer[SIM_TABLES_MAX] = {0};
    struct dp_error err = {0};
    for (uint32_t t = 0; t < world->plan.tables; t++) {
        if (dp_optimizer_new(&world->plan.table[t], DP_FORM_PORTABLE, &optimizer[t], &err) != DP_OK)
            sim_fail(world, "%s", err.text);
        for (uint32_t k = 0; k < world->plan.keys; k++)
            dp_init_row(&world->plan.table[t], k, rows[t][k]);
    }
    for (uint32_t n = 0; n < world->plan.steps; n++) {
        struct sim_batch batch;
        sim_batch_make(world, 0, n, &batch);
        for (uint32_t p = 0; p < batch.parts; p++)
            for (uint32_t i = 0; i < batch.part[p].rows; i++) {
                uint32_t t = batch.part[p].table;
                char *row = rows[t][batch.part[p].key[i]];
                static const float zeros[SIM_BATCH_DIM];
                sim_batch_gradient(world, t, batch.part[p].key[i], n,
                                   batch.blind ? zeros : dp_row_weights(row), gradients[0]);
                dp_optimizer_apply(optimizer[t], row, gradients[0], batch.rate);
            }
    }
    for (uint32_t t = 0; t < world->plan.tables; t++) {
        for (uint32_t k = 0; k < world->plan.keys; k++) {
            const char *row = sim_model_row(world->model, t, k);
            if (dp_row_step(rows[t][k]) != (row ? dp_row_step(row) : 0) ||
                (row && memcmp(row + 8, rows[t][k] + 8, dp_row_bytes(&world->plan.table[t]) - 8) != 0))
                sim_fail(world, "table %" PRIu32 ", key %" PRIu32 " is not what an undisturbed run gives", t,
                         k);
        }
        dp_optimizer_free(&optimizer[t]);
    }
}
