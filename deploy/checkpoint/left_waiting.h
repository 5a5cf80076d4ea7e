/* Left waiting: shards that do not begin to copy, although what has not come was left out. In a synchronous run they may wait for the
 * close of a step, which a worker that is gone holds up; else for their journals' disks alone, as long as anything may hang.
 * Thread    Any. */
#ifndef DP_CHECKPOINT_LEFT_WAITING_H
#define DP_CHECKPOINT_LEFT_WAITING_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* How long they may, after they were told to leave out what has not come. */
uint32_t dp_left_waiting_ms(bool has_sync);
/* DP_TIMEOUT, with the cause and what to do. wait_ms: how long the shard waited before it was told; push: that it lacks, or "". */
enum dp_status dp_left_waiting_fail(bool has_sync, uint32_t shard, uint32_t wait_ms, const char *push,
                                    struct dp_error *err);

#endif
