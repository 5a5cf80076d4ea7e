/* Restore put: which marks a restored store has (server/durable/durable_marks.h).
 *     a shard that is copied, with its tail as its journal: put_copied
 *     a new shard with the rows of several: see each of the old stores, recovered -> put_new
 * Thread    Any. Failure: marks->failed. */
#ifndef DP_RESTORE_RESTORE_PUT_H
#define DP_RESTORE_RESTORE_PUT_H

#include "server/restore/restore_from.h"
#include "server/restore/restore_marks.h"

/* What new shards take over from the marks of the old ones. */
struct dp_restore_seen {
    uint64_t streams; /* no stream from this one on was given out */
};

/* Ids and steps of all shards, tables that its link lacks, and what makes the tail its journal. */
void dp_restore_put_copied(struct dp_restore_marks *marks, const struct dp_restore_from *from,
                           const struct dp_manifest_shard *shard);
DP_MUST_USE
enum dp_status dp_restore_see(struct dp_restore_seen *seen, const struct dp_store *store,
                              struct dp_error *err);
/* rows: of which `target` is this shard; they were counted. */
void dp_restore_put_new(struct dp_restore_marks *marks, const struct dp_restore_from *from,
                        const struct dp_restore_seen *seen, const struct dp_restore_rows *rows,
                        uint32_t target);

#endif
