#include "worker/loop/in_flight.h"

/* A step without any of its gradients was used by nobody. */
static void count_dropped(struct dp_dropped *dropped, const struct dp_in_flight_push *push, uint32_t shards,
                          const struct dp_outcome *outcome)
{
    bool all = push->examples == 0 || outcome->dropped == shards;
    dropped->pushes += all;
    dropped->partly += !all && (outcome->dropped > 0 || push->passed > 0);
    dropped->examples += push->passed + (all ? push->examples : 0);
    dropped->passed += push->passed;
}

static void settle(struct dp_in_flight *sent, const struct dp_in_flight_push *push,
                   struct dp_outcome *outcome)
{
    struct dp_worker_stats *stats = sent->stats;
    bool has_minibatches =
        push->examples + push->passed > 0; /* unlike the empty round at the end of an epoch */
    /* What is measured is new to some shard. A member's push to a shard whose answer was lost tells nothing. */
    if (outcome->repeated && outcome->measured == 0 && !sent->member)
        stats->repeated_examples += push->examples;
    else
        stats->pushes += has_minibatches;
    if (has_minibatches)
        count_dropped(&stats->dropped, push, sent->job->shards, outcome);
    /* Without examples no weights were read for it: nobody's read was as stale as that. */
    if (push->examples == 0)
        outcome->gaps = 0, outcome->gap_sum = 0, outcome->gap_max = 0;
    dp_staleness_add(&stats->staleness, outcome, push->own);
    sent->progress->dropped = stats->dropped.examples;
    sent->progress->staleness_mean = dp_staleness_mean(&stats->staleness);
}

static enum dp_status wait_oldest(struct dp_in_flight *sent, struct dp_error *err)
{
    struct dp_outcome outcome = {0};
    struct dp_in_flight_push *oldest = &sent->push[sent->first];
    bool flies = sent->flying && *sent->flying > 0;
    enum dp_status st = dp_job_wait(sent->job, &oldest->ticket, !flies, &outcome, err);
    /* The epoch is over, and the servers have forgotten it for later ones: others had pushed this, too (work_leases.h). */
    if (st == DP_TOO_OLD && sent->leases &&
        !dp_job_run_forgotten(sent->job, sent->job->cluster->training.run)) {
        outcome = (struct dp_outcome){.repeated = true};
        st = DP_OK;
    }
    if (st != DP_OK)
        return st;
    sent->first = (sent->first + 1) % DP_SENT_MAX;
    sent->count--;
    settle(sent, oldest, &outcome);
    if (sent->leases)
        dp_work_leases_answered(sent->leases, oldest->number);
    return DP_OK;
}

enum dp_status dp_in_flight_wait(struct dp_in_flight *sent, uint32_t leave, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    while (st == DP_OK && sent->count > leave)
        st = wait_oldest(sent, err);
    return st;
}

struct dp_ticket *dp_in_flight_next(struct dp_in_flight *sent)
{
    DP_ASSERT(sent->count < DP_SENT_MAX);
    return &sent->push[(sent->first + sent->count) % DP_SENT_MAX].ticket;
}

void dp_in_flight_added(struct dp_in_flight *sent, uint64_t number, uint32_t examples, uint32_t passed,
                        uint64_t own)
{
    DP_ASSERT(sent->count < DP_SENT_MAX);
    struct dp_in_flight_push *newest = &sent->push[(sent->first + sent->count) % DP_SENT_MAX];
    newest->number = number;
    newest->examples = examples;
    newest->passed = passed;
    newest->own = own;
    sent->count++;
}
