#include "worker/loop/skipped_steps.h"

#include "common/base/log.h"

#include <inttypes.h>

#define LOOK_NS UINT64_C(1000000)
#define TELL_NS UINT64_C(10000000000)

void dp_skipped_hears(struct dp_skipped *skipped, uint64_t step, uint64_t open, const struct dp_clock *clock)
{
    if (open <= step || dp_skipped_is(skipped, open - 1))
        return;
    uint64_t now = dp_clock_ns(clock);
    atomic_store_explicit(&skipped->open, open, memory_order_relaxed);
    if (skipped->told_ns != 0 && now - skipped->told_ns < TELL_NS)
        return;
    dp_log(DP_LOG_INFO,
           "step %" PRIu64 " was committed without this worker: it continues at step %" PRIu64
           ", and its gradients of the steps between are dropped",
           step, open);
    skipped->told_ns = now;
}

void dp_late_begin(struct dp_late *late, struct dp_ticket *pull, uint64_t step)
{
    late->pull = pull && pull->id != 0 ? pull : NULL;
    late->step = step;
    late->is = false;
    late->failed = DP_OK;
    late->looked_ns = dp_clock_ns(&late->job->clock);
}

bool dp_late_look(void *of)
{
    struct dp_late *late = of;
    struct dp_outcome outcome = {0};
    if (late->is || !late->pull)
        return late->is;
    uint64_t now = dp_clock_ns(&late->job->clock);
    if (now - late->looked_ns < LOOK_NS)
        return false;
    late->looked_ns = now;
    enum dp_status st = dp_client_wait(late->job->client, late->pull, 0, &outcome, &late->err);
    if (st == DP_TIMEOUT || st == DP_UNAVAILABLE)
        return false;
    late->is = true;
    late->failed = st;
    late->pull->id = 0; /* used up, whatever it was answered */
    if (st == DP_OK)
        dp_skipped_hears(late->skipped, late->step, outcome.open, &late->job->clock);
    return true;
}
