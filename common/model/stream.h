/* Stream: the first half of a push's id (stream, number). Two kinds:
 *     training    top bit 1 | run, 31 bits | epoch, 32 bits: the same for every worker of that epoch, so that a push that
 *                 is made again meets its first copy
 *     client      top bit 0: given by shard 0 at the handshake; wall-clock seconds, shifted, at the earliest */
#ifndef DP_MODEL_STREAM_H
#define DP_MODEL_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#define DP_STREAM_TRAINING ((uint64_t)1 << 63)
#define DP_RUN_MAX         INT32_MAX
#define DP_WORKERS_MAX     4096u /* of a run */
/* A shard takes no push of a stream that is so far, or further, above the lowest number that is missing (push_ids.h). */
#define DP_PUSH_WINDOW 65536u

static inline uint64_t dp_stream_of_run(uint32_t run, uint32_t epoch)
{
    return DP_STREAM_TRAINING | (uint64_t)run << 32 | epoch;
}

/* The greatest run number that can have been chosen by then: one a second since 2026-01-01, before which no run was
 * started, and those of a day, for clocks that differ. */
#define DP_RUNS_SINCE_S UINT64_C(1767225600)
#define DP_RUN_SLACK_S  UINT64_C(86400)
#define DP_RUN_SOON_S   60u /* a run that can be chosen by then is asked for again, not refused */
static inline uint64_t dp_run_last(uint64_t wall_s)
{
    uint64_t run = DP_RUN_SLACK_S + (wall_s > DP_RUNS_SINCE_S ? wall_s - DP_RUNS_SINCE_S : 0);
    return run < DP_RUN_MAX ? run : DP_RUN_MAX;
}

/* The first client stream that a store without any gives: above all that another gave before (a million a second). */
static inline uint64_t dp_stream_of_client(uint64_t wall_s)
{
    return wall_s << 20;
}

static inline bool dp_stream_is_training(uint64_t stream)
{
    return stream & DP_STREAM_TRAINING;
}

/* Of a training stream. */
static inline uint32_t dp_stream_run(uint64_t stream)
{
    return (uint32_t)(stream >> 32) & INT32_MAX;
}

static inline uint32_t dp_stream_epoch(uint64_t stream)
{
    return (uint32_t)stream;
}

#endif
