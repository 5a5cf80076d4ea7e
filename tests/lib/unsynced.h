/* Unsynced: which names and files that a test's code made were not synced when it was done, or when a rename made them count.
 *     begin (root) -> the code, whose calls to libc are wrapped (unsynced.cmake) -> expect_none
 * Rules     A name is durable by a sync of its directory, bytes by one of the file: a loss of power may take what is neither. When a
 *           directory is renamed, all below it must be durable, and all below `also`. While a manifest's removal is not, nothing else is removed.
 * Not seen  Calls of shared libraries (RocksDB, stdio's own writes); a file that is empty when it is opened for writing counts as written. Files called
 *           "lock".
 * Thread    begin and expect_none: the test's own. */
#ifndef DP_TESTS_LIB_UNSYNCED_H
#define DP_TESTS_LIB_UNSYNCED_H

#include <stddef.h>

/* also: a directory, or NULL. Both outlive expect_none. */
void dp_unsynced_begin(const char *root, const char *also);
/* The test fails by what was not durable; how many renames of directories and removals of manifests were judged. */
size_t dp_unsynced_expect_none(void);

#endif
