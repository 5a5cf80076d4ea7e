#include "tests/sim/worker.h"

#include "common/client/client_in.h"
#include "common/client/client_over.h"
#include "common/model/init.h"
#include "common/model/mix.h"
#include "common/model/optimizer.h"
#include "common/model/row.h"
#include "tests/sim/model.h"
#include "tests/sim/net.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define STACK_BYTES (256u << 10)
#define ROWS_MAX    6u /* of one table in a step */
#define PARTS_MAX   2u /* tables in a step */
#define FLIGHT_MAX  4u
#define DIM_MAX     256u
#define WAIT_MS     600000u
#define RUNAWAY_NS  (UINT64_C(1) << 62)

struct letter {
    struct letter *next;
    uint32_t server;
    struct dp_message *message;
};

/* What a minibatch touches: a function of the seed, the worker and the number alone. */
struct batch {
    uint32_t parts;
    struct {
        uint32_t table, rows;
        uint64_t key[ROWS_MAX];
    } part[PARTS_MAX];
    float rate;
    bool blind; /* pushed without a pull before it, so that rows may be missing in the cache */
};

struct pull {
    struct batch batch;
    struct dp_ticket ticket;
    struct dp_keys *keys[PARTS_MAX];
    float weights[PARTS_MAX][ROWS_MAX * DIM_MAX];
    uint32_t floor[PARTS_MAX][ROWS_MAX];
    uint64_t applied[SIM_SERVERS_MAX];
};

struct push {
    struct dp_ticket ticket;
    uint64_t stream, number;
};

struct sim_worker {
    struct sim_world *world;
    uint32_t index, life, resets[SIM_SERVERS_MAX];
    bool runs, dead, audits, done;
    bool own;             /* pushes under a stream that shard 0 gives */
    uint64_t sessions;    /* opened */
    uint64_t runaway_ns;  /* when dead */
    uint64_t waits, wake; /* the number of the wait that the next event ends */
    struct letter *inbox, **inbox_end;
    ucontext_t context;
    uint32_t next,
        acknowledged; /* numbers of minibatches: the next; below which all were (training stream) */
    struct dp_client *client;
    struct dp_client_table *table[SIM_TABLES_MAX];
    struct pull pull[2];
    struct push push[FLIGHT_MAX];
    uint32_t pushes;
};

static ucontext_t scheduler;
static char *stacks[SIM_WORKERS_MAX]; /* kept over seeds */

/* ---- leaving and coming back */

static void resume(struct sim_worker *worker)
{
    if (swapcontext(&scheduler, &worker->context) != 0)
        abort();
}

static void wake(void *context, uint64_t wait)
{
    struct sim_worker *worker = context;
    if (worker->runs && wait == worker->wake) {
        worker->wake = 0;
        resume(worker);
    }
}

/* Until the time is over, or, where messages end it, one is there. */
static void leave(struct sim_worker *worker, uint64_t ns)
{
    if (worker->dead)
        return;
    worker->wake = ++worker->waits;
    sim_at(worker->world, ns, wake, worker, worker->wake);
    if (swapcontext(&worker->context, &scheduler) != 0)
        abort();
}

static void think(struct sim_worker *worker, uint64_t ms)
{
    uint64_t until = worker->world->now_ns + ms * SIM_MS;
    while (!worker->dead && worker->world->now_ns < until)
        leave(worker, until - worker->world->now_ns);
}

/* ---- the transport and the clock */

static enum dp_status send_message(void *self, uint32_t server, struct dp_message **message,
                                   struct dp_error *err)
{
    struct sim_worker *worker = self;
    (void)err;
    struct dp_message *taken = *message;
    *message = NULL;
    if (worker->dead)
        dp_message_free(&taken);
    else
        sim_net_to_server(worker->world, worker->index, server, taken);
    return DP_OK;
}

static enum dp_status receive_message(void *self, uint32_t *server, struct dp_message **message)
{
    struct sim_worker *worker = self;
    struct letter *letter = worker->inbox;
    if (!letter || worker->dead)
        return DP_AGAIN;
    worker->inbox = letter->next;
    if (!worker->inbox)
        worker->inbox_end = &worker->inbox;
    *server = letter->server;
    *message = letter->message;
    free(letter);
    return DP_OK;
}

static void wait_for_message(void *self, uint32_t timeout_ms)
{
    struct sim_worker *worker = self;
    if (!worker->inbox)
        leave(worker, timeout_ms * SIM_MS);
}

static void close_transport(void *self)
{
    (void)self;
}

static uint64_t now_of(void *self)
{
    struct sim_worker *worker = self;
    if (worker->dead)
        return worker->runaway_ns += 1000 * SIM_S;
    return worker->world->now_ns;
}

static void forget_inbox(struct sim_worker *worker)
{
    while (worker->inbox) {
        struct letter *letter = worker->inbox;
        worker->inbox = letter->next;
        dp_message_free(&letter->message);
        free(letter);
    }
    worker->inbox_end = &worker->inbox;
}

void sim_worker_receive(struct sim_worker *worker, uint32_t server, struct dp_message **message)
{
    if (!worker->runs) {
        dp_message_free(message);
        return;
    }
    struct letter *letter = malloc(sizeof *letter);
    DP_ASSERT(letter);
    *letter = (struct letter){.server = server, .message = *message};
    *message = NULL;
    *worker->inbox_end = letter;
    worker->inbox_end = &letter->next;
    if (worker->wake != 0)
        sim_at(worker->world, 1000, wake, worker, worker->wake);
}

/* ---- minibatches */

static uint64_t mixed_draw(uint64_t *state, uint64_t below)
{
    *state += 0x9e3779b97f4a7c15u;
    return (dp_mix(*state) >> 16) % below;
}

static void make_batch(const struct sim_world *world, uint32_t worker, uint32_t number, struct batch *out)
{
    const struct sim_plan *plan = &world->plan;
    uint64_t state = dp_mix(world->seed * 1000 + worker * 100 + 1) + number;
    state = dp_mix(state);
    *out = (struct batch){.rate = mixed_draw(&state, 2) ? 1.0f : 0.5f};
    out->blind = mixed_draw(&state, 1000) < plan->blind;
    out->parts = (uint32_t)mixed_draw(&state, PARTS_MAX + 1);
    if (out->parts > plan->tables)
        out->parts = plan->tables;
    uint32_t first = (uint32_t)mixed_draw(&state, plan->tables);
    out->parts = plan->sectors ? 1 : out->parts;
    for (uint32_t p = 0; p < out->parts; p++) {
        out->part[p].table = (first + p) % plan->tables;
        uint64_t key = mixed_draw(&state, plan->keys);
        uint32_t want = plan->sectors ? 1 : 1 + (uint32_t)mixed_draw(&state, ROWS_MAX);
        for (; out->part[p].rows < want;
             out->part[p].rows++, key += 1 + mixed_draw(&state, plan->keys / ROWS_MAX - 1))
            out->part[p].key[out->part[p].rows] = key % plan->keys;
    }
}

/* What training would give: integers, or something that depends on the weights. */
static void gradient_of(const struct sim_world *world, uint32_t table, uint64_t key, uint64_t number,
                        const float *weights, float *out)
{
    const struct dp_table_spec *spec = &world->plan.table[table];
    uint64_t state = dp_mix(world->seed ^ dp_mix(key * 8 + table) ^ dp_mix(number + 77));
    for (uint32_t i = 0; i < spec->dim; i++) {
        int64_t whole = (int64_t)mixed_draw(&state, 9) - 4;
        out[i] = sim_is_integers(spec) ? (float)whole : (float)whole * 0.125f + 0.25f * weights[i];
    }
}

static float gradients[PARTS_MAX][ROWS_MAX * DIM_MAX]; /* of the push at hand: nobody waits meanwhile */

static void compute(const struct sim_worker *worker, const struct pull *pull, uint64_t number)
{
    for (uint32_t p = 0; p < pull->batch.parts; p++) {
        uint32_t table = pull->batch.part[p].table, dim = worker->world->plan.table[table].dim;
        for (uint32_t i = 0; i < pull->batch.part[p].rows; i++)
            gradient_of(worker->world, table, pull->batch.part[p].key[i], number,
                        pull->weights[p] + (size_t)i * dim, gradients[p] + (size_t)i * dim);
    }
}

/* ---- a step */

static void must(const struct sim_worker *worker, enum dp_status st, const struct dp_error *err)
{
    if (st != DP_OK && !worker->dead)
        sim_fail(worker->world, "worker %" PRIu32 ": %s: %s", worker->index, dp_status_name((int)st),
                 err->text);
}

static void pull_issue(struct sim_worker *worker, struct pull *pull, bool newest)
{
    struct dp_pull_part parts[PARTS_MAX];
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
        return !worker->dead;
    enum dp_status st = dp_client_wait(worker->client, &pull->ticket, WAIT_MS, NULL, &err);
    must(worker, st, &err); /* a disk's read that fails is AGAIN, and read once more */
    if (worker->dead)
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
    if (worker->dead)
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
    struct sim_sent sent[PARTS_MAX];
    struct dp_push_part parts[PARTS_MAX];
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
    if (worker->dead)
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
    if (!worker->own && worker->life > 1)
        find_position(worker);
    while (worker->next < plan->steps && !worker->dead) {
        struct pull *now = &worker->pull[worker->next % 2], *then = &worker->pull[(worker->next + 1) % 2];
        if (!ahead) {
            make_batch(worker->world, worker->index, worker->next, &now->batch);
            pull_issue(worker, now, false);
        }
        if (worker->dead || !pull_wait(worker, now))
            return;
        think(worker, sim_draw(worker->world, plan->think_ms + 1));
        ahead = plan->in_flight > 1 && worker->next + 1 < plan->steps && !worker->dead;
        if (ahead) {
            make_batch(worker->world, worker->index, worker->next + 1, &then->batch);
            pull_issue(worker, then, false);
        }
        if (!worker->dead)
            push_issue(worker, now, worker->next);
        worker->next++;
        while (!worker->dead && worker->pushes > 0 && worker->pushes >= plan->in_flight)
            push_wait(worker);
    }
    while (!worker->dead && worker->pushes > 0)
        push_wait(worker);
    worker->done = !worker->dead;
}

/* ---- the audit */

static void audit_rows(struct sim_worker *worker)
{
    const struct sim_plan *plan = &worker->world->plan;
    struct pull *pull = &worker->pull[0];
    for (uint32_t t = 0; t < plan->tables && !worker->dead; t++)
        for (uint32_t k = 0; k < plan->keys && !worker->dead; k += ROWS_MAX) {
            pull->batch = (struct batch){.parts = 1};
            pull->batch.part[0].table = t;
            for (uint32_t i = 0; i < ROWS_MAX && k + i < plan->keys; i++)
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

static void live(struct sim_worker *worker)
{
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
                                        .bf16_values = plan->bf16};
    struct dp_transport transport = {.send = send_message,
                                     .receive = receive_message,
                                     .wait = wait_for_message,
                                     .close = close_transport,
                                     .self = worker};
    struct dp_clock clock = {now_of, worker};
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
    for (uint32_t i = 0; i < 2 * PARTS_MAX; i++)
        must(worker, dp_keys_new(&worker->pull[i / PARTS_MAX].keys[i % PARTS_MAX], &err), &err);
    if (worker->audits && !worker->dead) {
        audit_rows(worker);
        audit_repeats(worker);
        worker->done = true;
    } else if (!worker->dead) {
        train(worker);
    }
    dp_client_close(&worker->client);
    for (uint32_t i = 0; i < 2 * PARTS_MAX; i++)
        dp_keys_free(&worker->pull[i / PARTS_MAX].keys[i % PARTS_MAX]);
    worker->pushes = 0;
}

static struct sim_worker *born; /* whose life begins: makecontext passes ints only */

static void begin(void)
{
    struct sim_worker *worker = born;
    live(worker);
    worker->runs = false;
    if (swapcontext(&worker->context, &scheduler) != 0)
        abort();
}

static void start(void *context, uint64_t what)
{
    struct sim_worker *worker = context;
    (void)what;
    worker->life++;
    worker->runs = true;
    worker->dead = worker->done = false;
    worker->runaway_ns = RUNAWAY_NS;
    worker->wake = 0;
    sim_say(worker->world, "w%" PRIu32 ": begins life %" PRIu32 " at minibatch %" PRIu32, worker->index,
            worker->life, worker->next);
    if (getcontext(&worker->context) != 0)
        abort();
    worker->context.uc_stack.ss_sp = stacks[worker->index];
    worker->context.uc_stack.ss_size = STACK_BYTES;
    worker->context.uc_link = NULL;
    makecontext(&worker->context, begin, 0);
    born = worker;
    resume(worker);
}

struct sim_worker *sim_worker_new(struct sim_world *world, uint32_t index)
{
    struct sim_worker *worker = calloc(1, sizeof *worker);
    if (!stacks[index])
        stacks[index] = malloc(STACK_BYTES);
    DP_ASSERT(worker && stacks[index]);
    worker->world = world;
    worker->index = index;
    worker->inbox_end = &worker->inbox;
    worker->own = !world->plan.fixed && sim_draw(world, 4) == 0;
    world->worker[index] = worker;
    sim_at(world, sim_draw(world, SIM_S), start, worker, 0);
    return worker;
}

static void end_life(struct sim_worker *worker)
{
    if (!worker->runs)
        return;
    worker->dead = true;
    worker->wake = 0;
    resume(worker);
    DP_ASSERT(!worker->runs);
    forget_inbox(worker);
}

void sim_worker_free(struct sim_worker **out)
{
    end_life(*out);
    forget_inbox(*out);
    free(*out);
    *out = NULL;
}

void sim_worker_dies(struct sim_worker *worker)
{
    if (!worker->runs || worker->audits)
        return;
    sim_say(worker->world, "w%" PRIu32 ": dies", worker->index);
    end_life(worker);
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
    return worker->life;
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
    static char rows[SIM_TABLES_MAX][SIM_KEYS_MAX][DP_ROW_HEADER + 3 * DIM_MAX * sizeof(float)]
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
        struct batch batch;
        make_batch(world, 0, n, &batch);
        for (uint32_t p = 0; p < batch.parts; p++)
            for (uint32_t i = 0; i < batch.part[p].rows; i++) {
                uint32_t t = batch.part[p].table;
                char *row = rows[t][batch.part[p].key[i]];
                static const float zeros[DIM_MAX];
                gradient_of(world, t, batch.part[p].key[i], n, batch.blind ? zeros : dp_row_weights(row),
                            gradients[0]);
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
