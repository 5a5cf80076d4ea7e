/* Pull wait: the wait for the rows of a fetch, and which phase of the step timer it is. Where workers wait
 * for each other (worker/schedule/shares.h) the shards block a pull until its step may begin. They report
 * so at once and every quarter of a second. That time belongs to the mode, not to the network or the disk.
 * Promise   A wait for another worker has no limit, but ends at a signal (retry.h). After 2 s, and then every
 *           10 s over all waits of the job, a line in the log names that worker and the step, by the
 *           shard's own text. It also reports from the worker's progress note if it failed, was stopped, or
 *           still reads its data. From 2 s on, also where a server does not answer, the progress note has
 *           the shard's text.
 * Thread    The client's.
 * Failure   A first server that does not answer within a second leaves out what the note says. */
#ifndef DP_LOOP_PULL_WAIT_H
#define DP_LOOP_PULL_WAIT_H

#include "worker/telemetry/progress.h"
#include "worker/telemetry/step_timer.h"

/* The phase of a wait that the shards reported last; {0}: none yet. A step that waits for this
 * worker's own push, or until it is committed, waits for no other worker. */
enum dp_step_phase dp_pull_wait_phase(const struct dp_job *job, const struct dp_error *told);
/* Waits for the ticket (not at all for {0}) and adds the time to the phases. outcome: as dp_job_wait. */
enum dp_status dp_pull_wait(struct dp_progress *progress, struct dp_ticket *ticket,
                            struct dp_step_timer *watch, struct dp_outcome *outcome, struct dp_error *err);

#endif
