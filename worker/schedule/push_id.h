/* Push ids of training: the stream and number of a push. They are functions of the run, the epoch and the
 * position of the minibatch alone, so that a repeated push (a retry, a restarted worker) has the id of its
 * first copy, and servers apply it once. */
#ifndef DP_SCHEDULE_PUSH_ID_H
#define DP_SCHEDULE_PUSH_ID_H

#include "common/model/stream.h"

/* run: 1 .. 2^31-1. The top bit distinguishes training's streams from those that the servers assign. */
static inline uint64_t dp_push_stream(uint32_t run, uint32_t epoch)
{
    return dp_stream_of_run(run, epoch);
}

/* group: 0, 1, ... of one worker's pushes in one epoch (group.h). With one minibatch in a push this is the
 * number of the minibatch. */
static inline uint64_t dp_push_number(uint32_t worker, uint32_t workers, uint64_t group)
{
    return worker + (uint64_t)workers * group;
}

#endif
