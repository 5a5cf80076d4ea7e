#include "worker/loop/sent.h"

static void settle(struct dp_sent *sent, const struct dp_sent_push *push, const struct dp_outcome *outcome)
{
    struct dp_worker_stats *stats = sent->stats;
    /* A measured push is new to some shard. */
    if (outcome->repeated && outcome->measured == 0)
        stats->repeated_examples += push->examples;
    else if (push->examples > 0) /* no empty step */
        stats->pushes++;
    dp_staleness_add(&stats->staleness, outcome);
    sent->progress->staleness_mean = dp_staleness_mean(&stats->staleness);
}

static enum dp_status wait_oldest(struct dp_sent *sent, struct dp_error *err)
{
    struct dp_outcome outcome = {0};
    struct dp_sent_push *oldest = &sent->push[sent->first];
    enum dp_status st = dp_job_wait(sent->job, &oldest->ticket, &outcome, err);
    if (st != DP_OK)
        return st;
    sent->first = (sent->first + 1) % DP_SENT_MAX;
    sent->count--;
    settle(sent, oldest, &outcome);
    return DP_OK;
}

enum dp_status dp_sent_wait(struct dp_sent *sent, uint32_t leave, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    while (st == DP_OK && sent->count > leave)
        st = wait_oldest(sent, err);
    return st;
}

struct dp_ticket *dp_sent_next(struct dp_sent *sent)
{
    DP_ASSERT(sent->count < DP_SENT_MAX);
    return &sent->push[(sent->first + sent->count) % DP_SENT_MAX].ticket;
}

void dp_sent_added(struct dp_sent *sent, uint32_t examples)
{
    DP_ASSERT(sent->count < DP_SENT_MAX);
    sent->push[(sent->first + sent->count) % DP_SENT_MAX].examples = examples;
    sent->count++;
}
