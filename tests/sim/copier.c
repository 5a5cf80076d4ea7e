#include "tests/sim/copier.h"

#include "server/checkpoint/tail.h"
#include "tests/lib/sim_disk.h"
#include "tests/sim/checkpoints.h"
#include "tests/sim/counts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define JOBS_MAX 4u /* one of now, and those of shards that were closed meanwhile */

struct sim_copier {
    struct sim_copier_options o;
    struct dp_copier seam;
    struct {
        struct dp_copy_job *job;
        uint64_t number;
        struct sim_part *part;
    } under_way[JOBS_MAX];
    uint32_t count;
    uint64_t number; /* of the last job */
    struct dp_copy_job *ended;
};

static void end(struct sim_copier *copier, uint32_t at, enum dp_status status)
{
    struct dp_copy_job *job = copier->under_way[at].job;
    if (atomic_load(&job->cancelled))
        status = DP_STOPPING;
    job->status = DP_OK;
    if (status != DP_OK) {
        job->status = dp_fail(&job->error, status, "simulated copier: it fails");
        sim_part_free(&copier->under_way[at].part);
    } else {
        sim_checkpoints_put(copier->o.world, &copier->under_way[at].part);
        job->manifest = strdup("part");
        DP_ASSERT(job->manifest);
    }
    copier->under_way[at] = copier->under_way[--copier->count];
    job->next = copier->ended;
    copier->ended = job;
    copier->o.wake(copier->o.context);
}

static uint64_t delay_ns(const struct sim_copier *copier)
{
    struct sim_world *world = copier->o.world;
    uint64_t ms = sim_draw(world, 8) == 0 ? 20000 : sim_draw(world, 2) ? 2000 : 20;
    return 1000 * (1 + sim_draw(world, 1000 * ms));
}

static bool fails(const struct sim_copier *copier)
{
    return !copier->o.world->calm && sim_draw(copier->o.world, 16) == 0;
}

static uint32_t find(const struct sim_copier *copier, uint64_t number)
{
    uint32_t at = 0;
    while (at < copier->count && copier->under_way[at].number != number)
        at++;
    return at;
}

static void copies_rows(void *context, uint64_t number)
{
    struct sim_copier *copier = context;
    uint32_t at = find(copier, number);
    char name[DP_COPY_LINK_BYTES];
    if (at == copier->count)
        return;
    const struct dp_copy_job *job = copier->under_way[at].job;
    dp_copy_link_name(job->order, job->cut, name);
    struct sim_part *part = copier->under_way[at].part;
    part->link = sim_store_copy_link(copier->o.rows, name);
    if (!part->link)
        sim_fail(copier->o.world, "shard %" PRIu32 ": the link %s is gone before its copy ended", job->shard,
                 name);
    end(copier, at, fails(copier) ? DP_IO : DP_OK);
}

static void copy_tail(struct sim_copier *copier, const struct dp_copy_job *job, struct sim_part *part)
{
    struct dp_error err = {0};
    part->tail = dp_sim_disk_new(sim_draw(copier->o.world, UINT64_C(1) << 40));
    struct dp_disk to = dp_sim_disk_interface(part->tail);
    const struct dp_tail_journal tail = {.from = copier->o.journal,
                                         .to = &to,
                                         .job = job,
                                         .secret = 1 + sim_draw(copier->o.world, UINT64_C(1) << 40)};
    if (dp_tail_write(&tail, &part->facts, &err) != DP_OK)
        sim_fail(copier->o.world, "shard %" PRIu32 "'s tail: %s", job->shard, err.text);
    sim_say(copier->o.world,
            "s%" PRIu32 ": the tail of cut %" PRIu32 ": records %" PRIu64 " to %" PRIu64 ", %" PRIu64
            " behind, as %" PRIu64,
            job->shard, job->cut, job->after, job->lsn, job->until, part->facts.records);
}

static void copies_tail(void *context, uint64_t number)
{
    struct sim_copier *copier = context;
    uint32_t at = find(copier, number);
    if (at == copier->count)
        return;
    struct dp_copy_job *job = copier->under_way[at].job;
    if (atomic_load(&job->cancelled) || fails(copier)) {
        end(copier, at, DP_FULL);
        return;
    }
    copier->under_way[at].part = sim_part_new(job);
    copy_tail(copier, job, copier->under_way[at].part);
    atomic_store(&job->has_tail, true);
    copier->o.wake(copier->o.context);
    sim_at(copier->o.world, delay_ns(copier), copies_rows, copier, number);
}

/* ---- the seam */

static void submit(void *self, struct dp_copy_job *job)
{
    struct sim_copier *copier = self;
    DP_ASSERT(copier->count < JOBS_MAX);
    copier->under_way[copier->count].job = job;
    copier->under_way[copier->count].part = NULL;
    copier->under_way[copier->count++].number = ++copier->number;
    sim_at(copier->o.world, delay_ns(copier), copies_tail, copier, copier->number);
}

static struct dp_copy_job *completed(void *self)
{
    struct sim_copier *copier = self;
    struct dp_copy_job *job = copier->ended;
    if (job)
        copier->ended = job->next;
    return job;
}

static void cancel(void *self, struct dp_copy_job *job)
{
    atomic_store(&job->cancelled, true);
}

struct dp_copier *sim_copier_seam(struct sim_copier *copier)
{
    return &copier->seam;
}

/* ---- */

struct sim_copier *sim_copier_new(const struct sim_copier_options *options)
{
    struct sim_copier *copier = calloc(1, sizeof *copier);
    DP_ASSERT(copier);
    copier->o = *options;
    copier->seam = (struct dp_copier){submit, completed, cancel, copier};
    return copier;
}

void sim_copier_crash(struct sim_copier *copier)
{
    while (copier->count > 0) {
        sim_part_free(&copier->under_way[--copier->count].part);
        dp_copy_job_free(&copier->under_way[copier->count].job);
    }
    for (struct dp_copy_job *job; (job = completed(copier));)
        dp_copy_job_free(&job);
}

void sim_copier_free(struct sim_copier **copier)
{
    if (!*copier)
        return;
    sim_copier_crash(*copier);
    free(*copier);
    *copier = NULL;
}
