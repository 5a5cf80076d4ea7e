/* Restore split: a checkpoint of one number of shards becomes the stores of another.
 *     for each old shard whose range meets one of ours: copied (restore_copy.h), recovered (restore_source.h), its rows written into
 *     our stores by range, removed -> marks
 * Promise   The stores are clean and durable, except for their names in `building`. They have every row of
 *           their ranges, each counted, all tables, and the ids and steps of all shards. Their journals
 *           begin after the greatest lsn of all old shards, so every push is newer than any row.
 * Room      The disk needs space for the new stores and for one old shard at a time (linked if possible).
 * Thread    One.
 * Failure   As those. The caller removes `building`. */
#ifndef DP_RESTORE_RESTORE_SPLIT_H
#define DP_RESTORE_RESTORE_SPLIT_H

#include "server/restore/restore_copy.h"

struct dp_restore_split {
    const struct dp_restore_from *from;
    const struct dp_restore_own *own;
    const char *building;
    uint32_t first, count, total;        /* the shards that are made, of the new number of all */
    uint64_t cache_bytes, journal_bytes; /* of one shard */
};

enum dp_status dp_restore_split(const struct dp_restore_split *split, struct dp_error *err);

#endif
