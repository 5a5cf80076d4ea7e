#include "tests/sim/command.h"

#include "common/client/checkpoint.h"
#include "common/client/client_inner.h"
#include "common/model/stream.h"
#include "server/checkpoint/union.h"
#include "tests/sim/checkpoints.h"
#include "tests/sim/counts.h"
#include "tests/sim/life.h"
#include "tests/sim/net.h"
#include "tests/sim/server.h"
#include "tests/sim/worker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_MS   600000u
#define ASK_MS    20000u
#define LOOK_MS   200u
#define WAIT_MS   10000u
#define GRACE_MS  10000u
#define STILL_MS  120000u
#define LOOKS_MAX 500u
#define CUTS_MAX  5u

struct command {
    struct sim_world *world;
    struct sim_life life;
    uint32_t index; /* as in addresses */
    uint64_t order, sessions;
    uint32_t cut;
    bool dead; /* its last life ended within the order */
    struct dp_client *client;
    struct dp_checkpoint_ask ask[SIM_SERVERS_MAX];
    struct dp_checkpoint_answer answer[SIM_SERVERS_MAX];
    struct dp_register_value registered;
    struct dp_union cut_of_all;
};

struct sim_commands {
    struct command command[SIM_COMMANDS];
    bool done, over;
};

/* ---- orders */

static enum dp_status check_answers(const struct command *c, struct dp_error *err)
{
    for (uint32_t i = 0; i < c->world->plan.servers; i++) {
        const struct dp_checkpoint_state *state = &c->answer[i].state;
        if (state->stage == DP_CHECKPOINT_ABANDONED)
            return dp_fail(err, DP_UNAVAILABLE, "shard %" PRIu32 " gave it up: %s", i, state->why);
        if (state->stage == DP_CHECKPOINT_NONE)
            return dp_fail(err, DP_UNAVAILABLE, "shard %" PRIu32 " does not know it any more", i);
    }
    return DP_OK;
}

static enum dp_status order(struct command *c, enum dp_checkpoint_action action, struct dp_error *err)
{
    uint32_t servers = c->world->plan.servers;
    for (uint32_t i = 0; i < servers; i++) {
        struct dp_checkpoint_ask *ask = &c->ask[i];
        bool finish = action == DP_CHECKPOINT_FINISH;
        *ask = (struct dp_checkpoint_ask){.action = action, .order = c->order};
        ask->cut = action == DP_CHECKPOINT_CUT || finish ? c->cut : 0;
        if (action == DP_CHECKPOINT_BEGIN)
            (void)snprintf(ask->directory, sizeof ask->directory, "/checkpoints");
        ask->step = finish ? c->cut_of_all.step : 0;
        ask->missing = finish ? c->cut_of_all.lacking[i].count : 0;
        ask->pushes = finish ? c->cut_of_all.lacking[i].push : NULL;
    }
    bool ends = action == DP_CHECKPOINT_END || action == DP_CHECKPOINT_ABANDON;
    dp_client_checkpoint_clear(c->answer, servers);
    enum dp_status st = dp_client_checkpoint(c->client, c->ask, c->answer, ends ? ASK_MS / 4 : ASK_MS, err);
    return st == DP_OK && !ends ? check_answers(c, err) : st;
}

/* ms: how long it may take, without a change where `moves`. */
static enum dp_status await(struct command *c, enum dp_checkpoint_stage stage, uint64_t ms,
                            struct dp_error *err)
{
    uint64_t began_ns = c->world->now_ns;
    for (;;) {
        uint32_t i = 0;
        while (i < c->world->plan.servers && c->answer[i].state.stage >= stage &&
               (stage != DP_CHECKPOINT_IS_CUT || c->answer[i].state.cut == c->cut))
            i++;
        if (i == c->world->plan.servers)
            return DP_OK;
        if (c->world->now_ns - began_ns > ms * SIM_MS)
            return dp_fail(err, DP_TIMEOUT, "shard %" PRIu32 " stays in stage %d", i,
                           (int)c->answer[i].state.stage);
        sim_life_think(&c->life, LOOK_MS);
        enum dp_status st = order(c, DP_CHECKPOINT_LOOK, err);
        if (st != DP_OK)
            return st;
    }
}

/* ---- the cut */

/* Members of a run are waited for, and what is compared with a sequential run. */
static bool may_tear(const struct command *c)
{
    return c->world->plan.mode == DP_ASYNC && !c->world->sequential;
}

static enum dp_status unite(struct command *c, struct dp_error *err)
{
    struct dp_union_part parts[SIM_SERVERS_MAX];
    for (uint32_t i = 0; i < c->world->plan.servers; i++)
        parts[i] = (struct dp_union_part){.ids = c->answer[i].frame[0],
                                          .ids_bytes = c->answer[i].bytes[0],
                                          .steps = c->answer[i].frame[1],
                                          .steps_bytes = c->answer[i].bytes[1]};
    dp_union_clear(&c->cut_of_all);
    return dp_union_make(parts, c->world->plan.servers, &c->cut_of_all, err);
}

/* (Not on the command's stack.) */
static void worker_dies(void *context, uint64_t worker)
{
    struct sim_world *world = context;
    if (!world->calm)
        sim_worker_dies(world->worker[worker]);
}

/* What it pushes is lost on the way to one shard, and then it dies. */
static void tear_push(void *context, uint64_t worker)
{
    struct sim_world *world = context;
    if (!world->calm)
        sim_worker_reset(world->worker[worker], (uint32_t)sim_draw(world, world->plan.servers));
    sim_at(world, sim_draw(world, SIM_MS), worker_dies, world, worker);
}

static void await_push(struct command *c, const uint64_t worker)
{
    for (uint32_t i = 0; i < LOOKS_MAX && !c->life.dead && !c->world->calm; i++) {
        if (sim_worker_is_pushing(c->world->worker[worker]))
            return;
        sim_life_think(&c->life, 1);
    }
}

/* So that a push which only some shards have at the cut does not come to the others soon. */
static void kill_worker(struct command *c)
{
    struct sim_world *world = c->world;
    uint64_t worker = sim_draw(world, world->plan.workers);
    if (!may_tear(c) || world->calm || c->life.dead || sim_draw(world, 4) == 0)
        return;
    if (sim_draw(world, 3) > 0) {
        await_push(c, worker);
        sim_at(world, 0, tear_push, world, worker);
    } else {
        sim_at(world, sim_draw(world, SIM_MS), worker_dies, world, worker);
    }
    sim_life_think(&c->life, 1 + sim_draw(world, 3));
}

static enum dp_status cut_once(struct command *c, struct dp_error *err)
{
    struct dp_register_value after = {0};
    dp_register_value_clear(&c->registered);
    c->cut++;
    enum dp_status st = dp_client_register_copy(c->client, ASK_MS, &c->registered, err);
    kill_worker(c);
    if (st == DP_OK)
        st = order(c, DP_CHECKPOINT_CUT, err);
    if (st == DP_OK)
        st = await(c, DP_CHECKPOINT_IS_CUT, STILL_MS, err);
    if (st == DP_OK)
        st = dp_client_register_copy(c->client, ASK_MS, &after, err);
    bool changed = st == DP_OK && (after.size != c->registered.size ||
                                   memcmp(after.bytes, c->registered.bytes, after.size) != 0);
    if (changed && c->cut < CUTS_MAX)
        st = dp_fail(err, DP_AGAIN, "the register changed");
    if (st == DP_OK && changed) {
        dp_register_value_clear(&c->registered);
        c->registered = after;
        after = (struct dp_register_value){0};
    }
    if (st == DP_OK)
        st = unite(c, err);
    dp_register_value_clear(&after);
    return st;
}

static bool is_of_client(const void *unused, const struct dp_copy_push *push)
{
    return !dp_stream_is_training(push->stream);
}

/* What a client did not complete in time is given up; a worker's push is not. */
static enum dp_status await_missing(struct command *c, struct dp_error *err)
{
    uint64_t ms = may_tear(c) && sim_draw(c->world, 4) ? sim_draw(c->world, 2) * 500 : WAIT_MS;
    enum dp_status st = await(c, DP_CHECKPOINT_COPYING, ms, err);
    if (st != DP_TIMEOUT)
        return st;
    st = dp_union_give_up(&c->cut_of_all, is_of_client, NULL, err);
    if (st == DP_OK)
        st = order(c, DP_CHECKPOINT_FINISH, err);
    return st == DP_OK ? await(c, DP_CHECKPOINT_COPYING, GRACE_MS, err) : st;
}

static enum dp_status make(struct command *c, struct dp_error *err)
{
    if (c->dead &&
        sim_draw(c->world,
                 2)) /* the order of its last life, as it finds it; else it was given another directory */
        (void)order(c, DP_CHECKPOINT_ABANDON, err);
    c->dead = false;
    c->order = 1 | sim_draw(c->world, UINT64_C(1) << 40);
    c->cut = 0;
    enum dp_status st = order(c, DP_CHECKPOINT_BEGIN, err);
    if (st == DP_OK)
        st = await(c, DP_CHECKPOINT_PREPARED, 5 * STILL_MS, err);
    if (st != DP_OK)
        return st;
    st = DP_AGAIN;
    while (st == DP_AGAIN && c->cut < CUTS_MAX)
        st = cut_once(c, err);
    if (st == DP_OK)
        st = order(c, DP_CHECKPOINT_FINISH, err);
    if (st == DP_OK)
        st = await_missing(c, err);
    if (st == DP_OK)
        st = await(c, DP_CHECKPOINT_COPIED, STILL_MS, err);
    return st;
}

/* ---- a life */

static void make_one(struct command *c)
{
    struct dp_error err = {0}, ignored = {0};
    struct sim_world *world = c->world;
    enum dp_status st = make(c, &err);
    if (c->life.dead)
        return;
    sim_say(world, "command %" PRIu32 ": %s %s", c->index, dp_status_name((int)st), err.text);
    if (st == DP_OK) {
        sim_checkpoints_finish(world, c->order, &c->cut_of_all, &c->registered);
        world->commands->done |= world->calm;
    }
    sim_counts_add(SIM_GIVEN_UP, st != DP_OK);
    if (order(c, st == DP_OK ? DP_CHECKPOINT_END : DP_CHECKPOINT_ABANDON, &ignored) != DP_OK)
        sim_say(world, "command %" PRIu32 ": %s", c->index, ignored.text);
}

static uint64_t rest_ms(const struct command *c)
{
    return 1 + sim_draw(c->world, c->index == SIM_WORKERS_MAX ? 6000 : 60000);
}

static void live(void *context)
{
    struct command *c = context;
    struct sim_world *world = c->world;
    static const char *const endpoints[] = {"s0", "s1", "s2"};
    struct dp_client_options options = {.name = "command",
                                        .cluster = 7,
                                        .generation = world->generation,
                                        .shards = endpoints,
                                        .shard_count = world->plan.servers,
                                        .control = "control",
                                        .window = world->plan.window,
                                        .retry_ms = world->plan.retry_ms,
                                        .open_timeout_ms = OPEN_MS,
                                        .gives_up = sim_life_is_dead,
                                        .gives_up_context = &c->life};
    struct dp_transport transport = sim_life_transport(&c->life);
    struct dp_clock clock = sim_life_clock(&c->life);
    struct dp_error err = {0};
    uint64_t session = (UINT64_C(1) << 50) + c->sessions++ * SIM_COMMANDS + c->index;
    enum dp_status st = dp_client_open_over(&options, &transport, &clock, session, &c->client, &err);
    if (st != DP_OK && !c->life.dead)
        sim_fail(world, "command %" PRIu32 ": %s: %s", c->index, dp_status_name((int)st), err.text);
    while (!c->life.dead) {
        make_one(c);
        sim_life_think(&c->life, rest_ms(c));
    }
    dp_client_close(&c->client);
    dp_client_checkpoint_clear(c->answer, SIM_SERVERS_MAX);
    dp_register_value_clear(&c->registered);
    dp_union_clear(&c->cut_of_all);
}

static void begin(void *context, uint64_t what);

static void dies(void *context, uint64_t life)
{
    struct command *c = context;
    struct sim_world *world = c->world;
    if (world->calm || !c->life.runs || c->life.number != life)
        return;
    if (sim_draw(world, 4) == 0) {
        sim_say(world, "command %" PRIu32 ": sleeps", c->index);
        sim_life_suspend(&c->life, SIM_MS * sim_draw(world, 90000));
        sim_at(world, SIM_MS * sim_draw(world, 20000), dies, c, life);
        return;
    }
    sim_say(world, "command %" PRIu32 ": dies", c->index);
    sim_life_end(&c->life);
    c->dead = c->order > 0;
    sim_at(world, SIM_MS * rest_ms(c), begin, c, 0);
}

static void begin(void *context, uint64_t what)
{
    struct command *c = context;
    if (c->world->commands->over)
        return;
    sim_life_begin(&c->life);
    if (c->life.runs)
        sim_at(c->world, SIM_MS * sim_draw(c->world, sim_draw(c->world, 2) ? 60000 : 3000), dies, c,
               c->life.number);
}

static void send_message(void *context, uint32_t server, struct dp_message *message)
{
    const struct command *c = context;
    sim_net_from(c->world, c->index, c->life.number, server, message);
}

void sim_command_receive(struct sim_world *world, uint32_t index, uint32_t life, uint32_t server,
                         struct dp_message **message)
{
    struct command *c = &world->commands->command[index - SIM_WORKERS_MAX];
    if (c->life.number == life)
        sim_life_receive(&c->life, server, message);
}

void sim_commands_begin(struct sim_world *world)
{
    if (!world->commands)
        return;
    world->commands->over = false;
    for (uint32_t i = 0; i < SIM_COMMANDS; i++)
        sim_at(world, SIM_MS * rest_ms(&world->commands->command[i]), begin, &world->commands->command[i], 0);
}

void sim_commands_end(struct sim_world *world)
{
    if (!world->commands)
        return;
    world->commands->over = true;
    for (uint32_t i = 0; i < SIM_COMMANDS; i++)
        sim_life_end(&world->commands->command[i].life);
}

bool sim_commands_are_done(const struct sim_world *world)
{
    return !world->commands || world->commands->done;
}

struct sim_commands *sim_commands_new(struct sim_world *world)
{
    if (!world->plan.checkpoints)
        return NULL;
    struct sim_commands *commands = calloc(1, sizeof *commands);
    DP_ASSERT(commands);
    for (uint32_t i = 0; i < SIM_COMMANDS; i++) {
        struct command *c = &commands->command[i];
        c->world = world;
        c->index = SIM_WORKERS_MAX + i;
        c->life = (struct sim_life){.world = world,
                                    .slot = SIM_LIVES_MAX - SIM_COMMANDS + i,
                                    .live = live,
                                    .send = send_message,
                                    .context = c};
    }
    return commands;
}

void sim_commands_free(struct sim_commands **commands)
{
    for (uint32_t i = 0; i < SIM_COMMANDS && *commands; i++)
        sim_life_end(&(*commands)->command[i].life);
    free(*commands);
    *commands = NULL;
}
