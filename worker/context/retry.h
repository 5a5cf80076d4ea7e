/* Retry policy: a worker retries for training.timeout_ms if servers do not answer. It waits in slices, so
 * it sees a signal. Every 10 s the log names the server and the reason.
 *     begin  ->  (a try of slice_ms  ->  more?)*
 * Promise   more() is false when timeout_ms have passed since begin, or since a try last heard a sign of
 *           life: the reason in its error (err->wait) has the sign ALWAYS, or MOVES and its done or total
 *           changed (common/base/wait.h). At the latest when DP_RETRY_MOST times timeout_ms have passed
 *           since begin, or 5 s after a signal. A try that waits for another worker by the rule of the run
 *           (DP_WAIT_STEP) has no limit, since that worker may be restarted at any time. A signal ends it
 *           at once. The job's progress is reported during the wait. A suspension of this process (Ctrl-Z,
 *           a sleeping laptop) does not count as a server's silence. It counts as the rest of its slice at
 *           most, or as a quarter of a second between two slices (common/env/awake.h). */
#ifndef DP_CONTEXT_RETRY_H
#define DP_CONTEXT_RETRY_H

#include "common/env/awake.h"
#include "worker/context/job.h"

#define DP_RETRY_TELL_MS 10000u
#define DP_RETRY_MOST    10u

struct dp_retry {
    const struct dp_job *job;
    struct dp_awake clock;
    uint64_t first_ns, begun_ns; /* begun: since when nothing shows life */
    uint64_t limit_ns;           /* since when DP_RETRY_MOST counts */
    uint64_t told_ns, asked_ns;  /* asked: when a signal was seen; 0: none was */
    struct dp_wait heard;        /* the last of sign MOVES */
    bool rule_told;              /* the caller itself tells of waits for another worker; false after begin */
};

struct dp_retry dp_retry_begin(const struct dp_job *job);
/* The length of the next try: at most slice_max_ms, at least 1. */
uint32_t dp_retry_slice_ms(struct dp_retry *retry, uint32_t slice_max_ms);
/* Whether to try again after a try that gave *st and *err: only for DP_TIMEOUT and DP_UNAVAILABLE. When the
 * time is over, *st and *err say so. */
bool dp_retry_more(struct dp_retry *retry, enum dp_status *st, struct dp_error *err);

#endif
