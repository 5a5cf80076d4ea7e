#include "tests/sim/net.h"

#include "common/base/bytes.h"
#include "tests/sim/command.h"
#include "tests/sim/control.h"
#include "tests/sim/mail.h"
#include "tests/sim/server.h"
#include "tests/sim/worker.h"

/* A connection is the peer's id: worker u32 | life u32 | resets u32. */
static bool is_stale(const struct sim_worker *worker, const struct sim_mail *mail)
{
    return dp_load_u32le(mail->peer.id + 8) != sim_worker_resets(worker, mail->link) ||
           (!mail->to_server && dp_load_u32le(mail->peer.id + 4) != sim_worker_life(worker));
}

static void arrive_at_server(struct sim_world *world, struct sim_mail *mail)
{
    if (mail->link == world->plan.servers)
        sim_control_receive(world->control, &mail->peer, &mail->message);
    else
        sim_server_receive(world->server[mail->link], &mail->peer, &mail->message);
}

static bool is_command(const struct sim_mail *mail)
{
    return dp_load_u32le(mail->peer.id) >= SIM_WORKERS_MAX;
}

static void arrive_of_command(struct sim_world *world, struct sim_mail *mail)
{
    if (mail->to_server)
        arrive_at_server(world, mail);
    else
        sim_command_receive(world, dp_load_u32le(mail->peer.id), dp_load_u32le(mail->peer.id + 4), mail->link,
                            &mail->message);
}

static void arrive(void *context, struct sim_mail *mail)
{
    struct sim_world *world = context;
    if (is_command(mail)) {
        arrive_of_command(world, mail);
        return;
    }
    struct sim_worker *worker =
        sim_worker_of(world, dp_load_u32le(mail->peer.id), dp_load_u32le(mail->peer.id + 4));
    if (is_stale(worker, mail))
        return;
    if (mail->to_server)
        arrive_at_server(world, mail);
    else
        sim_worker_receive(worker, mail->link, &mail->message);
}

static void send_from(struct sim_world *world, uint32_t index, uint32_t life, uint32_t resets,
                      uint32_t server, struct dp_message *message)
{
    struct sim_mail mail = {.message = message, .link = server, .to_server = true};
    mail.peer.size = SIM_PEER_BYTES;
    dp_store_u32le(mail.peer.id, index);
    dp_store_u32le(mail.peer.id + 4, life);
    dp_store_u32le(mail.peer.id + 8, resets);
    sim_mail_send(world, &world->plan.mail, &mail, arrive, world);
}

void sim_net_from(struct sim_world *world, uint32_t index, uint32_t life, uint32_t server,
                  struct dp_message *message)
{
    send_from(world, index, life, 0, server, message);
}

void sim_net_to_server(struct sim_world *world, const struct sim_worker *from, uint32_t server,
                       struct dp_message *message)
{
    send_from(world, sim_worker_index(from), sim_worker_life(from), sim_worker_resets(from, server), server,
              message);
}

void sim_net_to_worker(struct sim_world *world, uint32_t server, const struct dp_peer *to,
                       struct dp_message *message)
{
    const struct sim_mail mail = {.message = message, .peer = *to, .link = server};
    sim_mail_send(world, &world->plan.mail, &mail, arrive, world);
}
