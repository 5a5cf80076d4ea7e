/* Run failure: a worker that would fail again in the same way (exit code 2) ends the run for all.
 *     its failure -> register value "failed" -> the others see it within seconds, or when they start again
 *     -> they end with 2, too -> the servers (server/run_end.h)
 *         {"run":2,"worker":1,"why":"..."}      {}: none has failed
 * Promise   Only servers that end with the run (--until-done) take one: their first server puts {} at a
 *           start, so that a further start begins without it. None is put where the others go on without
 *           this worker (training.worker_timeout, training.work "leased"), or where another process has its
 *           place.
 * Failure   A first server that does not answer within a second: none is put, and none is seen.
 * Thread    The client's. */
#ifndef DP_CONTEXT_RUN_FAILURE_H
#define DP_CONTEXT_RUN_FAILURE_H

#include "worker/context/job.h"

/* DP_DATA: a worker has failed; names it and its reason. */
enum dp_status dp_run_failure_check(struct dp_job *job, struct dp_error *err);
/* This worker ends for `why`, and its client is open: puts it, if it has its place, or returns DP_DATA where
 * that comes from another worker's failure. Else `why`. */
enum dp_status dp_run_failure_settle(struct dp_job *job, enum dp_status why, bool has_place,
                                     struct dp_error *err);

#endif
