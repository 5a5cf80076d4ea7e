#include "worker/loop/fetch_wait.h"

#include "worker/context/retry.h"
#include "worker/loop/awaited.h"

#define SLICE_MS 200u

enum dp_step_phase dp_fetch_wait_phase(const struct dp_job *job, const struct dp_error *told)
{
    return told->wait.reason == DP_WAIT_STEP && told->wait.subject != job->worker ? DP_PHASE_WAITING_RULE
                                                                                  : DP_PHASE_WAITING_PULL;
}

/* The slices are short at first: only between two is it seen what the shards said. */
enum dp_status dp_fetch_wait(struct dp_job *job, struct dp_ticket *ticket, struct dp_step_timer *watch,
                             struct dp_outcome *outcome, struct dp_error *err)
{
    struct dp_error told = {0};
    uint32_t slice_ms = 1;
    enum dp_status st;
    if (ticket->id == 0)
        return DP_OK;
    struct dp_awaited awaited = {0};
    struct dp_retry retry = dp_retry_begin(job);
    retry.rule_told = true;
    do {
        enum dp_step_phase phase = dp_fetch_wait_phase(job, &told);
        st = dp_client_wait(job->client, ticket, dp_retry_slice_ms(&retry, slice_ms), outcome, &told);
        dp_step_timer_lap(watch, phase);
        if (st != DP_OK)
            dp_awaited_hear(&awaited, job, dp_awake_ns(&retry.clock), &told);
        enum dp_status looked =
            st == DP_TIMEOUT && told.wait.reason == DP_WAIT_STEP ? dp_job_waits(job, err) : DP_OK;
        if (looked != DP_OK) {
            dp_awaited_end(job);
            return looked;
        }
        slice_ms = slice_ms < SLICE_MS / 2 ? slice_ms * 2 : SLICE_MS;
    } while (dp_retry_more(&retry, &st, &told));
    dp_awaited_end(job);
    if (st != DP_OK && err)
        *err = told;
    return st;
}
