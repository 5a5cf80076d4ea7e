/* Ranking: a worker's part of a rank set (read/rank_set.h): every workers-th user.
 *     pull all items once  ->  for a block of users: pull them -> scores -> places, sums
 * Scores    A model of factors is scored by one matrix product on the CPU, on any device. Any other model is
 *           scored by its program, a minibatch of items for each user; beyond DP_RANKING_PAIRS_MAX users
 *           times items, only the test items and their sampled items are scored, and there is no rank among
 *           all items.
 * Thread    The client's.
 * Memory    A row of each parameter for each item, and a block of scores.
 * Failure   DP_NOT_FINITE: the training has diverged. The client is closed (progress.h), because pulls may
 *           be unanswered. */
#ifndef DP_SCORE_RANKING_H
#define DP_SCORE_RANKING_H

#include "worker/compute/rank_sums.h"
#include "worker/read/rank_set.h"
#include "worker/telemetry/progress.h"

#define DP_RANKING_PAIRS_MAX UINT64_C(100000000)

/* Whether this model scores all items for the users of the set. */
bool dp_ranking_is_of_all(const struct dp_job *job, const struct dp_rank_set *set);
enum dp_status dp_ranking(struct dp_job *job, struct dp_progress *progress, uint32_t worker,
                          const struct dp_rank_set *set, struct dp_rank_sums *out, struct dp_error *err);

#endif
