#include "worker/loop/in_flight.h"

/* No worker used a step without any of its gradients. */
static void count_dropped(struct dp_dropped *dropped, const struct dp_in_flight_push *push, uint32_t shards,
                          const struct dp_outcome *outcome)
{
    bool all = push->examples == 0 || outcome->dropped == shards;
    dropped->pushes += all;
    dropped->partly += !all && (outcome->dropped > 0 || push->passed > 0);
    dropped->examples += push->passed + (all ? push->examples : 0);
    dropped->passed += push->passed;
}

static void settle(struct dp_in_flight *pushes, const struct dp_in_flight_push *push,
                   struct dp_outcome *outcome)
{
    struct dp_worker_stats *stats = pushes->stats;
    bool has_minibatches =
        push->examples + push->passed > 0; /* unlike the empty round at the end of an epoch */
    /* Measured pushes are new to some shard. A member's push to a shard whose answer was lost says nothing. */
    if (outcome->repeated && outcome->measured == 0 && !pushes->member)
        stats->repeated_examples += push->examples;
    else
        stats->pushes += has_minibatches;
    if (has_minibatches)
        count_dropped(&stats->dropped, push, pushes->job->shards, outcome);
    /* Without examples no weights were read for it: no read was as stale as that. */
    if (push->examples == 0)
        outcome->gaps = 0, outcome->gap_sum = 0, outcome->gap_max = 0;
    dp_staleness_add(&stats->staleness, outcome, push->own);
    pushes->progress->dropped = stats->dropped.examples;
    pushes->progress->staleness_mean = dp_staleness_mean(&stats->staleness);
}

static enum dp_status wait_oldest(struct dp_in_flight *pushes, struct dp_error *err)
{
    struct dp_outcome outcome = {0};
    struct dp_in_flight_push *oldest = &pushes->push[pushes->first];
    bool flies = pushes->flying && *pushes->flying > 0;
    enum dp_status st = dp_job_wait(pushes->job, &oldest->ticket, !flies, &outcome, err);
    /* The epoch is over, and the servers have forgotten it for later ones: others had pushed this, too (work_leases.h). */
    if (st == DP_TOO_OLD && pushes->leases &&
        !dp_job_run_forgotten(pushes->job, pushes->job->cluster->training.run)) {
        outcome = (struct dp_outcome){.repeated = true};
        st = DP_OK;
    }
    if (st != DP_OK)
        return st;
    pushes->first = (pushes->first + 1) % DP_IN_FLIGHT_MAX;
    pushes->count--;
    settle(pushes, oldest, &outcome);
    if (pushes->leases)
        dp_work_leases_answered(pushes->leases, oldest->number);
    return DP_OK;
}

enum dp_status dp_in_flight_wait(struct dp_in_flight *pushes, uint32_t leave, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    while (st == DP_OK && pushes->count > leave)
        st = wait_oldest(pushes, err);
    return st;
}

struct dp_ticket *dp_in_flight_next(struct dp_in_flight *pushes)
{
    DP_ASSERT(pushes->count < DP_IN_FLIGHT_MAX);
    return &pushes->push[(pushes->first + pushes->count) % DP_IN_FLIGHT_MAX].ticket;
}

void dp_in_flight_added(struct dp_in_flight *pushes, uint64_t number, uint32_t examples, uint32_t passed,
                        uint64_t own)
{
    DP_ASSERT(pushes->count < DP_IN_FLIGHT_MAX);
    struct dp_in_flight_push *newest = &pushes->push[(pushes->first + pushes->count) % DP_IN_FLIGHT_MAX];
    newest->number = number;
    newest->examples = examples;
    newest->passed = passed;
    newest->own = own;
    pushes->count++;
}
