#include "worker/context/next_batch.h"

#include "common/env/awake.h"

#include <inttypes.h>

#define SLICE_MS 200u
#define MS_NS    UINT64_C(1000000)

enum dp_status dp_next_batch(struct dp_job *job, struct dp_reader *reader, struct dp_batch **out,
                             struct dp_error *err)
{
    uint32_t timeout_ms = job->cluster->training.timeout_ms;
    struct dp_awake clock = {0};
    uint64_t until = 0;
    enum dp_status st = dp_reader_next(reader, 0, out); /* as a rule it is there: no look at the clock */
    if (st == DP_TIMEOUT) {
        /* No slice counts for more than its length: while this process is suspended, its reader is, too. */
        clock = dp_awake_over(&job->clock, SLICE_MS * MS_NS);
        until = clock.now_ns + timeout_ms * MS_NS;
    }
    while (st == DP_TIMEOUT) {
        uint64_t now = dp_awake_ns(&clock), left_ms = now < until ? (until - now) / MS_NS + 1 : 0;
        if (dp_job_stopped(job))
            return dp_fail(err, DP_STOPPING, "stopped by a signal while a minibatch was read");
        if (left_ms == 0)
            return dp_fail(
                err, DP_IO, /* not DP_TIMEOUT: the servers answer, so the others can be told */
                "the reader gave no minibatch within %" PRIu32
                " ms: the disk is too slow for it, or memory too small for the decoded file, which is "
                "then read again and again; give this machine memory, put data.cache on a faster disk, "
                "or raise --timeout (training.timeout_ms)",
                timeout_ms);
        dp_job_alive(job);
        st = dp_reader_next(reader, left_ms < SLICE_MS ? (uint32_t)left_ms : SLICE_MS, out);
    }
    return *out ? DP_OK : dp_fail(err, DP_INTERNAL, "the reader has no more minibatches");
}
