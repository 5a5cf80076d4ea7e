/* Awaited: the log lines that name the worker that a blocked pull waits for.
 *     held for 2 s -> a line in the log -> another every 10 s, while it is held
 * The line has the shard's own text (worker and step), and that worker's progress note
 * (worker/telemetry/progress.h): it failed, was stopped, or is still reading its data.
 * From then on the job's `awaited` has the same words, also where a server does not answer: its progress
 * note shows them.
 * Promise   At most a line in 10 s, over all waits of the job: steps of 3 s do not fill the log.
 * Thread    The client's.
 * Failure   A first server that does not answer within a second leaves out the note. */
#ifndef DP_LOOP_AWAITED_H
#define DP_LOOP_AWAITED_H

#include "worker/context/job.h"

struct dp_awaited {
    uint64_t begun_ns; /* of the wait; 0: not yet */
    uint64_t since_ns; /* held; 0: not held */
};

/* After each slice of a wait, with what the shards said last. now_ns: of a clock that leaves out suspensions. */
void dp_awaited_hear(struct dp_awaited *awaited, struct dp_job *job, uint64_t now_ns,
                     const struct dp_error *told);
/* The wait is over. */
void dp_awaited_end(struct dp_job *job);

#endif
