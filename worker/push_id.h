/* Push ids of training: which stream and number a push goes out under. They depend on the run, the epoch and
 * the position of the minibatch alone, so that a push that is made again (a retry, a worker that was started
 * again) meets its first copy on the servers and is counted once. */
#ifndef DP_WORKER_PUSH_ID_H
#define DP_WORKER_PUSH_ID_H

#include "common/model/stream.h"

/* run: 1 .. 2^31-1. The top bit tells training's streams from those that the servers hand out. */
static inline uint64_t dp_push_stream(uint32_t run, uint32_t epoch)
{
    return dp_stream_of_run(run, epoch);
}

/* group: 0, 1, ... of one worker's pushes in one epoch (group.h). With one minibatch a push it is the number
 * of the minibatch. */
static inline uint64_t dp_push_number(uint32_t worker, uint32_t workers, uint64_t group)
{
    return worker + (uint64_t)workers * group;
}

#endif
