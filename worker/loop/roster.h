/* Roster: a worker's place among those that wait for each other (worker/job/rounds.h), as the shards know
 * it. Without rounds.members there is none: worker 0 tells the shards that the run has begun, and that is all.
 *     join -> (a step)* -> leave
 * Promise   Nobody waits for a worker that has left. One that was stopped, was killed or failed has not: the
 *           others wait for it, and its next process takes its place. The process whose place was taken ends
 *           with DP_REPLACED.
 * Thread    The client's. */
#ifndef DP_LOOP_ROSTER_H
#define DP_LOOP_ROSTER_H

#include "worker/job/job.h"
#include "worker/job/rounds.h"

/* Call before the first pull of a step, once the run's plan can no longer be replaced. */
DP_MUST_USE
enum dp_status dp_roster_join(struct dp_job *job, const struct dp_rounds *rounds, struct dp_error *err);
/* Call when all pushes of this worker's `epochs` epochs are answered. joined: by this process; if not, it
 * joins first, and so leaves for an earlier process that could not. */
DP_MUST_USE
enum dp_status dp_roster_leave(struct dp_job *job, const struct dp_rounds *rounds, bool joined,
                               uint32_t epochs, struct dp_error *err);

/* As the member that joined: until every shard acts on the members that the register has now. */
DP_MUST_USE
enum dp_status dp_roster_hand_over(struct dp_job *job, const struct dp_rounds *rounds, struct dp_error *err);
/* After joining, and once it is known that there are steps left to train: DP_REPLACED if the others have let this worker leave meanwhile (stand_in.h). */
DP_MUST_USE
enum dp_status dp_roster_check_stays(struct dp_job *job, struct dp_error *err);
/* As the member that joined: it has taken part in the steps below `until`. */
DP_MUST_USE
enum dp_status dp_roster_leave_before(struct dp_job *job, uint64_t until, struct dp_error *err);

#endif
