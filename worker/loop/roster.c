#include "worker/loop/roster.h"

#include "common/base/log.h"
#include "worker/job/retry.h"

#include <inttypes.h>

#define SLICE_MS 10000u

static enum dp_consistency mode_of(const struct dp_rounds *rounds)
{
    return rounds->rule.mode == DP_CLUSTER_SYNC ? DP_SYNC : DP_SSP;
}

enum dp_status dp_roster_join(struct dp_job *job, const struct dp_rounds *rounds, struct dp_error *err)
{
    char text[DP_CLUSTER_RULE_BYTES];
    if (rounds->members == 0)
        return DP_OK;
    const struct dp_join join = {.run = job->cluster->training.run,
                                 .rank = job->worker,
                                 .members = rounds->members,
                                 .mode = mode_of(rounds),
                                 .slack = rounds->rule.slack};
    struct dp_retry retry = dp_retry_begin(job);
    enum dp_status st;
    do
        st = dp_client_join(job->client, &join, dp_retry_slice_ms(&retry, SLICE_MS), err);
    while (dp_retry_more(&retry, &st, err));
    if (st != DP_OK)
        return dp_wrap(err, st, "joining the workers of run %" PRIu32, join.run);
    dp_log(DP_LOG_INFO, "consistency %s: %" PRIu64 " steps in an epoch, each of %" PRIu32 " workers",
           dp_cluster_rule_text(rounds->rule, text), rounds->count, rounds->members);
    return DP_OK;
}

enum dp_status dp_roster_leave(struct dp_job *job, const struct dp_rounds *rounds, bool joined,
                               uint32_t epochs, struct dp_error *err)
{
    uint64_t until = dp_rounds_step(rounds, epochs, 0);
    enum dp_status st = DP_OK;
    if (rounds->members == 0)
        return DP_OK;
    if (!joined)
        st = dp_roster_join(job, rounds, err);
    if (st != DP_OK)
        return st;
    struct dp_retry retry = dp_retry_begin(job);
    do
        st = dp_client_leave(job->client, until, dp_retry_slice_ms(&retry, SLICE_MS), err);
    while (dp_retry_more(&retry, &st, err));
    return st == DP_OK ? st
                       : dp_wrap(err, st, "leaving the workers of run %" PRIu32, job->cluster->training.run);
}
