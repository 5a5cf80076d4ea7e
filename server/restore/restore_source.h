/* Restore source: one shard of a checkpoint, opened so that its store has all of its rows.
 *     files, marks and journal in a directory -> open: recovered as after a crash, drained -> rows are read -> close
 * Promise   After open the store has every row as the shard had it at the checkpoint. No request is answered.
 * Why       The shard's own recovery, so that a record is applied here as it is after a crash.
 * Thread    One, which waits.
 * Failure   That of an opening of the shard. DP_FULL: the disk has no room for its rows; nothing is tried again. After a failure
 *           close is allowed. */
#ifndef DP_RESTORE_RESTORE_SOURCE_H
#define DP_RESTORE_RESTORE_SOURCE_H

#include "server/store/rocks_store.h"

struct dp_restore_source_options {
    const char *directory; /* adopted (rocks_adopt.h), with its journal in `journal` */
    uint32_t index, shards;
    uint64_t cluster; /* as it was adopted */
    uint64_t cache_bytes, journal_bytes;
};

struct dp_restore_source;

enum dp_status dp_restore_source_open(const struct dp_restore_source_options *options,
                                      struct dp_restore_source **out, struct dp_error *err);
/* Lives as long as the source. */
struct dp_store *dp_restore_source_store(struct dp_restore_source *source);
void dp_restore_source_close(struct dp_restore_source **source); /* accepts NULL inside, leaves NULL */

#endif
