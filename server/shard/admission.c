/* Admission: decides which streams a push may name.
 *     known to the push ids -> yes; else: can it have been given out by now? -> yes; within a minute -> AGAIN; no -> INVALID
 * Why       Push ids forget streams, and then refuse every unknown stream below a floor. A floor rises to the greatest
 *           forgotten stream, so a peer that may name any stream could raise it above all streams that will ever be
 *           given out. Only streams that can have been given out are admitted; so there is always a client stream, and a
 *           run, above the floor. A push that is not admitted costs nothing: no memory, no record, no number.
 *           Shard 0 gives client streams out and knows which. Other shards do not learn this, so the clock
 *           is their bound: client streams begin at wall-clock seconds (dp_stream_of_client). Run numbers
 *           are chosen by people and by `downpour run`, which count up; the clock bounds them too, one run
 *           a second. The bound has a day of slack, for clocks that differ. A client that gets "too old up
 *           to N" takes N + 1, which is within the bound after a second at most. Until then, and for clocks
 *           that differ by up to a minute, it gets AGAIN.
 * Limit     If a server's clock was set back, or is a day late compared with shard 0, it refuses new
 *           streams and says so. */
#include "server/shard/admission.h"

#include <inttypes.h>

#define SLACK_S DP_RUN_SLACK_S
#define SOON_S  DP_RUN_SOON_S

uint64_t dp_admission_clock_ms(const struct dp_admission *a)
{
    return a->wall->now_ns ? dp_clock_ns(a->wall) / UINT64_C(1000000) : 0;
}

static uint64_t wall_s(const struct dp_admission *a)
{
    return dp_admission_clock_ms(a) / 1000;
}

/* The greatest client stream that can have been given out by then. */
static uint64_t last_client(const struct dp_admission *a, uint64_t wall_s)
{
    return a->base->range.first == 0 ? a->next_stream - 1 : dp_stream_of_client(wall_s + SLACK_S);
}

static bool is_due(const struct dp_admission *a, uint64_t stream, uint64_t wall_s)
{
    return dp_stream_is_training(stream) ? dp_stream_run(stream) <= dp_run_last(wall_s)
                                         : stream <= last_client(a, wall_s);
}

/* For people: above all runs that are known, as far as the clock allows. */
static uint64_t run_to_use(const struct dp_admission *a, uint64_t now_s)
{
    uint64_t known = dp_push_ids_last_run(a->ids), due = dp_run_last(now_s);
    return (known < due ? known : due) + 1;
}

enum dp_status dp_admission_check_above(const struct dp_admission *a, uint64_t floor, struct dp_error *err)
{
    uint64_t now_s = wall_s(a);
    if (floor <= dp_stream_of_client(now_s + SLACK_S))
        return DP_OK;
    /* Given at once, it and those of later clients would not be due on other shards. */
    if (floor <= dp_stream_of_client(now_s + SLACK_S + SOON_S))
        return dp_fail_wait(err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_STREAMS, .subject = floor},
                            "hello: streams above %016" PRIx64
                            " are not given out before this server's clock is there",
                            floor);
    return dp_fail(err, DP_INVALID,
                   "hello: streams up to %016" PRIx64 " cannot be too old by this server's clock", floor);
}

enum dp_status dp_admission_check(const struct dp_admission *a, uint64_t stream, struct dp_error *err)
{
    if (dp_push_ids_knows(a->ids, stream))
        return DP_OK;
    uint64_t now_s = wall_s(a);
    if (is_due(a, stream, now_s))
        return DP_OK;
    enum dp_status st = is_due(a, stream, now_s + SOON_S) ? DP_AGAIN : DP_INVALID;
    const struct dp_wait wait = {.reason = st == DP_AGAIN ? DP_WAIT_STREAMS : DP_WAIT_NONE,
                                 .subject = st == DP_AGAIN ? stream : 0};
    if (dp_stream_is_training(stream))
        return dp_fail_wait(err, st, wait,
                            "run %" PRIu32 " (stream %016" PRIx64 ") is out of range: shard %" PRIu32
                            " accepts new runs up to %" PRIu64 ", one more each second; use %" PRIu64,
                            dp_stream_run(stream), stream, a->base->index, dp_run_last(now_s),
                            run_to_use(a, now_s));
    if (a->base->range.first == 0)
        return dp_fail_wait(err, st, wait,
                            "stream %016" PRIx64
                            " was never given out: push to the stream that the handshake gave this client",
                            stream);
    return dp_fail_wait(
        err, st, wait,
        "stream %016" PRIx64 " cannot have been given out yet by the clock of shard %" PRIu32
        "'s server: push to the stream that the handshake gave this client, and keep the clocks of "
        "servers within a day of each other",
        stream, a->base->index);
}

enum dp_status dp_admission_too_old(const struct dp_admission *a, uint64_t stream, struct dp_error *err)
{
    uint64_t last = dp_push_ids_too_old(a->ids, stream);
    if (!dp_stream_is_training(stream))
        return dp_fail(err, DP_TOO_OLD,
                       "stream %016" PRIx64 " is too old: shard %" PRIu32
                       " may have forgotten it; another handshake gives a new one",
                       stream, a->base->index);
    if (last < dp_stream_of_run(dp_stream_run(stream), UINT32_MAX))
        return dp_fail(err, DP_TOO_OLD,
                       "epoch %" PRIu32 " of run %" PRIu32 " (stream %016" PRIx64
                       ") was forgotten: later epochs took its place",
                       dp_stream_epoch(stream), dp_stream_run(stream), stream);
    return dp_fail(err, DP_TOO_OLD,
                   "run %" PRIu32 " (stream %016" PRIx64 ") is too old: shard %" PRIu32
                   " may have forgotten it; a new run must be %" PRIu64 " or higher",
                   dp_stream_run(stream), stream, a->base->index, run_to_use(a, wall_s(a)));
}

/* ---- giving streams out */

void dp_admission_start(struct dp_admission *a, uint64_t reserved)
{
    uint64_t first = dp_stream_of_client(wall_s(a)), known = dp_push_ids_last_client(a->ids);
    /* After a restore: other shards may have been cut after shard 0, and have pushes of streams that it gave later. */
    first = first > known ? first : known + 1;
    a->next_stream = a->reserved = first > reserved ? first : reserved;
}

void dp_admission_reserve(struct dp_admission *a, uint64_t bound)
{
    a->reserved = bound > a->reserved ? bound : a->reserved;
    DP_ASSERT(a->next_stream <= a->reserved);
}

void dp_admission_give(struct dp_admission *a, uint64_t stream)
{
    DP_ASSERT(a->next_stream <= stream && stream < a->reserved);
    a->next_stream = stream + 1;
    DP_ASSERT(a->next_stream <= a->reserved);
}
