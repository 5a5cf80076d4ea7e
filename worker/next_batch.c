#include "worker/next_batch.h"

#include "worker/patience.h"
#include "worker/progress.h"

#include <inttypes.h>

#define SLICE_MS 200u
#define MS_NS    UINT64_C(1000000)

enum dp_status dp_next_batch(struct dp_job *job, struct dp_reader *reader, struct dp_batch **out,
                             struct dp_error *err)
{
    uint32_t timeout_ms = job->cluster->training.timeout_ms;
    uint64_t until = 0;
    enum dp_status st = dp_reader_next(reader, 0, out); /* as a rule it is there: no look at the clock */
    if (st == DP_TIMEOUT)
        until = dp_clock_ns(&job->clock) + timeout_ms * MS_NS;
    while (st == DP_TIMEOUT) {
        uint64_t now = dp_clock_ns(&job->clock), left_ms = now < until ? (until - now) / MS_NS + 1 : 0;
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
        if (job->progress)
            dp_progress_tick(job->progress);
        uint32_t slice_ms = left_ms < SLICE_MS ? (uint32_t)left_ms : SLICE_MS;
        st = dp_reader_next(reader, slice_ms, out);
        uint64_t took = dp_clock_ns(&job->clock) - now;
        if (took > DP_PATIENCE_ASLEEP_MS * MS_NS) /* this process was suspended, and its reader with it */
            until += took - slice_ms * MS_NS;
    }
    return st == DP_OK ? st : dp_fail(err, st, "the reader has no further minibatch");
}
