/* Read lock: keeps writers away from a store that is being read, and readers away from a store that a server
 * writes.
 *     take -> (any number of readers; RocksDB's own exclusive lock is refused) -> give_back
 * Promise   Nothing is written: this is a shared lock on the file LOCK, which RocksDB locks exclusively
 *           (fcntl). A store without that file, or on a file system without locks, is read without a lock.
 * Holds     The process opens LOCK only once: closing any descriptor of it would release the lock.
 * Failure   DP_IN_USE: a server has it open. DP_IO. */
#ifndef DP_STORE_READ_LOCK_H
#define DP_STORE_READ_LOCK_H

#include "common/base/status.h"

#include <stdbool.h>

/* *out: a descriptor, or -1 if there is nothing to lock. */
enum dp_status dp_read_lock_take(const char *directory, int *out, struct dp_error *err);
/* Whether another process has the store open, for reading or writing. Not while this process has it open. */
bool dp_read_lock_is_used(const char *directory);
void dp_read_lock_give_back(int *lock); /* -1: no effect; leaves -1 */

#endif
