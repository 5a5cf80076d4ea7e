/* Next batch: waits for a reader's next minibatch in slices, so that a signal is seen and others see that
 * this worker lives.
 * Failure   DP_STOPPING: a signal came during the wait; DP_IO, with remedies: none came within
 *           training.timeout_ms; DP_INTERNAL: the reader's plan has ended. */
#ifndef DP_CONTEXT_NEXT_BATCH_H
#define DP_CONTEXT_NEXT_BATCH_H

#include "worker/context/job.h"
#include "worker/read/reader.h"

DP_MUST_USE
enum dp_status dp_next_batch(struct dp_job *job, struct dp_reader *reader, struct dp_batch **out,
                             struct dp_error *err);

#endif
