/* register_sim: the first server's register in one thread, from a seed: the real register, its service and the real client on a
 * simulated disk, network and clock.
 * seeds.h has its command line, README.md what is checked. */
#include "tests/sim/register_sim.h"

#include "common/base/bytes.h"
#include "server/control/register_service.h"
#include "tests/lib/sim_disk.h"
#include "tests/sim/mail.h"
#include "tests/sim/seeds.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS (3000 * SIM_S) /* after the last fault */
#define PEER_BYTES  8u             /* client u32 | its life u32 */
#define LIVES       64u
#define IDS         1024u

enum fault {
    PROCESS_DIES,
    POWER_GOES,
    POWER_GOES_LATER,   /* at one of the next operations */
    PROCESS_DIES_LATER, /* likewise */
    FILE_SYNC_FAILS,
    DIRECTORY_SYNC_FAILS,
    RENAME_FAILS,
    WRITE_FAILS,
    DISK_FULL,
    CLIENT_DIES,
    FAULT_KINDS
};

struct reg_server {
    struct reg *reg;
    struct dp_sim_disk *sim;
    struct dp_disk disk;
    struct dp_control_register *values; /* NULL: it is down */
    struct dp_control_register_service *service;
    uint64_t life, ticks, answers;
    bool made;         /* it was open once */
    bool dies_instead; /* what goes at one of the next operations is the process, not the power */
    uint8_t name[REG_CLIENTS_MAX][LIVES][IDS]; /* that requests of a client's life are about */
};

/* ---- the network ---- */

static void server_receive(struct reg_server *server, const struct dp_peer *from, uint32_t link,
                           const struct dp_message *message);

static void arrive(void *context, struct sim_mail *mail)
{
    const struct reg *reg = context;
    struct reg_client *client = reg->client[dp_load_u32le(mail->peer.id)];
    if (mail->to_server)
        server_receive(reg->server, &mail->peer, mail->link, mail->message);
    else if (dp_load_u32le(mail->peer.id + 4) == reg_client_life(client))
        reg_client_receive(client, mail->link, &mail->message);
}

void reg_to_server(struct reg *reg, uint32_t client, uint32_t link, struct dp_message *message)
{
    struct sim_mail mail = {.message = message, .link = link, .to_server = true};
    mail.peer.size = PEER_BYTES;
    dp_store_u32le(mail.peer.id, client);
    dp_store_u32le(mail.peer.id + 4, reg_client_life(reg->client[client]));
    sim_mail_send(reg->world, &reg->plan.mail, &mail, arrive, reg);
}

/* Also of connections that are gone: then it is not delivered. */
static void reg_to_client(struct reg *reg, const struct dp_peer *to, uint32_t link,
                          struct dp_message *message)
{
    const struct sim_mail mail = {.message = message, .peer = *to, .link = link};
    sim_mail_send(reg->world, &reg->plan.mail, &mail, arrive, reg);
}

/* ---- the server ---- */

static void server_start(void *context, uint64_t life);

static void server_is_down(struct reg_server *server, bool power)
{
    static const enum dp_sim_survival survivals[] = {DP_SIM_NOTHING, DP_SIM_ALL, DP_SIM_RANDOM};
    struct sim_world *world = server->reg->world;
    dp_control_register_service_free(&server->service);
    dp_control_register_close(&server->values);
    sim_say(world, "server: %s", power ? "loses power" : "dies");
    dp_sim_disk_restart(server->sim, power ? survivals[sim_draw(world, 3)] : DP_SIM_PROCESS);
    sim_at(world, SIM_MS + sim_draw(world, SIM_S), server_start, server, ++server->life);
}

static uint8_t *name_of(struct reg_server *server, const struct dp_peer *peer, uint64_t id)
{
    uint32_t life = dp_load_u32le(peer->id + 4);
    DP_ASSERT(life < LIVES && id < IDS);
    return &server->name[dp_load_u32le(peer->id)][life][id];
}

static void server_send(void *context, const struct dp_peer *to, struct dp_reply *reply,
                        struct dp_frame *frames, uint32_t frame_count)
{
    struct reg_server *server = context;
    struct dp_message *message = NULL;
    struct dp_error err = {0};
    reply->cluster = reply->generation = 1;
    if (reply->kind == DP_REPLY_REGISTER) {
        server->answers++;
        reg_model_answers(server->reg->model, reply->register_id, *name_of(server, to, reply->id),
                          reply->version, frames[0].data, frames[0].size);
    }
    if (dp_reply_encode(reply, frames, frame_count, &message, &err) != DP_OK)
        sim_fail(server->reg->world, "an answer cannot be encoded: %s", err.text);
    reg_to_client(server->reg, to, 1, message);
}

static void server_tick(void *context, uint64_t tick)
{
    struct reg_server *server = context;
    struct sim_world *world = server->reg->world;
    if (tick != server->ticks || !server->service)
        return;
    dp_control_register_service_tick(server->service, world->now_ns);
    uint64_t due_ns = dp_control_register_service_due_ns(server->service);
    if (due_ns != UINT64_MAX)
        sim_at(world, due_ns - world->now_ns, server_tick, server, ++server->ticks);
}

/* Soon gone again. */
static void server_storm(void *context, uint64_t life)
{
    struct reg_server *server = context;
    struct sim_world *world = server->reg->world;
    if (life == server->life && !world->calm)
        server_is_down(server, sim_draw(world, 4) > 0);
}

/* What failed on the way of an open that is tried again. */
static void server_start(void *context, uint64_t life)
{
    struct reg_server *server = context;
    struct sim_world *world = server->reg->world;
    struct dp_error err = {0};
    bool made;
    if (life != server->life)
        return;
    const struct dp_control_register_options options = {
        .disk = &server->disk, .new_id = 1 + sim_draw(world, 1u << 30), .create = !server->made};
    enum dp_status st = dp_control_register_open(&options, &server->values, &made, &err);
    sim_say(world, "server: opens: %s", st == DP_OK ? "OK" : err.text);
    if (st != DP_OK) {
        if (st != DP_IO && st != DP_FULL)
            sim_fail(world, "the register is refused: %s", err.text);
        server_is_down(server, dp_sim_disk_is_off(server->sim) && !server->dies_instead);
        return;
    }
    server->made = true;
    const struct dp_control_register_service_options service = {
        .values = server->values, .answer = server_send, .context = server};
    st = dp_control_register_service_new(&service, &server->service, &err);
    DP_ASSERT(st == DP_OK);
    /* What a process left that died in a write is shown, and then the power shows whether it was durable. */
    if (!world->calm && (server->dies_instead || (server->reg->plan.storm && sim_draw(world, 2))))
        sim_at(world, sim_draw(world, SIM_S), server_storm, server, life);
    server->dies_instead = false;
}

static void say_hello(struct reg_server *server, const struct dp_peer *from, const struct dp_request *request)
{
    struct dp_message *message = NULL;
    struct dp_reply reply = {.kind = DP_REPLY_WELCOME,
                             .id = request->id,
                             .session = request->session,
                             .cluster = 1,
                             .generation = 1,
                             .last = UINT64_MAX,
                             .boot = server->life,
                             .stream = request->want_stream ? 1 : 0,
                             .window = 8};
    enum dp_status st = dp_reply_encode(&reply, NULL, 0, &message, NULL);
    DP_ASSERT(st == DP_OK);
    reg_to_client(server->reg, from, 0, message);
}

static void server_receive(struct reg_server *server, const struct dp_peer *from, uint32_t link,
                           const struct dp_message *message)
{
    static struct dp_request request; /* large */
    struct sim_world *world = server->reg->world;
    struct dp_error err = {0};
    if (!server->service)
        return;
    enum dp_status st = dp_request_decode(message, &request, &err);
    DP_ASSERT(st == DP_OK);
    if (link == 0) {
        say_hello(server, from, &request);
        return;
    }
    uint32_t name = strcmp(request.name, "stores") == 0 ? 0 : (uint32_t)(request.name[4] - '0');
    *name_of(server, from, request.id) = (uint8_t)name;
    st = dp_control_register_service_take(server->service, world->now_ns, from, &request, &err);
    if (dp_sim_disk_is_off(server->sim)) {
        server_is_down(server, !server->dies_instead);
        return;
    }
    if (st != DP_OK) {
        struct dp_reply reply = {
            .id = request.id, .session = request.session, .status = dp_status_answered(st)};
        (void)snprintf(reply.reason, sizeof reply.reason, "%s", err.text);
        server_send(server, from, &reply, NULL, 0);
    }
    server_tick(server, server->ticks);
}

static struct reg_server *server_new(struct reg *reg)
{
    struct reg_server *server = calloc(1, sizeof *server);
    DP_ASSERT(server);
    server->reg = reg;
    server->sim = dp_sim_disk_new(reg->world->seed);
    server->disk = dp_sim_disk_interface(server->sim);
    sim_at(reg->world, 0, server_start, server, 0);
    return server;
}

static void server_free(struct reg_server **server)
{
    dp_control_register_service_free(&(*server)->service);
    dp_control_register_close(&(*server)->values);
    dp_sim_disk_free(&(*server)->sim);
    free(*server);
    *server = NULL;
}

/* ---- faults ---- */

static void disk_has_room(void *context, uint64_t what)
{
    const struct reg_server *server = context;
    dp_sim_disk_capacity(server->sim, UINT64_MAX);
}

static void disk_is_full(struct reg_server *server)
{
    struct sim_world *world = server->reg->world;
    sim_say(world, "server: its disk is full");
    dp_sim_disk_capacity(server->sim, dp_sim_disk_used(server->sim) + sim_draw(world, 600));
    sim_at(world, SIM_MS + sim_draw(world, 5 * SIM_S), disk_has_room, server, 0);
}

static void make_fault(struct reg *reg, enum fault kind)
{
    static const enum dp_sim_operation operations[FAULT_KINDS] = {[FILE_SYNC_FAILS] = DP_SIM_SYNC,
                                                                  [DIRECTORY_SYNC_FAILS] =
                                                                      DP_SIM_SYNC_DIRECTORY,
                                                                  [RENAME_FAILS] = DP_SIM_RENAME,
                                                                  [WRITE_FAILS] = DP_SIM_WRITE};
    struct reg_server *server = reg->server;
    struct sim_world *world = reg->world;
    switch (kind) {
    case PROCESS_DIES:
    case POWER_GOES:
        server_is_down(server, kind == POWER_GOES);
        break;
    case POWER_GOES_LATER:
    case PROCESS_DIES_LATER:
        server->dies_instead = kind == PROCESS_DIES_LATER;
        dp_sim_disk_cut_at(server->sim, 1 + sim_draw(world, 12));
        break;
    case FILE_SYNC_FAILS:
    case DIRECTORY_SYNC_FAILS:
    case RENAME_FAILS:
    case WRITE_FAILS:
        dp_sim_disk_fail(server->sim, operations[kind], 1 + sim_draw(world, 3), 1 + sim_draw(world, 3),
                         sim_draw(world, 4) ? DP_IO : DP_FULL);
        break;
    case DISK_FULL:
        disk_is_full(server);
        break;
    case CLIENT_DIES:
        reg_client_dies(reg->client[sim_draw(world, reg->plan.clients)]);
        break;
    case FAULT_KINDS:
        break;
    }
}

static void heal(struct reg *reg)
{
    reg->world->calm = true;
    dp_sim_disk_cut_at(reg->server->sim, 0);
    dp_sim_disk_capacity(reg->server->sim, UINT64_MAX);
    for (int kind = 0; kind < DP_SIM_OPERATIONS; kind++)
        dp_sim_disk_fail(reg->server->sim, (enum dp_sim_operation)kind, 0, 0, DP_OK);
}

/* ---- a seed ---- */

/* Nothing, half of the time. */
static uint32_t maybe(struct sim_world *world, uint64_t most)
{
    return sim_draw(world, 2) ? 0 : (uint32_t)sim_draw(world, most + 1);
}

static void make_plan(struct reg *reg)
{
    struct sim_world *world = reg->world;
    struct reg_plan *plan = &reg->plan;
    plan->clients = 1 + (uint32_t)sim_draw(world, REG_CLIENTS_MAX);
    plan->names = 1 + (uint32_t)sim_draw(world, REG_NAMES_MAX);
    plan->turns = 5 + (uint32_t)sim_draw(world, 30);
    plan->think_ms = maybe(world, 1000);
    plan->retry_ms = 50 + (uint32_t)sim_draw(world, 1000);
    plan->calm_event = 100 + (uint64_t)plan->clients * plan->turns * 8;
    plan->clean = sim_draw(world, 8) == 0;
    if (plan->clean)
        return;
    plan->mail.lose = maybe(world, 300);
    plan->mail.twice = maybe(world, 300);
    plan->mail.slow = maybe(world, 300);
    plan->mail.slow_ms = 1 + (uint32_t)sim_draw(world, 3000);
    plan->storm = sim_draw(world, 4) == 0;
    plan->faults = sim_draw(world, 8) ? 1 + (uint32_t)sim_draw(world, 30) : 0;
}

static bool clients_are_done(const struct reg *reg)
{
    for (uint32_t i = 0; i < reg->plan.clients; i++)
        if (!reg_client_is_done(reg->client[i]))
            return false;
    return true;
}

static void step(const struct reg *reg, uint64_t deadline_ns)
{
    if (reg->world->now_ns > deadline_ns)
        sim_fail(reg->world, "nothing fails any more, and clients are not done");
    if (!sim_step(reg->world))
        sim_fail(reg->world, "nothing happens any more, and clients are not done");
}

static void run(struct reg *reg)
{
    struct sim_world *world = reg->world;
    uint32_t kinds = 1 + (uint32_t)sim_draw(world, (1u << FAULT_KINDS) - 1); /* those that this seed has */
    uint64_t deadline_ns = UINT64_MAX;
    while (!clients_are_done(reg)) {
        enum fault kind = (enum fault)sim_draw(world, FAULT_KINDS);
        bool fails = !world->calm && sim_draw(world, reg->plan.calm_event) < reg->plan.faults;
        if (fails && (kinds >> kind & 1))
            make_fault(reg, kind);
        if (!world->calm && world->events > reg->plan.calm_event) {
            heal(reg);
            deadline_ns = world->now_ns + PATIENCE_NS;
        }
        step(reg, deadline_ns);
    }
}

/* After a loss of power all that was ever answered is there. */
static void audit(struct reg *reg)
{
    heal(reg);
    server_is_down(reg->server, true);
    reg_client_audit(reg->client[0]);
    uint64_t deadline_ns = reg->world->now_ns + PATIENCE_NS;
    while (!reg_client_is_done(reg->client[0]))
        step(reg, deadline_ns);
}

static uint64_t answers; /* of all seeds */

static uint64_t play(uint64_t seed)
{
    struct reg reg = {.world = sim_world_new(seed)};
    make_plan(&reg);
    reg.model = reg_model_new(&reg);
    reg.server = server_new(&reg);
    for (uint32_t i = 0; i < reg.plan.clients; i++)
        reg.client[i] = reg_client_new(&reg, i);
    run(&reg);
    audit(&reg);
    uint64_t events = reg.world->events;
    answers += reg.server->answers;
    for (uint32_t i = 0; i < reg.plan.clients; i++)
        reg_client_free(&reg.client[i]);
    server_free(&reg.server);
    sim_mail_clear(reg.world);
    reg_model_free(&reg.model);
    sim_world_free(&reg.world);
    return events;
}

static void tell(void)
{
    (void)printf("%" PRIu64 " answers\n", answers);
}

int main(int argc, char **argv)
{
    return sim_seeds_main(argc, argv, "register_sim", play, tell);
}
