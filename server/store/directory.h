/* Directory: the place of a store on disk, before RocksDB opens it. The room's own.
 * Thread    Any.
 * Failure   DP_IO naming the path, DP_CORRUPT when files are missing. */
#ifndef DP_STORE_DIRECTORY_H
#define DP_STORE_DIRECTORY_H

#include "common/base/status.h"

#include <stdbool.h>

/* Opening RocksDB on a full disk aborts in its info log (rocks_db.c). */
#define DP_DIRECTORY_ROOM (4u << 20)

/* DP_FULL: less than DP_DIRECTORY_ROOM is left on its disk. Refuses a directory with rows (*.sst) but without the file CURRENT: RocksDB would take it as new and sweep
 * the rows away. */
DP_MUST_USE
enum dp_status dp_directory_check(const char *path, struct dp_error *err);

/* Takes the lock that RocksDB takes at open; the descriptor, whose close gives it back; -1: another process has it, or there
 * is none. Not while this process has the database open: the close would give back that lock, too. */
int dp_directory_lock(const char *path);
/* fsync of the directory: names in it are durable. */
DP_MUST_USE
enum dp_status dp_directory_sync(const char *path, struct dp_error *err);

#endif
