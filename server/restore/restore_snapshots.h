/* Restore snapshots: a checkpoint's snapshots for another number of shards, to which the new shards can go back.
 *     for each that all old shards have: stores beside (`keeping-NNNN`) get its rows by range -> each takes the snapshot -> it is moved into
 *     the new shard's directory, and the store beside is removed
 * Promise   The new shards' directories, which are there and closed, have the snapshots, durable but for their names.
 * Room      Beside the snapshots themselves, that of one old shard's at a time.
 * Thread    One.
 * Failure   As restore_split.h. What was made stays: the caller removes `building`. */
#ifndef DP_RESTORE_RESTORE_SNAPSHOTS_H
#define DP_RESTORE_RESTORE_SNAPSHOTS_H

#include "server/restore/restore_split.h"

DP_MUST_USE
enum dp_status dp_restore_snapshots_split(const struct dp_restore_split *split, struct dp_error *err);

#endif
