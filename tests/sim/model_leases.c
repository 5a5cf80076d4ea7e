/* What must hold of leases: who stays in a place, what is done, which numbers are given; and that each number is once on each shard. */
#include "common/model/stream.h"
#include "tests/sim/counts.h"
#include "tests/sim/model_inner.h"

#include <inttypes.h>

/* ---- what shards have */

static uint32_t epoch_of(const struct sim_model *model, uint64_t stream, uint64_t number)
{
    const struct sim_plan *plan = &model->world->plan;
    if (!dp_stream_is_training(stream) || dp_stream_run(stream) != SIM_RUN ||
        dp_stream_epoch(stream) >= plan->epochs || number >= plan->total)
        sim_fail(model->world, "push %" PRIu64 " of stream %016" PRIx64 " was never to be leased", number,
                 stream);
    return dp_stream_epoch(stream);
}

void sim_model_leased_push(struct sim_model *model, uint32_t shard, uint64_t lsn)
{
    struct sim_model_shard *s = &model->shard[shard];
    const struct sim_record *record = &s->record[lsn - 1];
    uint64_t *had = &s->leased[epoch_of(model, record->stream, record->number)][record->number];
    if (*had > 0)
        sim_fail(model->world,
                 "shard %" PRIu32 " appended push %" PRIu64 " of stream %016" PRIx64 " as lsn %" PRIu64
                 ", a second time: lsn %" PRIu64,
                 shard, record->number, record->stream, lsn, *had);
    *had = lsn;
}

static bool every_shard_has(const struct sim_model *model, uint32_t epoch, uint64_t number)
{
    for (uint32_t i = 0; i < model->world->plan.servers; i++)
        if (model->shard[i].leased[epoch][number] == 0)
            return false;
    return true;
}

void sim_model_told_of(struct sim_model *model, uint64_t stream, uint64_t number)
{
    uint32_t epoch = epoch_of(model, stream, number);
    if (!every_shard_has(model, epoch, number))
        sim_fail(model->world,
                 "it is told that every shard has push %" PRIu64 " of stream %016" PRIx64
                 ", and some shard has not",
                 number, stream);
    for (uint32_t i = 0; i < model->world->plan.servers; i++)
        if (model->shard[i].leased[epoch][number] > model->shard[i].answered)
            model->shard[i].answered = model->shard[i].leased[epoch][number];
}

bool sim_model_leases_are_over(const struct sim_model *model)
{
    const struct sim_plan *plan = &model->world->plan;
    for (uint32_t epoch = 0; plan->leased && epoch < plan->epochs; epoch++)
        for (uint64_t n = 0; n < plan->total; n++)
            if (!every_shard_has(model, epoch, n))
                return false;
    return true;
}

/* ---- the table */

/* Who asks first of two processes of a rank, in one life of the table, is replaced by the other. True: it was. */
static bool is_replaced(struct sim_model *model, const struct dp_request *ask)
{
    struct sim_leases *leases = &model->leases;
    uint32_t at = 0;
    while (at < leases->seats && leases->seat[at].session != ask->session)
        at++;
    if (at < leases->seats)
        return leases->seat[at].replaced;
    for (uint32_t i = 0; i < leases->seats; i++)
        leases->seat[i].replaced |= leases->seat[i].rank == ask->lease.rank;
    DP_ASSERT(leases->seats < SIM_SEATS_MAX);
    leases->seat[leases->seats++] = (struct sim_seat){.session = ask->session, .rank = ask->lease.rank};
    return false;
}

static void check_given(struct sim_model *model, const struct dp_request *ask,
                        const struct dp_lease_answer *answer)
{
    const struct sim_world *world = model->world;
    uint64_t low = 0;
    while (low < world->plan.total && every_shard_has(model, ask->epoch, low))
        low++;
    for (uint32_t i = 0; i < answer->count; i++) {
        uint64_t number = answer->number[i];
        if (number >= world->plan.total || number >= low + SIM_SPAN)
            sim_fail(world,
                     "worker %" PRIu32 " is given number %" PRIu64 " of %" PRIu32
                     ", and the lowest that some shard lacks is %" PRIu64,
                     ask->lease.rank, number, world->plan.total, low);
        for (uint32_t k = 0; k < i; k++)
            if (answer->number[k] == number)
                sim_fail(world, "worker %" PRIu32 " is given number %" PRIu64 " twice", ask->lease.rank,
                         number);
        uint64_t *given = &model->leases.given[ask->epoch][number];
        sim_counts_add(SIM_LEASED_TWICE, *given > 0);
        ++*given;
    }
    sim_counts_add(SIM_LEASED, answer->count);
}

static void check_done(struct sim_model *model, const struct dp_request *ask,
                       const struct dp_lease_answer *answer)
{
    const struct sim_plan *plan = &model->world->plan;
    uint64_t done = 0;
    for (uint64_t n = 0; n < plan->total; n++)
        done += every_shard_has(model, ask->epoch, n);
    if (answer->done > done)
        sim_fail(model->world,
                 "%" PRIu64 " numbers of epoch %" PRIu32 " are counted as done, and every shard has %" PRIu64,
                 answer->done, ask->epoch, done);
    for (uint64_t n = 0; answer->state == DP_LEASE_OVER && n < plan->total; n++)
        sim_model_told_of(model, dp_stream_of_run(SIM_RUN, ask->epoch), n);
}

void sim_model_leased(struct sim_model *model, const struct dp_request *ask, enum dp_status st,
                      const struct dp_lease_answer *answer)
{
    static const char *const states[] = {"given", "wait", "over", "tell"};
    const struct sim_world *world = model->world;
    if (st == DP_OK)
        sim_say(world,
                "lease: worker %" PRIu32 " (session %" PRIu64 ") of epoch %" PRIu32 ": holds %" PRIu32
                ", done %" PRIu32 "%s, wants %" PRIu32 ": %s %" PRIu32 ", %" PRIu64 " done",
                ask->lease.rank, ask->session, ask->epoch, ask->lease.held, ask->lease.done,
                ask->lease.tells ? ", tells" : "", ask->lease.want, states[answer->state], answer->count,
                answer->done);
    bool replaced = is_replaced(model, ask);
    if (st != (replaced ? DP_REPLACED : DP_OK))
        sim_fail(world, "worker %" PRIu32 " (session %" PRIu64 ") asks for work, and %s: %s", ask->lease.rank,
                 ask->session, replaced ? "another process has its place" : "nobody has taken its place",
                 dp_status_name((int)st));
    sim_counts_add(SIM_REPLACED, replaced);
    if (replaced)
        return;
    sim_counts_add(SIM_TOLD, ask->lease.tells);
    check_given(model, ask, answer);
    check_done(model, ask, answer);
}

void sim_model_leases_lost(struct sim_model *model)
{
    model->leases = (struct sim_leases){0};
}
