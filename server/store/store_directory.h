/* Store directory: a store's directory before RocksDB opens it. Private to the room.
 * Thread    Any.
 * Failure   DP_IO, naming the path; DP_CORRUPT if files are missing. */
#ifndef DP_STORE_STORE_DIRECTORY_H
#define DP_STORE_STORE_DIRECTORY_H

#include "common/base/status.h"

/* Remedies, in messages. Until an opening was registered (rocks_store.h) a copy of the store alone is accepted, if it is of the
 * opening before; one made while that opening ran lacks pushes, which the ids do not tell. After that a copy is an older one, and
 * fits only copies of the others from the same time. */
#define DP_STORE_RESTORE                                                                                     \
    "a copy of the store made since its server last ended (an earlier one lacks pushes), or a checkpoint "   \
    "(downpour restore --overwrite); without one, move it away and start with --replace-store, which "       \
    "starts it empty"
#define DP_STORE_RESTORE_ALL                                                                                 \
    "restore copies of all servers' stores from one time, or a checkpoint (downpour restore --overwrite), "  \
    "or move this one away and start with --replace-store, which starts it empty"

#include <stdbool.h>

/* Free space required for an open: on a full disk RocksDB would abort in its info log (rocks_db.c). */
#define DP_STORE_DIRECTORY_ROOM (4u << 20)

/* DP_FULL: its disk has less than DP_STORE_DIRECTORY_ROOM left. DP_CORRUPT: there are rows (*.sst) but no
 * file CURRENT: RocksDB would take the directory for a new one and remove the rows. */
enum dp_status dp_store_directory_check(const char *path, struct dp_error *err);

/* Takes the lock that RocksDB takes at open. Returns a descriptor, whose close releases the lock; -1: another
 * process has it, or there is no lock file. Not while this process has the database open: the close would
 * release that lock, too. */
int dp_store_directory_lock(const char *path);

#endif
