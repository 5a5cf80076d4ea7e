/* Rocks link: a copy of a store as it is at one moment, for a checkpoint to read. Private to the room.
 *     make -> cut-... (read by the checkpoint's copier) -> remove
 * A link is a directory inside the store's directory: a RocksDB of its own, made of hard links.
 * Promise   Once make gave DP_OK the link is complete and durable, and nothing changes its files. Links do not
 *           outlive the process that wants them: an opening that writes removes all that it finds. It also removes
 *           the snapshots of a version before (snapshot-RUN-EPOCH), and logs that.
 * Thread    make, remove: the store's writer. sweep: one, before the writer starts, under the store's lock.
 * Failure   FULL (disk), IO, EXISTS: there is a link of that name. The store is as it was. */
#ifndef DP_STORE_ROCKS_LINK_H
#define DP_STORE_ROCKS_LINK_H

#include "server/store/rocks_db.h"

/* name: starts with DP_STORE_LINK_PREFIX. */
enum dp_status dp_rocks_link_make(const struct dp_rocks_db *db, const char *name, struct dp_error *err);
/* DP_OK, too, where there is none. */
enum dp_status dp_rocks_link_remove(const char *directory, const char *name, struct dp_error *err);
enum dp_status dp_rocks_link_sweep(const char *directory, struct dp_error *err);

#endif
