/* Next batch: a reader's next minibatch, waited for in slices, so that a signal is seen and others see that this worker lives.
 * Failure   DP_STOPPING: a signal came while it was waited for; DP_IO: none within training.timeout_ms, with what may help;
 *           DP_NOT_FOUND: the reader's plan has ended. */
#ifndef DP_WORKER_NEXT_BATCH_H
#define DP_WORKER_NEXT_BATCH_H

#include "worker/job.h"
#include "worker/read/reader.h"

DP_MUST_USE
enum dp_status dp_next_batch(struct dp_job *job, struct dp_reader *reader, struct dp_batch **out,
                             struct dp_error *err);

#endif
