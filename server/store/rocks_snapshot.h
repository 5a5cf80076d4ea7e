/* Rocks snapshot: takes snapshots of a store's rows and marks, and reverts the store to one. Private to the
 * room.
 *     take -> snapshot-RUN-EPOCH           revert -> revert-RUN-EPOCH -> settle -> the store has the
 *     snapshot's rows
 * A snapshot is a directory inside the store's directory: a RocksDB of its own, made of hard links to the
 * files of rows. It takes disk space only for what is written or merged after it.
 * Promise   A directory with a snapshot's name is complete and durable: it is made under another name, synced
 *           and renamed. A revert copies the store's current marks into the snapshot, so that what was used
 *           up stays used up (push ids, streams, the journal's incarnation). Then one rename decides: while
 *           revert-RUN-EPOCH exists, that directory is the store, and the files outside it are obsolete.
 *           settle, at each opening that writes, moves its files into place; if it is interrupted, the next
 *           opening repeats it. Readers read from that directory (dp_rocks_snapshot_place).
 * Names     snapshot-RUN-EPOCH, revert-RUN-EPOCH. snapshot-tmp is being made and snapshot-drop is being
 *           removed: settle removes both.
 * Thread    The store's writer calls take. The rest: one thread, while the store is closed.
 * Failure   FULL (disk), IO, NOT_FOUND: there is no such snapshot. Before a revert's rename nothing has
 *           changed. */
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

/* Lists the complete snapshots; none if the directory is missing. */
DP_MUST_USE
enum dp_status dp_rocks_snapshot_list(const char *directory, struct dp_rocks_snapshots *out,
                                      struct dp_error *err);
/* An existing snapshot of that name is kept as it is. */
DP_MUST_USE
enum dp_status dp_rocks_snapshot_take(const struct dp_rocks_db *db, struct dp_store_snapshot name,
                                      struct dp_error *err);
/* Removes all snapshots except those two. */
DP_MUST_USE
enum dp_status dp_rocks_snapshot_drop(const char *directory, struct dp_store_snapshot but,
                                      struct dp_store_snapshot and_but, struct dp_error *err);
/* Reverts a store that was closed cleanly (else DP_UNCLEAN), and adds `mark` to its marks. The next opening
 * settles it. */
DP_MUST_USE
enum dp_status dp_rocks_snapshot_revert(const char *directory, struct dp_store_snapshot name,
                                        const struct dp_store_mark *mark, struct dp_error *err);
/* Completes a revert if there is one, and removes the directories of interrupted work. */
DP_MUST_USE
enum dp_status dp_rocks_snapshot_settle(const char *directory, struct dp_error *err);
/* For rocks_link.c. copy: makes the directory at `path`, complete and durable but for its name. link: makes a directory in `into` for each
 * complete snapshot, of its name, with links to its files. remove: a directory of files inside `directory`, if it is there. */
DP_MUST_USE
enum dp_status dp_rocks_snapshot_copy(const struct dp_rocks_db *db, const char *path, struct dp_error *err);
DP_MUST_USE
enum dp_status dp_rocks_snapshot_link(const char *directory, const char *into, struct dp_error *err);
DP_MUST_USE
enum dp_status dp_rocks_snapshot_remove(const char *directory, const char *name, struct dp_error *err);
/* The directory to read RocksDB's files from: `directory`, or a revert in it. */
void dp_rocks_snapshot_place(const char *directory, char out[DP_ROCKS_PLACE_BYTES]);

#endif
