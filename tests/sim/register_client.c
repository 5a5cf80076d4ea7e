#include "tests/sim/register_sim.h"

#include "tests/sim/life.h"

#include <inttypes.h>
#include <stdlib.h>

#define AUDIT_MS 600000u

struct reg_client {
    struct reg *reg;
    struct sim_life life;
    uint32_t index, turns; /* turns: left */
    bool audits, done, watches;
    struct dp_client *client;
    uint64_t seen[REG_NAMES_MAX];
};

static void send_message(void *context, uint32_t link, struct dp_message *message)
{
    const struct reg_client *client = context;
    reg_to_server(client->reg, client->index, link, message);
}

void reg_client_receive(struct reg_client *client, uint32_t link, struct dp_message **message)
{
    sim_life_receive(&client->life, link, message);
}

/* ---- what it does ---- */

static bool open_client(struct reg_client *client)
{
    static const char *const shards[] = {"shard"};
    struct dp_client_options options = {.name = "sim",
                                        .cluster = 1,
                                        .generation = 1,
                                        .shards = shards,
                                        .shard_count = 1,
                                        .control = "control",
                                        .retry_ms = client->reg->plan.retry_ms,
                                        .open_timeout_ms = AUDIT_MS,
                                        .gives_up = sim_life_is_dead,
                                        .gives_up_context = &client->life};
    struct dp_transport transport = sim_life_transport(&client->life);
    struct dp_clock clock = sim_life_clock(&client->life);
    struct dp_error err = {0};
    uint64_t session = 1 + client->index * 1000 + client->life.number;
    return dp_client_open_over(&options, &transport, &clock, session, &client->client, &err) == DP_OK;
}

/* Waits may end late by a resend and what the network takes; in a clean world by the network alone. */
static void check_wait(const struct reg_client *client, uint32_t name, uint64_t above, uint64_t version,
                       uint64_t start_ns, uint32_t wait_ms)
{
    const struct reg *reg = client->reg;
    uint64_t passed = reg->world->now_ns - start_ns;
    if (version <= above && passed < wait_ms * SIM_MS)
        sim_fail(reg->world, "client %" PRIu32 " waited %" PRIu64 " ns of %" PRIu32 " ms and got nothing new",
                 client->index, passed, wait_ms);
    if (!reg->plan.clean)
        return;
    uint64_t made_ns = reg_model_made_ns(reg->model, name, above + 1);
    uint64_t due_ns = start_ns + wait_ms * SIM_MS;
    due_ns = made_ns < due_ns ? made_ns : due_ns;
    due_ns = due_ns > start_ns ? due_ns : start_ns;
    if (reg->world->now_ns > due_ns + 5 * SIM_MS)
        sim_fail(reg->world, "client %" PRIu32 " waited %" PRIu64 " ns too long for value %" PRIu32,
                 client->index, reg->world->now_ns - due_ns, name);
}

static bool get(struct reg_client *client, uint32_t name, uint64_t above, uint32_t wait_ms,
                uint32_t timeout_ms)
{
    struct reg *reg = client->reg;
    struct dp_register_value value = {0};
    struct dp_error err = {0};
    char text[16];
    uint64_t before = reg_model_delivered(reg->model, name), start_ns = reg->world->now_ns;
    reg_name_of(name, text);
    enum dp_status st =
        dp_client_register_get(client->client, text, above, wait_ms, timeout_ms, &value, &err);
    if (client->life.dead) {
        dp_register_value_clear(&value);
        return false;
    }
    sim_say(reg->world, "c%" PRIu32 ": %s above %" PRIu64 ": %s, version %" PRIu64, client->index, text,
            above, dp_status_name((int)st), value.version);
    if (st != DP_OK && st != DP_TIMEOUT)
        sim_fail(reg->world, "get: %s", err.text);
    if (st == DP_OK) {
        reg_model_shows(reg->model, name, value.version, before, value.bytes, value.size);
        check_wait(client, name, above, value.version, start_ns, wait_ms);
        client->seen[name] = value.version;
    }
    dp_register_value_clear(&value);
    return st == DP_OK;
}

static void set(struct reg_client *client, uint32_t name, uint64_t expected, uint32_t timeout_ms)
{
    struct reg *reg = client->reg;
    struct dp_register_value now = {0};
    struct dp_error err = {0};
    unsigned char bytes[REG_CONTENT_BYTES_MAX];
    char text[16];
    bool won = false;
    uint64_t before = reg_model_delivered(reg->model, name);
    uint64_t op = reg_model_begin(reg->model, name);
    const struct reg_content content = {op, name, expected + 1};
    size_t size = reg_content_bytes(&content, bytes);
    reg_name_of(name, text);
    enum dp_status st =
        dp_client_register_set(client->client, text, expected, bytes, size, timeout_ms, &won, &now, &err);
    if (client->life.dead) {
        dp_register_value_clear(&now);
        return;
    }
    sim_say(reg->world, "c%" PRIu32 ": set %" PRIu64 " of %s, expecting %" PRIu64 ": %s%s, version %" PRIu64,
            client->index, op, text, expected, dp_status_name((int)st), won ? ", won" : "", now.version);
    if (st != DP_OK && st != DP_TIMEOUT && st != DP_TOO_OLD && st != DP_NOT_FOUND)
        sim_fail(reg->world, "set: %s", err.text);
    reg_model_end(reg->model, op, st != DP_OK ? REG_UNKNOWN : won ? REG_WON : REG_LOST, expected + 1);
    if (st == DP_OK) {
        reg_model_shows(reg->model, name, now.version, before, now.bytes, now.size);
        if (won && now.version <= expected)
            sim_fail(reg->world, "set %" PRIu64 " won, and version %" PRIu64 " stands", op, now.version);
        client->seen[name] = now.version;
    }
    dp_register_value_clear(&now);
}

static void turn(struct reg_client *client)
{
    struct reg *reg = client->reg;
    struct sim_world *world = reg->world;
    uint32_t name = (uint32_t)sim_draw(world, reg->plan.names);
    uint32_t timeout_ms = (uint32_t)(sim_draw(world, 3) ? 60000 : 100 + sim_draw(world, 3000));
    uint64_t kind = client->watches ? 9 : sim_draw(world, 10);
    if (kind < 6) { /* an increment */
        if (get(client, name, 0, 0, timeout_ms) && !client->life.dead)
            set(client, name, client->seen[name], timeout_ms);
    } else if (kind < 7) {
        set(client, name, sim_draw(world, client->seen[name] + 2), timeout_ms);
    } else if (kind < 8) {
        set(client, name, client->seen[name], timeout_ms);
    } else {
        (void)get(client, name, client->seen[name], (uint32_t)sim_draw(world, 5000), timeout_ms);
    }
    if (reg->plan.think_ms > 0)
        sim_life_think(&client->life, sim_draw(world, reg->plan.think_ms));
}

static void audit(struct reg_client *client)
{
    struct reg *reg = client->reg;
    for (uint32_t name = 0; name < reg->plan.names; name++) {
        if (!get(client, name, 0, 0, AUDIT_MS))
            sim_fail(reg->world, "the audit gets no answer");
        reg_model_audit(reg->model, name, client->seen[name]);
    }
}

static void live(void *context)
{
    struct reg_client *client = context;
    if (!open_client(client)) {
        if (!client->life.dead)
            sim_fail(client->reg->world, "client %" PRIu32 " cannot open", client->index);
        return;
    }
    if (client->audits)
        audit(client);
    for (; client->turns > 0 && !client->life.dead; client->turns--)
        turn(client);
    client->done = !client->life.dead;
    dp_client_close(&client->client);
}

/* ---- lives ---- */

static void start(void *context, uint64_t what)
{
    struct reg_client *client = context;
    client->done = false;
    sim_life_begin(&client->life);
}

struct reg_client *reg_client_new(struct reg *reg, uint32_t index)
{
    struct reg_client *client = calloc(1, sizeof *client);
    DP_ASSERT(client);
    client->reg = reg;
    client->index = index;
    client->life = (struct sim_life){
        .world = reg->world, .slot = index, .live = live, .send = send_message, .context = client};
    client->turns = reg->plan.turns;
    client->watches = index == 0 && reg->plan.clients > 1 && sim_draw(reg->world, 2);
    sim_at(reg->world, sim_draw(reg->world, SIM_S), start, client, 0);
    return client;
}

void reg_client_dies(struct reg_client *client)
{
    if (!client->life.runs)
        return;
    sim_say(client->reg->world, "c%" PRIu32 ": dies", client->index);
    sim_life_end(&client->life);
    sim_at(client->reg->world, SIM_MS + sim_draw(client->reg->world, 2 * SIM_S), start, client, 0);
}

void reg_client_audit(struct reg_client *client)
{
    client->audits = true;
    client->done = false;
    sim_at(client->reg->world, SIM_MS, start, client, 0);
}

bool reg_client_is_done(const struct reg_client *client)
{
    return client->done;
}

uint32_t reg_client_life(const struct reg_client *client)
{
    return client->life.number;
}

void reg_client_free(struct reg_client **client)
{
    sim_life_end(&(*client)->life);
    free(*client);
    *client = NULL;
}
