#include "server/shard/drain.h"

#include "server/shard/shard_state.h"

#include <inttypes.h>

void dp_shard_drain(struct dp_shard *shard)
{
    shard->draining = true;
    dp_row_count_stop(&shard->count);
}

bool dp_shard_is_quiet(const struct dp_shard *shard)
{
    return shard->draining && shard->schedule.requests == 0 && shard->held.count == 0 &&
           shard->push_replies.count == 0 && !dp_close_is_coming(&shard->close);
}

enum dp_status dp_shard_drained(const struct dp_shard *shard, struct dp_error *err)
{
    const struct dp_write_back *w = &shard->write_back;
    const struct dp_error *why = w->failed.status != DP_OK ? &w->failed : &shard->journaling.failed;
    if (!shard->draining || shard->schedule.requests > 0 || shard->held.count > 0 ||
        shard->jobs.under_way > 0 || shard->misses.untaken > 0 ||
        dp_cut_requests_is_busy(&shard->cut_requests) || shard->cut.gone_count > 0)
        return DP_AGAIN;
    if (shard->options.read_only)
        return DP_OK; /* there is nothing to write */
    if (why->status != DP_OK) {
        struct dp_error text = *why;
        (void)dp_wrap(&text, text.status, "shard %" PRIu32 " could not write its rows back",
                      shard->base.index);
        if (err)
            *err = text;
        return text.status;
    }
    DP_ASSERT(!w->last_done || dp_write_back_has_all(w));
    return w->last_done ? DP_OK : DP_AGAIN;
}

bool dp_shard_keeps_journal(const struct dp_shard *shard)
{
    return !shard->options.read_only && shard->write_back.stored_lsn < shard->journaling.lsn;
}

enum dp_status dp_shard_end_journal(struct dp_shard *shard, struct dp_error *err)
{
    DP_ASSERT(dp_shard_drained(shard, NULL) == DP_OK && !dp_shard_keeps_journal(shard));
    enum dp_status st = dp_journaling_end(&shard->journaling, err);
    return st == DP_OK ? st : dp_wrap(err, st, "shard %" PRIu32, shard->base.index);
}

enum dp_status dp_shard_stopping(const struct dp_shard *shard, struct dp_error *err)
{
    return dp_fail_wait(err, DP_STOPPING, (struct dp_wait){.reason = DP_WAIT_STOPPING},
                        "shard %" PRIu32 " is shutting down", shard->base.index);
}
