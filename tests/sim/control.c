#include "tests/sim/control.h"

#include "common/base/bytes.h"
#include "server/control/leases.h"
#include "server/control/register_service.h"
#include "tests/lib/sim_disk.h"
#include "tests/sim/model.h"
#include "tests/sim/net.h"
#include "tests/sim/server.h"

#include <stdio.h>
#include <stdlib.h>

struct sim_control {
    struct sim_world *world;
    struct dp_sim_disk *sim;
    struct dp_disk disk;
    struct dp_control_register *values; /* NULL: it is down */
    struct dp_control_register_service *service;
    struct dp_leases *leases;
    bool made; /* it was open once */
};

static void answer(void *context, const struct dp_peer *to, struct dp_reply *reply, struct dp_frame *frames,
                   uint32_t frame_count)
{
    struct sim_control *control = context;
    struct dp_message *message = NULL;
    struct dp_error err = {0};
    reply->cluster = 7;
    reply->generation = control->world->generation;
    reply->history = control->world->history;
    if (dp_reply_encode(reply, frames, frame_count, &message, &err) != DP_OK)
        sim_fail(control->world, "the register's answer: %s", err.text);
    sim_net_to_worker(control->world, control->world->plan.servers, to, message);
}

/* What stands now. */
static void tell_model(struct sim_control *control)
{
    char name[32];
    struct dp_control_register_entry entry;
    (void)snprintf(name, sizeof name, "run/%u/view", SIM_RUN);
    if (dp_control_register_get(control->values, name, &entry, NULL) == DP_OK && entry.version > 0)
        sim_model_view(control->world->model, entry.bytes, entry.size);
}

static enum dp_status lease(struct sim_control *control, const struct dp_peer *to,
                            const struct dp_request *request, struct dp_error *err)
{
    struct dp_lease_answer given;
    enum dp_status st = dp_leases_take(control->leases, control->world->now_ns, request, &given, err);
    sim_model_leased(control->world->model, request, st, &given);
    if (st != DP_OK)
        return st;
    struct dp_frame numbers = dp_frame_new(given.count * sizeof given.number[0]);
    for (uint32_t i = 0; i < given.count; i++)
        dp_store_u64le((char *)numbers.data + i * sizeof given.number[0], given.number[i]);
    struct dp_reply reply = {.id = request->id,
                             .session = request->session,
                             .kind = DP_REPLY_LEASED,
                             .lease = given.state,
                             .wait_ms = given.wait_ms,
                             .done = given.done};
    answer(control, to, &reply, &numbers, 1);
    return DP_OK;
}

void sim_control_receive(struct sim_control *control, const struct dp_peer *from, struct dp_message **message)
{
    static struct dp_request request; /* large */
    struct dp_message *taken = *message;
    struct dp_error err = {0};
    *message = NULL;
    if (!control->values) {
        dp_message_free(&taken);
        return;
    }
    enum dp_status st = dp_request_decode(taken, &request, &err);
    if (st == DP_OK && request.kind == DP_REQUEST_LEASE)
        st = lease(control, from, &request, &err);
    else if (st == DP_OK)
        st = dp_control_register_service_take(control->service, control->world->now_ns, from, &request, &err);
    if (dp_sim_disk_is_off(control->sim)) {
        dp_message_free(&taken);
        sim_server_dies(control->world->server[0], true);
        return;
    }
    tell_model(control);
    if (st != DP_OK) {
        struct dp_reply reply = {
            .id = request.id, .session = request.session, .status = dp_status_answered(st)};
        (void)snprintf(reply.reason, sizeof reply.reason, "%s", err.text);
        answer(control, from, &reply, NULL, 0);
    }
    dp_message_free(&taken);
}

/* Its clock is that of the simulated shards' admission: runs of the first day. */
static enum dp_status check(void *context, const struct dp_control_names_set *set, struct dp_error *err)
{
    const struct dp_control_names_rules rules = {0};
    return dp_control_names_check(&rules, set, err);
}

bool sim_control_up(struct sim_control *control)
{
    struct dp_error err = {0};
    bool made;
    if (!control)
        return true;
    const struct dp_control_register_options options = {
        .disk = &control->disk, .new_id = 7, .create = !control->made};
    enum dp_status st = dp_control_register_open(&options, &control->values, &made, &err);
    if (st != DP_OK && dp_sim_disk_is_off(control->sim))
        return false;
    if (st != DP_OK)
        sim_fail(control->world, "the register is refused: %s", err.text);
    control->made = true;
    const struct dp_control_register_service_options service = {
        .values = control->values, .check = check, .answer = answer, .context = control};
    st = dp_control_register_service_new(&service, &control->service, &err);
    DP_ASSERT(st == DP_OK);
    st = dp_leases_new(&control->leases, &err);
    DP_ASSERT(st == DP_OK);
    tell_model(control);
    return true;
}

void sim_control_down(struct sim_control *control, bool power)
{
    static const enum dp_sim_survival survivals[] = {DP_SIM_NOTHING, DP_SIM_ALL, DP_SIM_RANDOM};
    if (!control)
        return;
    dp_control_register_service_free(&control->service);
    dp_control_register_close(&control->values);
    dp_leases_free(&control->leases);
    sim_model_leases_lost(control->world->model);
    dp_sim_disk_restart(control->sim, power ? survivals[sim_draw(control->world, 3)] : DP_SIM_PROCESS);
}

struct sim_control *sim_control_new(struct sim_world *world)
{
    if (!sim_has_members(&world->plan) && !world->plan.leased && !world->plan.checkpoints)
        return NULL;
    struct sim_control *control = calloc(1, sizeof *control);
    DP_ASSERT(control);
    control->world = world;
    control->sim = dp_sim_disk_new(world->seed);
    control->disk = dp_sim_disk_interface(control->sim);
    return control;
}

void sim_control_free(struct sim_control **out)
{
    struct sim_control *control = *out;
    *out = NULL;
    if (!control)
        return;
    dp_control_register_service_free(&control->service);
    dp_control_register_close(&control->values);
    dp_leases_free(&control->leases);
    dp_sim_disk_free(&control->sim);
    free(control);
}

void sim_control_restore(struct sim_control *control, struct dp_sim_disk *sim)
{
    DP_ASSERT(!control->made);
    dp_sim_disk_free(&control->sim);
    control->sim = sim;
    control->disk = dp_sim_disk_interface(sim);
    control->made = true;
}

void sim_control_loses_power_at(struct sim_control *control, uint64_t operation)
{
    if (control)
        dp_sim_disk_cut_at(control->sim, operation);
}

void sim_control_heal(struct sim_control *control)
{
    if (control)
        dp_sim_disk_cut_at(control->sim, 0);
}
