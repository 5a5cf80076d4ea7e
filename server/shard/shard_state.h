/* One shard: the nouns that it is made of. Each is changed by its own file only; the other fields are the shard's own.
 * Nothing outside this folder includes it. */
#ifndef DP_SHARD_SHARD_STATE_H
#define DP_SHARD_SHARD_STATE_H

#include "common/base/histogram.h"
#include "server/cache/misses.h"
#include "server/durable/row_count.h"
#include "server/shard/admission.h"
#include "server/shard/blocked_pulls.h"
#include "server/shard/close.h"
#include "server/shard/cut_requests.h"
#include "server/shard/push_replies.h"
#include "server/shard/schedule.h"
#include "server/shard/shard.h"
#include "server/shard/step_buffering.h"

#define DP_SHARD_WAITING_MAX ((uint64_t)2 << 30) /* bytes of all waiting requests; one alone may be larger */

/* How stale a push is, how far ahead of the slowest member, and the share of its rows that others had changed. */
enum { DP_MEASURE_STALENESS, DP_MEASURE_GAP, DP_MEASURE_CHANGED, DP_MEASURES };

struct dp_shard {
    struct dp_shard_options options;
    struct dp_shard_base base;

    struct dp_io_jobs jobs; /* which rows are in memory */
    struct dp_cached_tables tables;
    struct dp_cache_budget budget;
    struct dp_misses misses;

    struct dp_push_ids *ids; /* from applied to safe */
    struct dp_steps steps;
    struct dp_step_buffer kept;
    struct dp_journaling journaling;
    struct dp_write_back write_back;
    struct dp_row_count count;
    struct dp_cut cut;

    struct dp_sessions *sessions; /* requests */
    struct dp_schedule schedule;
    struct dp_replies replies;
    struct dp_push_replies push_replies;
    struct dp_admission admission;
    struct dp_cut_requests cut_requests;
    struct dp_blocked_pulls held;
    struct dp_step_buffering step_buffering;
    struct dp_close close;
    struct dp_histogram histogram[DP_MEASURES]; /* of pushes, for the status */
    uint64_t reserving;                         /* streams up to this, by a job under way; 0: none is */

    float *scratch;      /* one row of gradients, DP_TABLE_DIM_MAX */
    uint64_t turn_bytes; /* gathered in this turn */
    uint64_t opened_ns;
    bool draining;
};

/* What staleness is counted in: records, but pushes that are kept for their step. Of the journal's numbers, so that a restart of the
 * server between a pull and its push counts as nothing. (A close, a view or a refusal is one too.) */
static inline uint64_t dp_shard_applied(const struct dp_shard *shard)
{
    return shard->journaling.lsn - dp_step_buffer_count(&shard->kept);
}

/* It drains, and nothing can change any more. */
bool dp_shard_is_quiet(const struct dp_shard *shard);
/* Tries pulls again whose clients have read (pull.c); those that need not wait any more, while the shard drains all. */
void dp_shard_wake_unread(struct dp_shard *shard);

#endif
