#include "worker/loop/roster.h"

#include "common/base/log.h"
#include "worker/job/retry.h"

#include <inttypes.h>

#define SLICE_MS 10000u

static enum dp_consistency mode_of(const struct dp_rounds *rounds)
{
    return rounds->rule.mode == DP_CLUSTER_SYNC ? DP_SYNC : DP_SSP;
}

static enum dp_status join(struct dp_job *job, const struct dp_join *how, struct dp_error *err)
{
    struct dp_retry retry = dp_retry_begin(job);
    enum dp_status st;
    do
        st = dp_client_join(job->client, how, dp_retry_slice_ms(&retry, SLICE_MS), err);
    while (dp_retry_more(&retry, &st, err));
    return st == DP_OK ? st : dp_wrap(err, st, "joining the workers of run %" PRIu32, how->run);
}

enum dp_status dp_roster_hand_over(struct dp_job *job, const struct dp_rounds *rounds, struct dp_error *err)
{
    const struct dp_join how = {.run = job->cluster->training.run,
                                .rank = job->worker,
                                .members = rounds->members,
                                .mode = mode_of(rounds),
                                .slack = rounds->rule.slack};
    return join(job, &how, err); /* who has joined already hands over what the register has */
}

enum dp_status dp_roster_join(struct dp_job *job, const struct dp_rounds *rounds, struct dp_error *err)
{
    char text[DP_CLUSTER_RULE_BYTES];
    /* Nobody waits for anybody. But shards may still keep the open step of an earlier run that was given up: they hear that another
     * one has begun. */
    const struct dp_join begins = {.run = job->cluster->training.run, .members = 1, .mode = DP_ASYNC};
    if (rounds->members == 0)
        return job->worker == 0 ? join(job, &begins, err) : DP_OK;
    if (rounds->rule.mode == DP_CLUSTER_SYNC && rounds->rule.slack >= rounds->members)
        return dp_fail(err, DP_ARGUMENT,
                       "consistency is %s, whose steps do not wait for the slowest %" PRIu32
                       " workers, but only %" PRIu32
                       " have minibatches: give smaller minibatches, or wait for more",
                       dp_cluster_rule_text(rounds->rule, text), rounds->rule.slack, rounds->members);
    enum dp_status st = dp_roster_hand_over(job, rounds, err);
    if (st != DP_OK)
        return st;
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
    return dp_roster_leave_before(job, until, err);
}

enum dp_status dp_roster_leave_before(struct dp_job *job, uint64_t until, struct dp_error *err)
{
    struct dp_retry retry = dp_retry_begin(job);
    enum dp_status st;
    do
        st = dp_client_leave(job->client, until, dp_retry_slice_ms(&retry, SLICE_MS), err);
    while (dp_retry_more(&retry, &st, err));
    return st == DP_OK ? st
                       : dp_wrap(err, st, "leaving the workers of run %" PRIu32, job->cluster->training.run);
}

enum dp_status dp_roster_check_stays(struct dp_job *job, struct dp_error *err)
{
    struct dp_register_value value = {0};
    struct dp_view view = {0};
    enum dp_status st = dp_shared_get(job, "view", 0, 0, &value, err);
    if (st == DP_OK)
        st = dp_view_unpack(value.bytes, value.size, &view, err);
    if (st == DP_OK && job->worker < view.members && view.member[job->worker].until != UINT64_MAX)
        st = dp_fail(err, DP_REPLACED,
                     "worker %" PRIu32 " has left run %" PRIu32 " before step %" PRIu64
                     ": it was silent for longer than --worker-timeout (training.worker_timeout), and the "
                     "others go on "
                     "without it; its place is free again in the next run",
                     job->worker, view.run, view.member[job->worker].until);
    dp_view_clear(&view);
    dp_register_value_clear(&value);
    return st;
}
