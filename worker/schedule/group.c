#include "worker/schedule/group.h"

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

uint64_t dp_share_examples_of(struct dp_share share, uint64_t examples, uint32_t batch, uint64_t first,
                              uint64_t count)
{
    uint64_t end = first + count;
    if (count == 0)
        return 0;
    bool last = dp_share_number(share, end - 1) + 1 == share.batches;
    return count * batch - (last ? share.batches * batch - examples : 0);
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
