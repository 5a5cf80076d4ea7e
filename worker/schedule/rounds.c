#include "worker/schedule/rounds.h"

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
    return dp_share_examples_of(rounds->share, examples, batch, group.first, group.count);
}
