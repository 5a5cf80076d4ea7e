/* In the place of a silent member, in the order of worker/coordinate/takeover.c:
 *     join -> what every shard has, what any has -> make again what some lack -> leave at the first number that none has
 * With backup members it pushes empty ones: a shard may have closed those steps. */
#include "tests/sim/counts.h"
#include "tests/sim/worker_inner.h"

#include <inttypes.h>

/* The first number behind which no shard has any of them. */
static uint32_t find_end(struct sim_worker *worker)
{
    uint64_t all[(SIM_STEPS_MAX + 63) / 64] = {0}, any[(SIM_STEPS_MAX + 63) / 64] = {0};
    uint32_t steps = sim_pushes_of(&worker->world->plan, worker->index), end;
    uint64_t stream = sim_worker_stream(worker);
    struct dp_error err = {0};
    sim_worker_must(worker, dp_client_pushed(worker->client, stream, 0, steps, all, SIM_WAIT_MS, &err), &err);
    if (!worker->life.dead)
        sim_worker_must(worker,
                        dp_client_pushed_anywhere(worker->client, stream, 0, steps, any, SIM_WAIT_MS, &err),
                        &err);
    worker->next = worker->from;
    while (worker->next < steps && all[worker->next / 64] >> worker->next % 64 & 1)
        worker->next++;
    end = worker->next;
    for (uint32_t n = worker->next; n < steps; n++)
        if (any[n / 64] >> n % 64 & 1)
            end = n + 1;
    return end;
}

void sim_worker_stand_in(struct sim_worker *worker)
{
    uint32_t end = 0;
    sim_worker_join(worker);
    if (!worker->life.dead)
        end = find_end(worker);
    worker->told = worker->next;
    sim_counts_add(SIM_MADE_AGAIN, worker->life.dead ? 0 : end - worker->next);
    if (sim_has_backups(&worker->world->plan))
        sim_worker_push_empty(worker, end);
    else if (!worker->life.dead)
        sim_worker_train(worker, end);
    sim_worker_wait_pushes(worker, 0);
    if (!worker->life.dead)
        sim_worker_leave(worker, end);
    if (worker->life.dead)
        return;
    sim_say(worker->world, "w%" PRIu32 ": was let leave before number %" PRIu32, worker->index, end);
    sim_counts_add(SIM_LEFT, 1);
}
