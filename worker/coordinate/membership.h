/* Membership: a worker's place among those that wait for each other (worker/schedule/shares.h), as the shards
 * know it. In async (rounds.members is 0) no worker waits: a worker joins only so that it is the one process
 * in its place, and pushes of an earlier process are refused. None of its steps is counted, and it does not
 * leave.
 *     join -> (a step)* -> leave
 * Promise   No worker waits for one that has left. A worker that was stopped, was killed or failed has not
 *           left: the others wait for it, and its next process takes its place. A replaced process ends with
 *           DP_REPLACED. If the others have removed it (takeover.h), its next process comes back: it takes
 *           part from a step on that no shard has reached.
 * Thread    The client's. */
#ifndef DP_COORDINATE_MEMBERSHIP_H
#define DP_COORDINATE_MEMBERSHIP_H

#include "worker/context/job.h"
#include "worker/schedule/shares.h"

/* Before joining, as the register knows it: {0} if no worker has joined. */
enum dp_status dp_membership_look(struct dp_job *job, const struct dp_rounds *rounds, struct dp_seat *out,
                                  struct dp_error *err);
/* After joining. */
struct dp_seat dp_membership_seat_of(const struct dp_job *job);
/* Call before the first pull of a step, once the run's plan can no longer be replaced. returns: this worker
 * trains on, so if it has left it comes back; else its end stays. */
enum dp_status dp_membership_join(struct dp_job *job, const struct dp_rounds *rounds, bool returns,
                                  struct dp_error *err);
/* Call when all pushes of this worker's `epochs` epochs are answered. joined: by this process; if not, it
 * joins first, and so leaves for an earlier process that could not. */
enum dp_status dp_membership_leave(struct dp_job *job, const struct dp_rounds *rounds, bool joined,
                                   uint32_t epochs, struct dp_error *err);

/* After DP_REPLACED: whether the others let this worker leave, and it may come back. Who lets it leave joins
 * in its place first, so it may take some seconds until that is known. */
bool dp_membership_was_let_leave(struct dp_job *job, const struct dp_rounds *rounds);
/* As the member that joined: until every shard acts on the members that the register has now. */
enum dp_status dp_membership_hand_over(struct dp_job *job, const struct dp_rounds *rounds,
                                       struct dp_error *err);
/* As the member that joined: it has taken part in the steps below `until`. */
enum dp_status dp_membership_leave_before(struct dp_job *job, uint64_t until, struct dp_error *err);

#endif
