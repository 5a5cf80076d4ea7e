#include "tests/sim/net.h"

#include "common/base/bytes.h"
#include "tests/sim/server.h"
#include "tests/sim/worker.h"

#include <stdlib.h>

/* A message under way. Its connection is the peer's id: worker u32 | life u32 | resets u32. */
struct mail {
    struct sim_world *world;
    struct dp_message *message;
    struct dp_peer peer;
    uint32_t server;
    bool to_server;
};

static struct dp_message *copy_of(const struct dp_message *message)
{
    struct dp_message *copy = dp_message_new(message->frames);
    DP_ASSERT(copy);
    for (uint32_t i = 0; i < message->frames; i++)
        dp_message_add(copy, dp_frame_copy(message->frame[i].data, message->frame[i].size));
    return copy;
}

static bool is_stale(const struct mail *mail)
{
    uint32_t worker = dp_load_u32le(mail->peer.id);
    return dp_load_u32le(mail->peer.id + 8) != sim_worker_resets(mail->world->worker[worker], mail->server) ||
           (!mail->to_server &&
            dp_load_u32le(mail->peer.id + 4) != sim_worker_life(mail->world->worker[worker]));
}

static void arrive(void *context, uint64_t what)
{
    struct mail *mail = context;
    (void)what;
    if (is_stale(mail))
        dp_message_free(&mail->message);
    else if (mail->to_server)
        sim_server_receive(mail->world->server[mail->server], &mail->peer, &mail->message);
    else
        sim_worker_receive(mail->world->worker[dp_load_u32le(mail->peer.id)], mail->server, &mail->message);
    free(mail);
}

static void carry(struct sim_world *world, const struct mail *mail)
{
    const struct sim_plan *plan = &world->plan;
    for (uint32_t copies = !world->calm && sim_happens(world, plan->twice) ? 2 : 1; copies > 0; copies--) {
        if (!world->calm && sim_happens(world, plan->lose))
            continue;
        struct mail *sent = malloc(sizeof *sent);
        DP_ASSERT(sent);
        *sent = *mail;
        sent->message = copy_of(mail->message);
        uint64_t delay_ns = 50000 + sim_draw(world, 200000);
        if (!world->calm && sim_happens(world, plan->slow))
            delay_ns += sim_draw(world, plan->slow_ms * SIM_MS + 1);
        sim_at(world, delay_ns, arrive, sent, 0);
    }
}

void sim_net_to_server(struct sim_world *world, uint32_t worker, uint32_t server, struct dp_message *message)
{
    struct mail mail = {.world = world, .message = message, .server = server, .to_server = true};
    mail.peer.size = SIM_PEER_BYTES;
    dp_store_u32le(mail.peer.id, worker);
    dp_store_u32le(mail.peer.id + 4, sim_worker_life(world->worker[worker]));
    dp_store_u32le(mail.peer.id + 8, sim_worker_resets(world->worker[worker], server));
    carry(world, &mail);
    dp_message_free(&message);
}

void sim_net_to_worker(struct sim_world *world, uint32_t server, const struct dp_peer *to,
                       struct dp_message *message)
{
    struct mail mail = {.world = world, .message = message, .peer = *to, .server = server};
    carry(world, &mail);
    dp_message_free(&message);
}

void sim_net_clear(struct sim_world *world)
{
    for (uint32_t i = 0; i < world->waiting; i++)
        if (world->event[i].happen == arrive) {
            struct mail *mail = world->event[i].context;
            dp_message_free(&mail->message);
            free(mail);
        }
}
