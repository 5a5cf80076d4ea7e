/* Awaited: tells the user whom a held pull waits for.
 *     held for 2 s -> a line in the log -> another every 10 s, while it is held
 * The line has the shard's own words (whom, which step), and what the progress note of that worker says of it
 * (worker/telemetry/progress.h): that it failed or was stopped, or is still reading its data.
 * From then on the job's `awaited` has the same words, also where a server does not answer: its progress note shows them.
 * Promise   At most a line in 10 s, over all waits of the job: steps of 3 s do not fill the log.
 * Thread    The client's.
 * Failure   A first server that does not answer within a second leaves out what the note says. */
#ifndef DP_LOOP_AWAITED_H
#define DP_LOOP_AWAITED_H

#include "worker/job/job.h"

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
