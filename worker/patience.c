#include "worker/patience.h"

#include "common/base/log.h"

#include "worker/progress.h"

#include <inttypes.h>
#include <string.h>

#define MS_NS           UINT64_C(1000000)
#define AFTER_SIGNAL_MS 5000u

struct dp_patience dp_patience_begin(const struct dp_job *job)
{
    uint64_t now = dp_clock_ns(&job->clock);
    return (struct dp_patience){.job = job, .first_ns = now, .begun_ns = now, .told_ns = now};
}

static uint64_t timeout_ns(const struct dp_patience *patience)
{
    return patience->job->cluster->training.timeout_ms * MS_NS;
}

/* If nothing moves from here on. */
static uint64_t until_ns(const struct dp_patience *patience)
{
    uint64_t until = patience->begun_ns + timeout_ns(patience);
    uint64_t last = patience->first_ns + DP_PATIENCE_MOST * timeout_ns(patience);
    return until < last ? until : last;
}

/* Where a server that recovers, or takes a snapshot, says how far it is: all of that text. FNV-1a; 0: it says nothing of it. */
static uint64_t recovered(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    const char *at = strstr(text, " is recovering: ");
    if (!at)
        at = strstr(text, " takes a snapshot: ");
    for (; at && *at; at++)
        hash = (hash ^ (uint8_t)*at) * 0x100000001b3u;
    return at ? hash : 0;
}

/* What the last try said may be no silence: a server that comes nearer, or one that waits for another worker. */
static void hear(struct dp_patience *patience, const char *text, uint64_t now)
{
    uint64_t at = recovered(text);
    if ((at && at != patience->recovered) || strstr(text, " is opening its store") ||
        strstr(text, " ahead of one that is missing"))
        patience->begun_ns = now;
    if (at)
        patience->recovered = at;
}

uint32_t dp_patience_slice_ms(struct dp_patience *patience, uint32_t slice_max_ms)
{
    uint64_t until = until_ns(patience);
    uint64_t now = dp_clock_ns(&patience->job->clock), left_ms = now < until ? (until - now) / MS_NS : 0;
    uint32_t slice_ms = left_ms < slice_max_ms ? (uint32_t)left_ms + 1 : slice_max_ms;
    patience->due_ns = now + slice_ms * MS_NS;
    return slice_ms;
}

/* As if the time in which this process was suspended had not been. */
static void forget_sleep(struct dp_patience *patience, uint64_t now)
{
    uint64_t late = patience->due_ns && now > patience->due_ns ? now - patience->due_ns : 0;
    patience->due_ns = 0;
    if (late <= DP_PATIENCE_ASLEEP_MS * MS_NS)
        return;
    patience->first_ns += late;
    patience->begun_ns += late;
    patience->told_ns += late;
    if (patience->asked_ns)
        patience->asked_ns += late;
}

bool dp_patience_more(struct dp_patience *patience, enum dp_status *st, struct dp_error *err)
{
    const struct dp_job *job = patience->job;
    uint32_t timeout_ms = job->cluster->training.timeout_ms;
    if (*st != DP_TIMEOUT && *st != DP_UNAVAILABLE)
        return false;
    uint64_t now = dp_clock_ns(&job->clock);
    forget_sleep(patience, now);
    uint64_t waited = now - patience->first_ns;
    hear(patience, err ? err->text : "", now);
    if (now >= until_ns(patience)) {
        *st = dp_wrap(err, *st, "gave up after %" PRIu64 " ms; the last try says",
                      waited < (timeout_ms + 2) * MS_NS ? timeout_ms : waited / MS_NS);
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
        dp_log(DP_LOG_WARN,
               "waiting for %" PRIu64 " s, for %" PRIu64 " s at most (--timeout, training.timeout_ms): %s",
               waited / 1000 / MS_NS, (until_ns(patience) - patience->first_ns) / 1000 / MS_NS,
               err ? err->text : "");
    }
    if (job->progress) /* those who wait for this worker see that it lives */
        dp_progress_tick(job->progress);
    return true;
}
