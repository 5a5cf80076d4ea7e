/* Durable marks: a shard's marks in its store, in addition to the rows:
 *     "table/..."  table_mark.h
 *     "lsn"        u64: the stored rows have every push up to it; replay starts after it
 *     "ids"        push_ids.h
 *     "steps"      steps_mark.h; none before a run of workers that joined
 *     "streams"    u64: no stream from this one on was given out yet
 *     "journal"    u64: the incarnation of the journal that must exist, unless "released" is at least as high
 *     "released"   u64: openings of the journal up to this one are over, and the store has all their pushes
 *     (written by the
 *                  last cycle of a drain)
 *     "checkpoint" the last checkpoint (store.h); put when the order ends
 * A write-back cycle ends by putting all of them atomically, except "streams" and "journal", and
 * "released" unless it is the last cycle.
 * Thread    The shard's. */
#ifndef DP_DURABLE_DURABLE_MARKS_H
#define DP_DURABLE_DURABLE_MARKS_H

#include "server/cache/cached_tables.h"
#include "server/cache/io_jobs.h"
#include "server/ids/push_ids.h"
#include "server/steps/steps.h"

struct dp_durable_marks {
    uint64_t lsn, incarnation, released, streams; /* 0: no such mark */
};

/* Where the other marks go: what they describe. */
struct dp_durable_marks_into {
    struct dp_cached_tables *tables; /* which are durable then */
    struct dp_push_ids *ids;
    struct dp_steps *steps;
};

/* At the opening. salt, range: see row_cache.h. */
enum dp_status dp_durable_marks_load(const struct dp_store *store, uint64_t salt, struct dp_range range,
                                     uint64_t now_ns, const struct dp_durable_marks_into *into,
                                     struct dp_durable_marks *out, struct dp_error *err);
/* Makes a job with the marks of a cycle: lsn, push ids, steps, every durable table and, if it is not 0, `released`.
 * NULL: out of memory. */
struct dp_io_job *dp_durable_marks_job(const struct dp_cached_tables *tables, const struct dp_push_ids *ids,
                                       const struct dp_steps *steps, uint64_t rows_lsn, uint64_t released,
                                       void (*done)(void *context, struct dp_io_job *job), void *context);

#endif
