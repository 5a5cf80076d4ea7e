#include "worker/schedule/shares.h"

#include "common/base/status.h"

uint64_t dp_share_positions(struct dp_share share)
{
    if (share.batches <= share.worker)
        return 0;
    return (share.batches - share.worker + share.workers - 1) / share.workers;
}

uint64_t dp_share_number(struct dp_share share, uint64_t position)
{
    return share.worker + (uint64_t)share.workers * position;
}

uint64_t dp_share_position(struct dp_share share, uint64_t number)
{
    DP_ASSERT(number % share.workers == share.worker);
    return number / share.workers;
}

struct dp_share dp_share_with(struct dp_share share, uint64_t number)
{
    share.worker = (uint32_t)(number % share.workers);
    return share;
}

uint64_t dp_share_examples(struct dp_share share, uint64_t examples, uint32_t batch)
{
    uint64_t positions = dp_share_positions(share);
    if (positions == 0)
        return 0;
    uint64_t all = positions * batch;
    if ((share.batches - 1) % share.workers == share.worker)
        all -= share.batches * batch - examples; /* what the last minibatch lacks */
    return all;
}

uint64_t dp_groups(uint64_t positions, uint32_t every)
{
    return positions / every + (positions % every != 0);
}

/* Shares are of two sizes, which differ by one; the first ones are the larger. */
uint64_t dp_groups_of_all(struct dp_share share, uint32_t every)
{
    uint64_t larger = share.batches % share.workers, smaller = share.batches / share.workers;
    return larger * dp_groups(smaller + 1, every) + (share.workers - larger) * dp_groups(smaller, every);
}

struct dp_group dp_group_at(uint64_t positions, uint32_t every, uint64_t index)
{
    DP_ASSERT(index < dp_groups(positions, every));
    uint64_t first = index * every, left = positions - first;
    return (struct dp_group){.first = first, .count = left < every ? (uint32_t)left : every};
}

bool dp_group_ends(uint64_t positions, uint32_t every, uint64_t position)
{
    return position + 1 == positions || (position + 1) % every == 0;
}

struct dp_rounds dp_rounds_of(const struct dp_cluster_training *training, struct dp_share share)
{
    struct dp_share most = share;
    most.worker = 0;
    struct dp_rounds rounds = {
        .rule = dp_cluster_rule_of(training), .share = share, .every = dp_cluster_pushed_together(training)};
    rounds.own = rounds.count = dp_groups(dp_share_positions(share), rounds.every);
    rounds.most = dp_groups(dp_share_positions(most), rounds.every);
    rounds.listed = training->work == DP_CLUSTER_LEASED ? dp_groups_of_all(share, rounds.every) : 0;
    if (!dp_cluster_rule_waits(rounds.rule) || rounds.own == 0)
        return rounds;
    rounds.members = share.batches < share.workers ? (uint32_t)share.batches : share.workers;
    rounds.count = rounds.most;
    DP_ASSERT(rounds.own <= rounds.count && rounds.count <= rounds.own + 1);
    return rounds;
}

uint64_t dp_rounds_rated(const struct dp_rounds *rounds, uint64_t step, uint64_t last)
{
    return dp_cluster_rule_by_step(rounds->rule) || step >= rounds->own
               ? step * rounds->every * rounds->share.workers
               : last;
}

uint64_t dp_rounds_examples(const struct dp_rounds *rounds, uint64_t examples, uint32_t batch, uint64_t step)
{
    if (step >= rounds->own)
        return 0;
    struct dp_group group = dp_group_at(dp_share_positions(rounds->share), rounds->every, step);
    bool last = dp_share_number(rounds->share, group.first + group.count - 1) + 1 == rounds->share.batches;
    return group.count * (uint64_t)batch - (last ? rounds->share.batches * batch - examples : 0);
}
