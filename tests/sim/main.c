/* sim: a cluster in one thread, from a seed: the real shard, journal and client on simulated disks, network and clock.
 *     sim [leases | away | checkpoint] ...
 * seeds.h has its command line, README.md what is checked. */
#include "tests/sim/command.h"
#include "tests/sim/control.h"
#include "tests/sim/counts.h"
#include "tests/sim/mail.h"
#include "tests/sim/model.h"
#include "tests/sim/restore.h"
#include "tests/sim/seeds.h"
#include "tests/sim/sequential.h"
#include "tests/sim/server.h"
#include "tests/sim/stranger.h"
#include "tests/sim/worker.h"

#include <string.h>

/* After the last fault. (Who waits for leases asks again every 20 ms.) */
#define PATIENCE_NS ((sim_scene == SIM_LEASES ? 1200 : 3000) * SIM_S)

static void fault(struct sim_world *world, const struct sim_fault *f)
{
    struct sim_server *server = world->server[f->choice % world->plan.servers];
    struct sim_worker *worker = world->worker[f->choice % world->plan.workers];
    uint64_t more = f->choice / 16;
    switch (f->kind) {
    case SIM_PROCESS_DIES:
        sim_server_dies(server, false);
        break;
    case SIM_POWER_GOES:
        sim_server_dies(server, true);
        break;
    case SIM_POWER_GOES_LATER:
        sim_server_loses_power_at(server, 1 + more % 24);
        break;
    case SIM_POWER_GOES_AT_JOB:
        sim_server_loses_power_at_job(server, more % 2);
        break;
    case SIM_WORKER_DIES:
        sim_worker_dies(worker);
        break;
    case SIM_RESET:
        sim_worker_reset(worker, (uint32_t)(more % world->plan.servers));
        break;
    case SIM_READ_FAILS:
        sim_server_read_fails(server);
        break;
    case SIM_WRITE_FAILS:
        sim_server_write_fails(server, more);
        break;
    case SIM_SYNC_FAILS:
        sim_server_sync_fails(server, more);
        break;
    case SIM_DISK_FULL:
        sim_server_disk_is_full(server);
        break;
    case SIM_RESTART:
        sim_server_restart(server);
        break;
    case SIM_ALL_DIE:
        for (uint32_t i = 0; i < world->plan.servers; i++)
            sim_server_dies(world->server[i], more % 2);
        break;
    case SIM_FAULT_KINDS:
        break;
    }
}

static void step(struct sim_world *world, uint64_t deadline_ns, const char *what)
{
    if (world->calm && world->now_ns > deadline_ns)
        sim_fail(world, "nothing fails any more, and %s", what);
    if (!sim_step(world))
        sim_fail(world, "nothing happens any more, and %s", what);
}

/* And what they pushed last is closed, where pushes wait for that. */
static bool workers_are_done(const struct sim_world *world)
{
    for (uint32_t i = 0; i < world->plan.workers; i++)
        if (!sim_worker_is_done(world->worker[i]))
            return false;
    return sim_model_is_settled(world->model);
}

/* It is due, or all is done. False: there is no checkpoint, or nothing is to be restored any more. */
static bool restore(struct sim_world *world, bool all_done)
{
    struct sim_plan *plan = &world->plan;
    if (plan->restores == 0 ||
        (!all_done && (world->calm || world->events < plan->restore_event[plan->restores - 1])))
        return false;
    const struct sim_checkpoint *from = sim_checkpoints_pick(world);
    if (!from)
        return false;
    uint32_t servers = from->from.manifest.shards;
    if (sim_draw(world, 2))
        servers = 1 + (uint32_t)sim_draw(world, SIM_SERVERS_MAX);
    plan->restores--;
    sim_restore(world, from, servers);
    return true;
}

static void heal(struct sim_world *world)
{
    world->calm = true;
    for (uint32_t i = 0; i < world->plan.servers; i++)
        sim_server_heal(world->server[i]);
}

static void run(struct sim_world *world)
{
    uint64_t deadline_ns = UINT64_MAX;
    for (uint32_t next = 0;
         !workers_are_done(world) || !sim_commands_are_done(world) || restore(world, true);) {
        (void)restore(world, false);
        for (; next < world->plan.faults && world->plan.fault[next].event <= world->events; next++)
            fault(world, &world->plan.fault[next]);
        if (!world->calm && next == world->plan.faults && world->events > world->plan.calm_event) {
            heal(world);
            deadline_ns = world->now_ns + PATIENCE_NS;
        }
        step(world, deadline_ns, "workers are not done");
    }
    heal(world);
}

/* All drained, and closed. */
static void stop_all(struct sim_world *world)
{
    uint64_t deadline_ns = world->now_ns + PATIENCE_NS;
    for (uint32_t stopped = 0; stopped < world->plan.servers;) {
        stopped = 0;
        for (uint32_t i = 0; i < world->plan.servers; i++) {
            if (sim_server_is_stopped(world->server[i]))
                stopped++;
            else if (sim_server_is_up(world->server[i]))
                sim_server_stop(world->server[i]);
        }
        if (stopped < world->plan.servers)
            step(world, deadline_ns, "servers are not drained");
    }
}

static void audit(struct sim_world *world)
{
    uint64_t deadline_ns = world->now_ns + PATIENCE_NS;
    for (uint32_t i = 0; i < world->plan.servers; i++)
        sim_server_start(world->server[i]);
    sim_worker_audit(world->worker[0]);
    while (!sim_worker_is_done(world->worker[0]))
        step(world, deadline_ns, "the audit is not done");
}

static uint64_t play(uint64_t seed)
{
    struct sim_world *world = sim_world_new(seed);
    sim_plan_make(world, &world->plan);
    world->model = sim_model_new(world);
    world->sequential = sim_sequential_new(world);
    world->control = sim_control_new(world);
    world->checkpoints = sim_checkpoints_new(world);
    world->commands = sim_commands_new(world);
    for (uint32_t i = 0; i < world->plan.servers; i++)
        (void)sim_server_new(world, i);
    for (uint32_t i = 0; i < world->plan.workers; i++)
        (void)sim_worker_new(world, i);
    (void)sim_stranger_new(world);
    for (uint32_t i = 0; i < world->plan.servers; i++)
        sim_server_start(world->server[i]);
    sim_commands_begin(world);
    run(world);
    sim_commands_end(world);
    if (world->sequential)
        sim_sequential_compare(world->sequential);
    stop_all(world);
    audit(world);
    stop_all(world);
    sim_model_end(world->model);
    uint64_t events = world->events;
    for (uint32_t i = 0; i < world->plan.workers; i++)
        sim_worker_free(&world->worker[i]);
    for (uint32_t i = 0; i < world->plan.servers; i++)
        sim_server_free(&world->server[i]);
    sim_stranger_free(&world->stranger);
    sim_control_free(&world->control);
    sim_commands_free(&world->commands);
    sim_sequential_free(&world->sequential);
    sim_mail_clear(world);
    sim_model_free(&world->model);
    sim_checkpoints_free(&world->checkpoints);
    sim_world_free(&world);
    return events;
}

/* The scene, if there is one, stands before the options. */
int main(int argc, char **argv)
{
    const char *program = "sim";
    if (argc > 1 && strcmp(argv[1], "leases") == 0) {
        sim_scene = SIM_LEASES;
        program = "sim leases";
    } else if (argc > 1 && strcmp(argv[1], "away") == 0) {
        sim_scene = SIM_AWAY;
        program = "sim away";
    } else if (argc > 1 && strcmp(argv[1], "checkpoint") == 0) {
        sim_scene = SIM_CHECKPOINT;
        program = "sim checkpoint";
    }
    int scene = sim_scene != SIM_MIXED;
    return sim_seeds_main(argc - scene, argv + scene, program, play, sim_counts_print);
}
