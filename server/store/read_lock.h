/* Read lock: keeps writers away from a store while it is read, and readers from one that a server writes.
 *     take -> (any number of readers; RocksDB's own lock, exclusive, is refused) -> give_back
 * Promise   Nothing is written: it is a shared lock on the file LOCK, which RocksDB locks exclusively (fcntl). A store without
 *           that file, or on a file system without locks, is read without.
 * Holds     The process opens LOCK once: closing any descriptor of it would give the lock back.
 * Failure   DP_EXISTS: a server has it open. DP_IO. */
#ifndef DP_STORE_READ_LOCK_H
#define DP_STORE_READ_LOCK_H

#include "common/base/status.h"

#include <stdbool.h>

/* *out: a descriptor, or -1 where there is nothing to lock. */
DP_MUST_USE
enum dp_status dp_read_lock_take(const char *directory, int *out, struct dp_error *err);
/* Whether another process has the store open, to read or to write. Not while this one does. */
bool dp_read_lock_is_used(const char *directory);
void dp_read_lock_give_back(int *lock); /* -1: no effect; leaves -1 */

#endif
