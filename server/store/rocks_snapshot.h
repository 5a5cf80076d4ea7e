/* Rocks snapshot: a copy of a store's rows and marks beside it, and the way back to it. The room's own.
 *     take -> snapshot-RUN-EPOCH           revert -> revert-RUN-EPOCH -> settle -> the store has the snapshot's rows
 * A snapshot is a directory in the store's own: a RocksDB of its own, by hard links to the files of rows. It costs what is
 * written, or merged, after it.
 * Promise   A directory of that name is whole and durable: it is made under another name, synced, and renamed. Reverting
 *           puts the store's present marks into the snapshot, so that what was used up stays used up (push ids, streams, the
 *           journal's incarnation); then one rename decides: where revert-RUN-EPOCH is there, that directory is the store, and what
 *           lies beside it is on its way out. settle, at each opening that writes, brings the files over; cut short
 *           anywhere, it is done over. Who only reads, reads from there (dp_rocks_snapshot_place).
 * Names     snapshot-RUN-EPOCH, revert-RUN-EPOCH; snapshot-tmp is being made, snapshot-drop being removed: settle sweeps those.
 * Thread    take: the one that writes. The rest: one, while the store is closed.
 * Failure   FULL (disk), IO, NOT_FOUND: no such snapshot. Before the rename of a revert nothing has changed. */
#ifndef DP_STORE_ROCKS_SNAPSHOT_H
#define DP_STORE_ROCKS_SNAPSHOT_H

#include "server/store/rocks_db.h"
#include "server/store/store.h"

#include <stdbool.h>
#include <stddef.h>

#define DP_ROCKS_PLACE_BYTES 1400u

struct dp_rocks_snapshots {
    uint32_t count;
    struct dp_store_snapshot snapshot[DP_STORE_SNAPSHOTS_MAX];
};

/* Those that are whole; none where the directory is not there. */
DP_MUST_USE
enum dp_status dp_rocks_snapshot_list(const char *directory, struct dp_rocks_snapshots *out,
                                      struct dp_error *err);
/* One that is there already stays as it is. */
DP_MUST_USE
enum dp_status dp_rocks_snapshot_take(const struct dp_rocks_db *db, struct dp_store_snapshot name,
                                      struct dp_error *err);
/* Removes all but those two. */
DP_MUST_USE
enum dp_status dp_rocks_snapshot_drop(const char *directory, struct dp_store_snapshot but,
                                      struct dp_store_snapshot and_but, struct dp_error *err);
/* Of a store that was closed cleanly. mark: put beside its marks. Settling it is left to the next opening. DP_UNCLEAN: it
 * was not. */
DP_MUST_USE
enum dp_status dp_rocks_snapshot_revert(const char *directory, struct dp_store_snapshot name,
                                        const struct dp_store_mark *mark, struct dp_error *err);
/* Ends a revert, if one was begun, and sweeps. */
DP_MUST_USE
enum dp_status dp_rocks_snapshot_settle(const char *directory, struct dp_error *err);
/* Where RocksDB's files are to be read: the directory, or a revert in it. */
void dp_rocks_snapshot_place(const char *directory, char out[DP_ROCKS_PLACE_BYTES]);

#endif
