#include "worker/context/retry.h"

#include "common/base/log.h"

#include <inttypes.h>

#define MS_NS           UINT64_C(1000000)
#define AFTER_SIGNAL_MS 5000u
#define BETWEEN_NS      (250 * MS_NS) /* that count between two slices */

struct dp_retry dp_retry_begin(const struct dp_job *job)
{
    struct dp_awake clock = dp_awake_over(&job->clock, BETWEEN_NS);
    uint64_t now = clock.now_ns;
    return (struct dp_retry){
        .job = job, .clock = clock, .first_ns = now, .begun_ns = now, .limit_ns = now, .told_ns = now};
}

static uint64_t timeout_ns(const struct dp_retry *retry)
{
    return retry->job->cluster->training.timeout_ms * MS_NS;
}

/* If nothing moves from here on. */
static uint64_t until_ns(const struct dp_retry *retry)
{
    uint64_t until = retry->begun_ns + timeout_ns(retry);
    uint64_t last = retry->limit_ns + DP_RETRY_MOST * timeout_ns(retry);
    return until < last ? until : last;
}

/* Whether what the last try heard shows that its server lives: what to conclude is the reason's property (wait.h). */
static bool shows_life(struct dp_retry *retry, const struct dp_wait *wait)
{
    switch (dp_wait_sign(wait->reason)) {
    case DP_SIGN_ALWAYS:
        return true;
    case DP_SIGN_MOVES:
        if (dp_wait_same(wait, &retry->heard))
            return false;
        retry->heard = *wait;
        return true;
    case DP_SIGN_NEVER:
        break;
    }
    return false;
}

uint32_t dp_retry_slice_ms(struct dp_retry *retry, uint32_t slice_max_ms)
{
    uint64_t until = until_ns(retry);
    uint64_t now = dp_awake_ns(&retry->clock), left_ms = now < until ? (until - now) / MS_NS : 0;
    uint32_t slice_ms = left_ms < slice_max_ms ? (uint32_t)left_ms + 1 : slice_max_ms;
    retry->clock.most_ns = slice_ms * MS_NS;
    return slice_ms;
}

static void tell(const struct dp_retry *retry, uint64_t waited_s, bool rule, const struct dp_error *err)
{
    if (rule)
        dp_log(DP_LOG_WARN, "waiting for %" PRIu64 " s, without a limit: %s", waited_s, err->text);
    else
        dp_log(DP_LOG_WARN, "waiting for %" PRIu64 " s, for %" PRIu64 " s at most (training.timeout_ms): %s",
               waited_s, (until_ns(retry) - retry->first_ns) / 1000 / MS_NS, err ? err->text : "");
}

bool dp_retry_more(struct dp_retry *retry, enum dp_status *st, struct dp_error *err)
{
    const struct dp_job *job = retry->job;
    uint32_t timeout_ms = job->cluster->training.timeout_ms;
    if (*st != DP_TIMEOUT && *st != DP_UNAVAILABLE)
        return false;
    uint64_t now = dp_awake_ns(&retry->clock);
    retry->clock.most_ns = BETWEEN_NS;
    uint64_t waited = now - retry->first_ns;
    bool rule = err && err->wait.reason == DP_WAIT_STEP;
    if (err && shows_life(retry, &err->wait))
        retry->begun_ns = now;
    if (rule)
        retry->limit_ns = now;
    if (now >= until_ns(retry)) {
        *st = dp_wrap(err, *st, "gave up after %" PRIu64 " ms; last error",
                      waited < (timeout_ms + 2) * MS_NS ? timeout_ms : waited / MS_NS);
        return false;
    }
    if (dp_job_stopped(job)) {
        retry->asked_ns = retry->asked_ns ? retry->asked_ns : now;
        if (rule || now - retry->asked_ns >= AFTER_SIGNAL_MS * MS_NS) {
            *st = dp_wrap(err, DP_STOPPING, "stopped by a signal while waiting for the answer");
            return false;
        }
    }
    if (now - retry->told_ns >= DP_RETRY_TELL_MS * MS_NS) {
        retry->told_ns = now;
        if (!rule || !retry->rule_told)
            tell(retry, waited / 1000 / MS_NS, rule, err);
    }
    dp_job_alive(job);
    return true;
}
