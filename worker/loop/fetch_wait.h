/* Fetch wait: the wait for the rows of a fetch, and which phase of the step timer it is. Where workers wait
 * for each other (worker/schedule/rounds.h) the shards hold a pull until its step may begin, and say so at once
 * and every quarter of a second: that time is a rule's, not the network's or the disk's.
 * Promise   A wait for another worker has no limit, but ends at a signal (retry.h). The log names the
 *           awaited worker (awaited.h).
 * Thread    The client's. */
#ifndef DP_LOOP_FETCH_WAIT_H
#define DP_LOOP_FETCH_WAIT_H

#include "worker/context/job.h"
#include "worker/telemetry/step_timer.h"

/* The phase of a wait that was last told this; {0}: nothing yet. A step that waits for this worker's own push, or until it is
 * closed, waits for no rule. */
enum dp_step_phase dp_fetch_wait_phase(const struct dp_job *job, const struct dp_error *told);
/* Waits for the ticket (not at all for {0}) and adds the time to the phases. outcome: as dp_job_wait. */
DP_MUST_USE
enum dp_status dp_fetch_wait(struct dp_job *job, struct dp_ticket *ticket, struct dp_step_timer *watch,
                             struct dp_outcome *outcome, struct dp_error *err);

#endif
