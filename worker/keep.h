/* Keep: the weights of the best epoch, which a training leaves in the store.
 *     worker 0, while all rest:  take(best epoch)*  ->  all, in the end:  end
 * Promise   What take has answered every shard keeps beside its rows, whatever ends or starts again (proto/README.md); the one of
 *           the best epoch before stays until then. The end goes back to it, where it is not the last one: cut short, some
 *           shards have those rows and some not: who begins to use them, whichever worker of whichever run, sees it (settle).
 * Note      run/<run>/kept/0: the epoch that was left (u32), put by worker 0.
 * Thread    The client's. Waits are those of the job (job.h). */
#ifndef DP_WORKER_KEEP_H
#define DP_WORKER_KEEP_H

#include "worker/progress.h"

/* kept: the epoch of this run that is kept so far; 0: none. All take the new one, or each has that one still. */
DP_MUST_USE
enum dp_status dp_keep_take(struct dp_job *job, uint32_t epoch, uint32_t kept, struct dp_error *err);
/* When all have trained and rest for good, by every worker, each process of it again. kept: the epoch that is to stay, 0 none; last: the last
 * one. Returns when the store has what stays: *left, the epoch that it is. Where a shard has lost what it kept, all have the last
 * weights, and the log says so. */
DP_MUST_USE
enum dp_status dp_keep_end(struct dp_job *job, struct dp_progress *progress, uint32_t kept, uint32_t last,
                           uint32_t *left, struct dp_error *err);
/* *epoch: to which one of this run the rows went back; 0: to none. */
DP_MUST_USE
enum dp_status dp_keep_look(struct dp_job *job, uint32_t *epoch, struct dp_error *err);
/* Before the rows are used: where another run's going back has not reached every shard, it is ended (may_write), or DP_DATA
 * names the shard and the remedy. */
DP_MUST_USE
enum dp_status dp_keep_settle(struct dp_job *job, bool may_write, struct dp_error *err);

#endif
