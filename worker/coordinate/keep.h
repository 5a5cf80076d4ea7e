/* Keep: the weights of the best epoch, which a training leaves in the store.
 *     the decider, while all rest:  take(best epoch)*  ->  worker 0, at the end:  end
 * Promise   When take has returned DP_OK, every shard keeps those weights beside its rows, whatever stops or
 *           restarts (proto/README.md); those of the previous best epoch stay until then. end reverts to them
 *           unless they are those of the last epoch. An interrupted revert leaves some shards with those rows
 *           and some without; any worker of any run detects that before it uses the rows (settle).
 * Thread    The client's. Waits follow the job's retry policy (job.h). */
#ifndef DP_COORDINATE_KEEP_H
#define DP_COORDINATE_KEEP_H

#include "worker/job/job.h"

/* kept: the epoch of this run that is kept so far; 0: none. On failure every shard still has that one. */
DP_MUST_USE
enum dp_status dp_keep_take(struct dp_job *job, uint32_t epoch, uint32_t kept, struct dp_error *err);
/* Called by each process of worker 0 when all workers have finished. kept: the epoch whose weights are to
 * stay, 0: none; last: the last epoch. Returns when the store has the weights of epoch *left. If a shard has
 * lost what it kept, all shards stay at the last epoch, and a warning says so. */
DP_MUST_USE
enum dp_status dp_keep_end(struct dp_job *job, uint32_t kept, uint32_t last, uint32_t *left,
                           struct dp_error *err);
/* Called before the rows are used. Completes another run's interrupted revert (may_write); otherwise DP_DATA
 * names the shard and the remedy. A shard whose store was replaced since has nothing to revert to, and stays
 * as it is. */
DP_MUST_USE
enum dp_status dp_keep_settle(struct dp_job *job, bool may_write, struct dp_error *err);

#endif
