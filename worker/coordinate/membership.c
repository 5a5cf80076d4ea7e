#include "worker/coordinate/membership.h"

#include "common/base/log.h"
#include "worker/context/retry.h"

#include <inttypes.h>

#define SLICE_MS          10000u
#define STOOD_IN_MS       10000u /* at least */
#define STOOD_IN_SLICE_MS 500u

static enum dp_status join(struct dp_job *job, const struct dp_join *how, struct dp_error *err)
{
    struct dp_retry retry = dp_retry_begin(job);
    enum dp_status st;
    do
        st = dp_client_join(job->client, how, dp_retry_slice_ms(&retry, SLICE_MS), err);
    while (dp_retry_more(&retry, &st, err));
    return st == DP_OK ? st : dp_wrap(err, st, "joining the workers of run %" PRIu32, how->run);
}

static struct dp_join join_of(const struct dp_job *job, const struct dp_rounds *rounds, bool returns)
{
    return (struct dp_join){.run = job->cluster->training.run,
                            .rank = job->worker,
                            .members = rounds->members,
                            .mode = rounds->rule.mode,
                            .slack = rounds->rule.slack,
                            .returns = returns};
}

enum dp_status dp_membership_hand_over(struct dp_job *job, const struct dp_rounds *rounds,
                                       struct dp_error *err)
{
    const struct dp_join how = join_of(job, rounds, false);
    return join(job, &how, err); /* a member that has joined already passes on what the register has */
}

static void tell(const struct dp_job *job, const struct dp_rounds *rounds, bool returns)
{
    char text[DP_MODE_TEXT_BYTES];
    struct dp_seat seat = dp_membership_seat_of(job);
    dp_log(DP_LOG_INFO, "consistency %s: %" PRIu64 " steps in an epoch, each of %" PRIu32 " workers",
           dp_mode_text(rounds->rule.mode, rounds->rule.slack, text), rounds->count, rounds->members);
    if (returns && seat.missed > 0)
        dp_log(DP_LOG_WARN,
               "takes part from step %" PRIu64 ", in epoch %" PRIu64
               ": the others continued without it for %" PRIu64
               " steps in all, and its minibatches of these steps are not trained",
               seat.from, job->cluster->training.first_epoch + seat.from / rounds->count + 1, seat.missed);
}

/* The members of a run that do not wait for each other: as many as it has workers. That worker 0 joins also
 * reports the new run to shards that keep the open step of an earlier run, which was given up. */
static enum dp_status join_unordered(struct dp_job *job, const struct dp_rounds *rounds, struct dp_error *err)
{
    const struct dp_cluster_training *training = &job->cluster->training;
    uint32_t workers = training->workers < DP_MEMBERS_MAX ? training->workers : DP_MEMBERS_MAX;
    const struct dp_join how = {
        .run = training->run, .rank = job->worker, .members = workers, .mode = rounds->rule.mode};
    if (how.rank >= how.members)
        return DP_OK;
    enum dp_status st = join(job, &how, err);
    job->seated = st == DP_OK;
    return st;
}

enum dp_status dp_membership_join(struct dp_job *job, const struct dp_rounds *rounds, bool returns,
                                  struct dp_error *err)
{
    char text[DP_MODE_TEXT_BYTES];
    const struct dp_join how = join_of(job, rounds, returns);
    if (!dp_cluster_rule_waits(rounds->rule))
        return join_unordered(job, rounds, err);
    if (rounds->members == 0)
        return DP_OK;
    if (dp_cluster_rule_backups(rounds->rule) >= rounds->members)
        return dp_fail(
            err, DP_ARGUMENT,
            "consistency is %s, whose steps do not wait for the slowest %" PRIu32
            " workers, but only %" PRIu32 " have minibatches: give smaller minibatches, or wait for more",
            dp_mode_text(rounds->rule.mode, rounds->rule.slack, text), rounds->rule.slack, rounds->members);
    enum dp_status st = join(job, &how, err);
    if (st == DP_OK)
        tell(job, rounds, returns);
    return st;
}

enum dp_status dp_membership_leave(struct dp_job *job, const struct dp_rounds *rounds, bool joined,
                                   uint32_t epochs, struct dp_error *err)
{
    uint64_t end = dp_rounds_step(rounds, epochs, 0);
    enum dp_status st = DP_OK;
    if (rounds->members == 0)
        return DP_OK;
    if (!joined)
        st = dp_membership_join(job, rounds, false, err);
    if (st != DP_OK)
        return st;
    uint64_t from = dp_membership_seat_of(job).from; /* of one that came back when all was over */
    return dp_membership_leave_before(job, end > from ? end : from, err);
}

enum dp_status dp_membership_leave_before(struct dp_job *job, uint64_t until, struct dp_error *err)
{
    struct dp_retry retry = dp_retry_begin(job);
    enum dp_status st;
    do
        st = dp_client_leave(job->client, until, dp_retry_slice_ms(&retry, SLICE_MS), err);
    while (dp_retry_more(&retry, &st, err));
    return st == DP_OK ? st
                       : dp_wrap(err, st, "leaving the workers of run %" PRIu32, job->cluster->training.run);
}

struct dp_seat dp_membership_seat_of(const struct dp_job *job)
{
    return (struct dp_seat){.from = dp_client_joined_at(job->client),
                            .missed = dp_client_missed(job->client)};
}

/* The register's, of this run's members; {0}: there is none. `above`, wait_ms: as of dp_shared_get. *version
 * may be NULL. */
static enum dp_status get_view(struct dp_job *job, const struct dp_rounds *rounds, uint64_t above,
                               uint32_t wait_ms, struct dp_view *view, uint64_t *version,
                               struct dp_error *err)
{
    struct dp_register_value value = {0};
    *view = (struct dp_view){0};
    enum dp_status st = dp_shared_get(job, "view", above, wait_ms, &value, err);
    if (st == DP_OK && value.version > 0)
        st = dp_view_of_register(value.bytes, value.size, job->cluster->training.run, value.version, view,
                                 err);
    if (st == DP_OK && view->members != rounds->members) /* other settings: joining refuses them */
        dp_view_clear(view);
    if (version)
        *version = value.version;
    dp_register_value_clear(&value);
    return st;
}

enum dp_status dp_membership_look(struct dp_job *job, const struct dp_rounds *rounds, struct dp_seat *out,
                                  struct dp_error *err)
{
    struct dp_view view = {0};
    enum dp_status st = rounds->members > 0 ? get_view(job, rounds, 0, 0, &view, NULL, err) : DP_OK;
    *out = (struct dp_seat){0};
    if (view.members > 0)
        *out = (struct dp_seat){.from = view.member[job->worker].from,
                                .missed = view.member[job->worker].missed};
    dp_view_clear(&view);
    return st;
}

bool dp_membership_was_let_leave(struct dp_job *job, const struct dp_rounds *rounds)
{
    /* A takeover may be slow, or its worker die: then the next one needs the timeout to see it, and its own
     * to answer. */
    const struct dp_cluster_training *training = &job->cluster->training;
    uint64_t patience_ms = training->worker_timeout * UINT64_C(1000) + training->timeout_ms, version = 0;
    uint64_t ms = patience_ms > STOOD_IN_MS ? patience_ms : STOOD_IN_MS;
    uint64_t until_ns = dp_clock_ns(&job->clock) + ms * UINT64_C(1000000);
    struct dp_error unheard = {0};
    bool left = job->client && dp_client_was_let_leave(job->client),
         waits = dp_job_removes(job) && job->client;
    if (!left && waits)
        dp_log(DP_LOG_WARN,
               "another process joined as worker %" PRIu32 "; for up to %" PRIu64
               " s this one waits to see whether that only lets it leave",
               job->worker, ms / 1000);
    while (!left && waits) {
        struct dp_view view = {0};
        waits = get_view(job, rounds, version, STOOD_IN_SLICE_MS, &view, &version, &unheard) == DP_OK &&
                dp_clock_ns(&job->clock) < until_ns && !dp_job_stopped(job);
        left = view.members > 0 && view.member[job->worker].until != UINT64_MAX;
        dp_view_clear(&view);
    }
    return left;
}
