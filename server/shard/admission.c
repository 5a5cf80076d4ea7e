/* Admission: which streams the pushes of a peer may name.
 *     known to the push ids -> yes; else: can it have been given out by now? -> yes; soon -> AGAIN; no -> INVALID
 * Why       Push ids forget, and then take what they do not know below a floor for forgotten. Floors rise past what was
 *           admitted, never past what can have been given out; so whatever peers push, there is a stream or a run above the
 *           floor, and a refused push costs nothing: no memory, no record, no number.
 *           Shard 0 gives client streams and knows which. Other shards do not hear of that: there the clock is the
 *           bound, as streams begin at wall-clock seconds (dp_client_stream_at). Runs are numbered by people and by
 *           `downpour run`, which count up; the clock bounds them too, a run a second.
 *           A day of slack covers clocks that differ. Who is told that all up to N is too old takes N + 1, which is due
 *           within a second on equal clocks: until then, and for a minute's difference, it hears AGAIN.
 * Limit     A server whose clock is set back, or is a day behind shard 0's, refuses new streams and says so. */
#include "server/shard/shard_inner.h"

#include <inttypes.h>

#define SLACK_S UINT64_C(86400)
#define SOON_S  60u
/* 2026-01-01: no run was started before. */
#define RUNS_SINCE_S UINT64_C(1767225600)

/* The greatest client stream that can have been given out by then. */
static uint64_t last_client(const struct dp_shard *shard, uint64_t wall_s)
{
    return shard->range.first == 0 ? shard->next_stream - 1 : dp_client_stream_at(wall_s + SLACK_S);
}

static uint64_t last_run(uint64_t wall_s)
{
    uint64_t run = SLACK_S + (wall_s > RUNS_SINCE_S ? wall_s - RUNS_SINCE_S : 0);
    return run < DP_RUN_MAX ? run : DP_RUN_MAX;
}

static bool is_due(const struct dp_shard *shard, uint64_t stream, uint64_t wall_s)
{
    return dp_stream_is_training(stream) ? dp_stream_run(stream) <= last_run(wall_s)
                                         : stream <= last_client(shard, wall_s);
}

static uint64_t wall_s(const struct dp_shard *shard)
{
    return shard->options.wall_s +
           (dp_clock_ns(&shard->options.clock) - shard->opened_ns) / UINT64_C(1000000000);
}

bool dp_shard_stream_above(const struct dp_shard *shard, uint64_t floor)
{
    return floor <= dp_client_stream_at(wall_s(shard) + SLACK_S + SOON_S);
}

enum dp_status dp_shard_admit(const struct dp_shard *shard, uint64_t stream, struct dp_error *err)
{
    if (dp_push_ids_knows(shard->ids, stream))
        return DP_OK;
    uint64_t now_s = wall_s(shard);
    if (is_due(shard, stream, now_s))
        return DP_OK;
    enum dp_status st = is_due(shard, stream, now_s + SOON_S) ? DP_AGAIN : DP_INVALID;
    if (dp_stream_is_training(stream))
        return dp_fail(err, st,
                       "run %" PRIu32 " (stream %016" PRIx64 ") is none yet: shard %" PRIu32
                       " takes new runs up to %" PRIu64 ", one more a second; take %" PRIu32,
                       dp_stream_run(stream), stream, shard->options.index, last_run(now_s),
                       dp_push_ids_last_run(shard->ids) + 1);
    if (shard->range.first == 0)
        return dp_fail(
            err, st,
            "stream %016" PRIx64
            " was not given to anybody: a client pushes to the stream that it got at its handshake",
            stream);
    return dp_fail(
        err, st,
        "stream %016" PRIx64 " cannot have been given to anybody by the clock of shard %" PRIu32
        "'s server: a client pushes to the stream that it got at its handshake, and servers' clocks "
        "differ by less than a day",
        stream, shard->options.index);
}

enum dp_status dp_shard_too_old(const struct dp_shard *shard, uint64_t stream, struct dp_error *err)
{
    uint64_t last = dp_push_ids_too_old(shard->ids, stream);
    if (!dp_stream_is_training(stream))
        return dp_fail(err, DP_TOO_OLD,
                       "stream %016" PRIx64
                       " was forgotten: newer ones took its place; get another by a handshake",
                       stream);
    if (last < dp_stream_of_run(dp_stream_run(stream), UINT32_MAX))
        return dp_fail(err, DP_TOO_OLD,
                       "epoch %" PRIu32 " of run %" PRIu32 " (stream %016" PRIx64
                       ") was forgotten: later ones took its place",
                       dp_stream_epoch(stream), dp_stream_run(stream), stream);
    return dp_fail(err, DP_TOO_OLD,
                   "run %" PRIu32 " (stream %016" PRIx64
                   ") was forgotten: newer ones took its place; a new run takes %" PRIu32 " or more",
                   dp_stream_run(stream), stream, dp_push_ids_last_run(shard->ids) + 1);
}
