/* Patience: how long a worker goes on asking servers that do not answer: training.timeout_ms, in slices, so that a
 * signal is seen and, every 10 s, the log says who is waited for and why.
 *     begin  ->  (a try of slice_ms  ->  more?)*
 * Promise   more() is false when timeout_ms have passed since begin, or since a try last told of a server that has come
 *           nearer ("is recovering: X of Y MB", another X; "takes a snapshot: X rows"), that opens its store, or that waits for a push of another
 *           worker ("ahead of one that is missing"); at the latest when DP_PATIENCE_MOST times timeout_ms have passed
 *           since begin, or 5 s after a signal. Meanwhile the job's progress is told. Time in which this process was
 *           suspended (Ctrl-Z, a laptop that sleeps) is nobody's silence and does not count: what a slice took
 *           beyond its length and DP_PATIENCE_ASLEEP_MS. */
#ifndef DP_WORKER_PATIENCE_H
#define DP_WORKER_PATIENCE_H

#include "worker/job.h"

#define DP_PATIENCE_TELL_MS 10000u
#define DP_PATIENCE_MOST    10u
/* A look that takes so much longer than asked for was taken by a process that did not run. */
#define DP_PATIENCE_ASLEEP_MS 2000u

struct dp_patience {
    const struct dp_job *job;
    uint64_t first_ns, begun_ns; /* begun: what is borne as silence */
    uint64_t told_ns, asked_ns;  /* asked: when a signal was seen; 0: none was */
    uint64_t recovered;          /* stands for how far a server said it was */
    uint64_t due_ns;             /* when the last slice was to end; 0: none has begun */
};

struct dp_patience dp_patience_begin(const struct dp_job *job);
/* For the next try: at most slice_max_ms, 1 at least. */
uint32_t dp_patience_slice_ms(struct dp_patience *patience, uint32_t slice_max_ms);
/* Whether to try again after a try that gave *st and *err: on DP_TIMEOUT and DP_UNAVAILABLE only. When patience is
 * over both say so. */
bool dp_patience_more(struct dp_patience *patience, enum dp_status *st, struct dp_error *err);

#endif
