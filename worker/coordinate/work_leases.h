/* Work leases: this worker's leases of an epoch's work, where workers have no shares of their own
 * (training.work "leased"). A lease has the minibatches of one push number: the same as with fixed shares
 * (shares.h), in any worker.
 *     begin (epoch) -> ask -> (next minibatch)* -> ... -> answered (lease) -> ask -> ... -> OVER
 * Promise   Each ask lists all leases that this worker holds, and those that were answered since the last
 *           successful ask. Minibatches come lease by lease, each in ascending order. The worker asks
 *           for leases of about DP_WORK_LEASES_AHEAD_NS, so that it seldom asks, and holds few when the epoch
 *           ends. If the first server does not know which numbers are done, the worker asks the shards and
 *           reports it.
 * Thread    The client's.
 * Failure   ask: those of dp_client_lease, by the retry policy (retry.h) if it is patient; otherwise
 *           DP_LEASE_WAIT if the first server is down: training continues with the held leases. */
#ifndef DP_COORDINATE_WORK_LEASES_H
#define DP_COORDINATE_WORK_LEASES_H

#include "worker/context/job.h"
#include "worker/schedule/shares.h"

#define DP_WORK_LEASES_AHEAD_NS UINT64_C(50000000)

struct dp_work_leases;

/* share: this worker's. every: minibatches in a lease. DP_ARGUMENT: more than can be leased, with
 * the remedy. */
enum dp_status dp_work_leases_open(struct dp_job *job, struct dp_share share, uint32_t every,
                                   struct dp_work_leases **out, struct dp_error *err);
void dp_work_leases_close(struct dp_work_leases **leases); /* accepts NULL inside */

/* Every lease of the epoch before was answered. */
void dp_work_leases_begin(struct dp_work_leases *leases, uint32_t epoch);
/* Asks for leases, `least` or more if there are so many. *state: never DP_LEASE_TELL. *wait_ms: when to ask
 * again, with DP_LEASE_WAIT. */
enum dp_status dp_work_leases_ask(struct dp_work_leases *leases, uint32_t least, bool patient,
                                  enum dp_lease_state *state, uint32_t *wait_ms, struct dp_error *err);
/* Minibatches that this worker trains in DP_WORK_LEASES_AHEAD_NS; 0: in more, or unknown. */
uint64_t dp_work_leases_ahead(const struct dp_work_leases *leases);
/* The epoch is over, by the others: gives up all but the oldest `keep`, whose pushes are under way.
 * Minibatches that next gave of the rest are not to be pushed. */
void dp_work_leases_give_up(struct dp_work_leases *leases, uint32_t keep);
/* Minibatches that next has not given yet. */
uint64_t dp_work_leases_left(const struct dp_work_leases *leases);
/* The next minibatch; there is one left. */
uint64_t dp_work_leases_next(struct dp_work_leases *leases);
/* Every shard has answered the push of the oldest lease. */
void dp_work_leases_answered(struct dp_work_leases *leases, uint64_t number);

#endif
