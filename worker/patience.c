#include "worker/patience.h"

#include "common/base/log.h"

#include <inttypes.h>

#define MS_NS           UINT64_C(1000000)
#define AFTER_SIGNAL_MS 5000u

struct dp_patience dp_patience_begin(const struct dp_job *job)
{
    uint64_t now = dp_clock_ns(&job->clock);
    return (struct dp_patience){.job = job, .begun_ns = now, .told_ns = now};
}

uint32_t dp_patience_slice_ms(const struct dp_patience *patience, uint32_t slice_max_ms)
{
    uint64_t until = patience->begun_ns + patience->job->cluster->training.timeout_ms * MS_NS;
    uint64_t now = dp_clock_ns(&patience->job->clock), left_ms = now < until ? (until - now) / MS_NS : 0;
    return left_ms < slice_max_ms ? (uint32_t)left_ms + 1 : slice_max_ms;
}

bool dp_patience_more(struct dp_patience *patience, enum dp_status *st, struct dp_error *err)
{
    const struct dp_job *job = patience->job;
    uint32_t timeout_ms = job->cluster->training.timeout_ms;
    if (*st != DP_TIMEOUT && *st != DP_UNAVAILABLE)
        return false;
    uint64_t now = dp_clock_ns(&job->clock), waited = now - patience->begun_ns;
    if (waited >= timeout_ms * MS_NS) {
        *st = dp_wrap(err, *st, "gave up after %" PRIu32 " ms; the last try says", timeout_ms);
        return false;
    }
    if (dp_job_stopped(job)) {
        patience->asked_ns = patience->asked_ns ? patience->asked_ns : now;
        if (now - patience->asked_ns >= AFTER_SIGNAL_MS * MS_NS) {
            *st = dp_wrap(err, DP_STOPPING, "stopped by a signal while this was unanswered");
            return false;
        }
    }
    if (now - patience->told_ns >= DP_PATIENCE_TELL_MS * MS_NS) {
        patience->told_ns = now;
        dp_log(DP_LOG_WARN, "waiting for %" PRIu64 " s, for %" PRIu32 " s at most (training.timeout_ms): %s",
               waited / 1000 / MS_NS, timeout_ms / 1000, err ? err->text : "");
    }
    return true;
}
