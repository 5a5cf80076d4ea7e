/* Recovery: replays into the rows what the journal has beyond the store.
 *     records -> a full batch -> evict to fit its rows -> read the rows that the cache lacks, sorted, in
 *     several reads at once -> apply in the journal's order -> next batch ...
 *     (always in this order)
 * Promise   Rows, lsns, push ids, views and steps are those of before the crash, bit for bit. The cache keeps to its
 *           budget: clean rows are evicted and changed ones written back as it goes on.
 * Thread    The shard's, at its opening; it waits.
 * Failure   The opening is refused with the reason in err; no job is left at the store. */
#ifndef DP_DURABLE_RECOVERY_H
#define DP_DURABLE_RECOVERY_H

#include "server/durable/row_count.h"
#include "server/durable/write_back.h"

struct dp_recovery_options {
    struct dp_write_back *write_back; /* its rows, ids and steps are filled */
    struct dp_row_count *count;
    const struct dp_journal_options *journal;
    bool recovers;  /* the store was not closed cleanly, the journal has what it lacks */
    bool read_only; /* the journal is read without hardening or a new segment */
    uint64_t secret;
};

/* Opens the journal and replays it. read_only: it stays closed. */
enum dp_status dp_recovery_run(const struct dp_recovery_options *options, struct dp_error *err);

#endif
