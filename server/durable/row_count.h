/* Row count: counts the rows of each table after a crash, when the marks' row counts are out of date. The
 * store counts as of the moment of the order, which comes before the first write-back, and gives way to
 * reads. Until it is done, tables are uncounted: the store is asked for every key that is not in the cache,
 * and the status shows only the rows counted so far. Rows that the store did not have at that moment are
 * `fresh`, so both numbers add up.
 * Thread    The shard's.
 * Failure   The shard goes on with uncounted tables, and the next opening counts. Damage is reported. */
#ifndef DP_DURABLE_ROW_COUNT_H
#define DP_DURABLE_ROW_COUNT_H

#include "server/cache/cached_tables.h"
#include "server/cache/damage.h"
#include "server/cache/io_jobs.h"

struct dp_row_count {
    struct dp_shard_base *base;
    struct dp_cached_tables *tables;
    struct dp_io_jobs *jobs;
    struct dp_io_job *counting; /* the store counts; else NULL */
    bool failed;
};

/* Discards the marks' row counts: every table is uncounted. */
void dp_row_count_forget(struct dp_row_count *count);
enum dp_status dp_row_count_start(struct dp_row_count *count, struct dp_error *err);
/* Starts a count if none is under way, none has failed, and a table is uncounted. */
enum dp_status dp_row_count_start_if_due(struct dp_row_count *count, struct dp_error *err);
/* cancels the count, so that a stop does not wait for it */
void dp_row_count_stop(struct dp_row_count *count);
void dp_row_count_say(struct dp_row_count *count); /* updates the counter of uncounted tables */

#endif
