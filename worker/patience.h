/* Patience: how long a worker goes on asking servers that do not answer: training.timeout_ms, in slices, so that a
 * signal is seen and, every 10 s, the log says who is waited for and why.
 *     begin  ->  (a try of slice_ms  ->  more?)*
 * Promise   more() is false at the latest when timeout_ms has passed since begin, or 5 s after a signal. */
#ifndef DP_WORKER_PATIENCE_H
#define DP_WORKER_PATIENCE_H

#include "worker/job.h"

#define DP_PATIENCE_TELL_MS 10000u

struct dp_patience {
    const struct dp_job *job;
    uint64_t begun_ns, told_ns, asked_ns; /* asked: when a signal was seen; 0: none was */
};

struct dp_patience dp_patience_begin(const struct dp_job *job);
/* For the next try: at most slice_max_ms, 1 at least. */
uint32_t dp_patience_slice_ms(const struct dp_patience *patience, uint32_t slice_max_ms);
/* Whether to try again after a try that gave *st and *err: on DP_TIMEOUT and DP_UNAVAILABLE only. When patience is
 * over both say so. */
bool dp_patience_more(struct dp_patience *patience, enum dp_status *st, struct dp_error *err);

#endif
