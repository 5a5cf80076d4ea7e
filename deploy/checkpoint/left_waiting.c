#include "deploy/checkpoint/left_waiting.h"

#include <inttypes.h>

#define CLOSE_MS 10000u
#define DISK_MS  120000u /* then a disk or a server hangs */

uint32_t dp_left_waiting_ms(bool has_sync)
{
    return has_sync ? CLOSE_MS : DISK_MS;
}

enum dp_status dp_left_waiting_fail(bool has_sync, uint32_t shard, uint32_t wait_ms, const char *push,
                                    struct dp_error *err)
{
    if (!has_sync)
        return dp_fail(err, DP_TIMEOUT,
                       "the journal of shard %" PRIu32 " has not become durable for %" PRIu32
                       " s: its disk is slow, or hangs: look at its server's log and disk",
                       shard, DISK_MS / 1000);
    return dp_fail(
        err, DP_TIMEOUT,
        "shard %" PRIu32 " waited %" PRIu32
        " s for the close of a synchronous step that other shards have closed%s%s: is a worker gone? "
        "Start it again, or let it leave (--worker-timeout)",
        shard, wait_ms / 1000, push[0] ? ", and for " : "", push);
}
