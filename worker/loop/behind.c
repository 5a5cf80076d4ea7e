#include "worker/loop/behind.h"

#include "common/base/log.h"

#include <inttypes.h>

#define TELL_NS UINT64_C(10000000000)

void dp_behind_hears(struct dp_behind *behind, uint64_t step, uint64_t open, const struct dp_clock *clock)
{
    if (open <= step || dp_behind_is(behind, open - 1))
        return;
    uint64_t now = dp_clock_ns(clock);
    atomic_store_explicit(&behind->open, open, memory_order_relaxed);
    if (behind->told_ns != 0 && now - behind->told_ns < TELL_NS)
        return;
    dp_log(DP_LOG_INFO,
           "step %" PRIu64 " was committed without this worker: it continues at step %" PRIu64
           ", and its gradients of the steps between are dropped",
           step, open);
    behind->told_ns = now;
}
