#include "server/coordinator/partial_pushes.h"

#include "common/model/stream.h"

#include <inttypes.h>
#include <stdio.h>

#define CLOSE_MS 10000u
#define DISK_MS  120000u /* then a disk or a server hangs */

bool dp_partial_is_over(const void *known, const struct dp_copy_push *push)
{
    const struct dp_partial_known *k = known;
    bool is_over = dp_stream_is_training(push->stream) && dp_stream_run(push->stream) < k->last_run;
    for (uint32_t i = 0; i < k->before.count && !is_over; i++)
        is_over = k->before.push[i].stream == push->stream && k->before.push[i].number == push->number;
    return is_over;
}

bool dp_partial_is_of_client(const void *unused, const struct dp_copy_push *push)
{
    (void)unused;
    return !dp_stream_is_training(push->stream);
}

uint32_t dp_partial_grace_ms(bool has_sync)
{
    return has_sync ? CLOSE_MS : DISK_MS;
}

/* Push n is worker n % workers' (worker/schedule/shares.h), unless workers take them from a list. */
static void name_worker(const struct dp_cluster_training *training, const struct dp_copy_push *push,
                        char *out, size_t size)
{
    bool is_known = training->work == DP_CLUSTER_FIXED && dp_stream_run(push->stream) == training->run;
    if (is_known)
        (void)snprintf(out, size, "worker %" PRIu32, (uint32_t)(push->number % training->workers));
    else
        (void)snprintf(out, size, "its worker");
}

static enum dp_status fail_lacking(const struct dp_partial_wait *wait, struct dp_error *err)
{
    char worker[32];
    const struct dp_copy_push *push = wait->lacking;
    name_worker(wait->training, push, worker, sizeof worker);
    return dp_fail(err, DP_TIMEOUT,
                   "shard %" PRIu32 " waited %" PRIu32 " s for push %" PRIu64 " of epoch %" PRIu32
                   " of run %" PRIu32
                   ", which other shards have: %s is down, or far behind. Start it again: it "
                   "completes the push; or wait longer (--wait)",
                   wait->shard, wait->wait_ms / 1000, push->number, dp_stream_epoch(push->stream) + 1,
                   dp_stream_run(push->stream), worker);
}

enum dp_status dp_partial_fail(const struct dp_partial_wait *wait, struct dp_error *err)
{
    if (wait->lacking)
        return fail_lacking(wait, err);
    if (wait->has_sync)
        return dp_fail(err, DP_TIMEOUT,
                       "shard %" PRIu32 " waited %" PRIu32
                       " s for the close of a synchronous step that other shards have closed: a worker is "
                       "down. Start it again, or let it leave (--worker-timeout)",
                       wait->shard, wait->wait_ms / 1000);
    return dp_fail(err, DP_TIMEOUT,
                   "the journal of shard %" PRIu32 " has not become durable for %" PRIu32
                   " s: its disk is slow, or hangs: look at its server's log and disk",
                   wait->shard, DISK_MS / 1000);
}
