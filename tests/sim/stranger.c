#include "tests/sim/stranger.h"

#include "common/model/stream.h"
#include "common/wire/request.h"
#include "tests/sim/server.h"
#include "tests/sim/worker.h"

#include <stdlib.h>

#define CLIENTS    UINT64_C(1000000) /* its client streams begin here: of a store before, as it were */
#define RUN        5u                /* its runs: this and the next; workers train run 0 */
#define NOBODYS    (UINT64_C(1) << 62)
#define SESSIONS   (UINT64_C(1) << 40)
#define PUSHES_MAX 16u

struct sim_stranger {
    struct sim_world *world;
    uint64_t chance, sessions, pushes;
};

static uint64_t draw(struct sim_stranger *stranger, uint64_t below)
{
    stranger->chance = stranger->chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (stranger->chance >> 24) % below;
}

/* New ones come up as it goes on; one in three is older, and may have been forgotten. */
static uint64_t place(struct sim_stranger *stranger)
{
    uint64_t front = stranger->pushes / 4, back = draw(stranger, 3) ? 0 : draw(stranger, 150);
    return front + draw(stranger, 8) - (back < front ? back : front);
}

static uint64_t pick(struct sim_stranger *stranger)
{
    switch (draw(stranger, 8)) {
    case 0:
        return draw(stranger, NOBODYS) | NOBODYS | draw(stranger, 2) << 63;
    case 1:
        return UINT64_MAX - draw(stranger, 1000);
    case 2:
    case 3:
    case 4:
        return CLIENTS + place(stranger);
    default:
        return dp_stream_of_run(RUN + (uint32_t)draw(stranger, 2), (uint32_t)place(stranger));
    }
}

bool sim_may_be_let_in(uint64_t stream)
{
    if (!dp_stream_is_training(stream))
        return stream >= CLIENTS && stream < dp_stream_of_client(SIM_WALL_S);
    return dp_stream_run(stream) == RUN || dp_stream_run(stream) == RUN + 1;
}

bool sim_is_strange(const struct sim_world *world, uint64_t stream)
{
    return world->stranger && (!dp_stream_is_training(stream) || dp_stream_run(stream) != 0);
}

static void say(struct sim_server *server, struct dp_request *request)
{
    static const struct dp_peer peer = {.size = 1, .id = {1}}; /* no worker's */
    struct dp_message *message = NULL;
    struct dp_error err = {0};
    request->cluster = 7;
    request->generation = 1;
    request->timeout_ms = 1000;
    enum dp_status st = dp_request_encode(request, NULL, 0, &message, &err);
    DP_ASSERT(st == DP_OK);
    sim_server_receive(server, &peer, &message);
}

static void speak(void *context, uint64_t what)
{
    struct sim_stranger *stranger = context;
    struct sim_world *world = stranger->world;
    struct sim_server *server = world->server[draw(stranger, world->plan.servers)];
    if (world->calm)
        return;
    uint64_t session = SESSIONS + ++stranger->sessions, pushes = 1 + draw(stranger, PUSHES_MAX);
    struct dp_request hello = {
        .kind = DP_REQUEST_HELLO, .id = 1, .session = session, .client = "stranger", .next_sequence = 1};
    say(server, &hello);
    for (uint64_t i = 1; i <= pushes; i++, stranger->pushes++) {
        struct dp_request push = {.kind = DP_REQUEST_PUSH,
                                  .id = 1 + i,
                                  .session = session,
                                  .sequence = i,
                                  .stream = pick(stranger),
                                  .number = draw(stranger, 3),
                                  .rate = 1};
        say(server, &push);
    }
    sim_at(world, (1 + draw(stranger, 50)) * SIM_MS, speak, stranger, what);
}

struct sim_stranger *sim_stranger_new(struct sim_world *world)
{
    bool own = false;
    for (uint32_t i = 0; i < world->plan.workers; i++)
        own |= sim_worker_has_own_stream(world->worker[i]);
    if (world->seed % 4 != 1 || own || world->plan.fixed || world->plan.sectors || world->plan.leased ||
        world->plan.away || world->plan.checkpoints)
        return NULL;
    struct sim_stranger *stranger = calloc(1, sizeof *stranger);
    DP_ASSERT(stranger);
    stranger->world = world;
    stranger->chance = world->seed;
    world->stranger = stranger;
    sim_at(world, SIM_MS, speak, stranger, 0);
    return stranger;
}

void sim_stranger_free(struct sim_stranger **stranger)
{
    free(*stranger);
    *stranger = NULL;
}
