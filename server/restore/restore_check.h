/* Restore check: files that were linked are read, several at a time, and their checksums compared: one thread reads or computes, and is
 * slower than the disk or than the processors.
 *     new -> add, add, ... -> end
 * Promise   After end with DP_OK each file that was added has its size and checksum. Threads only read: whoever makes and removes files is
 *           the caller alone.
 * Thread    The caller's, and a few of its own inside end.
 * Failure   As of dp_restore_file_check, of one of the files that fail. */
#ifndef DP_RESTORE_RESTORE_CHECK_H
#define DP_RESTORE_RESTORE_CHECK_H

#include "server/restore/restore_files.h"

struct dp_restore_check;

/* seen: called on the caller's thread now and then, with all bytes that were read so far. */
DP_MUST_USE
enum dp_status dp_restore_check_new(void (*seen)(void *context, uint64_t bytes), void *context,
                                    struct dp_restore_check **out, struct dp_error *err);
/* Copies what it needs. */
DP_MUST_USE
enum dp_status dp_restore_check_add(struct dp_restore_check *check, const struct dp_restore_file *file,
                                    struct dp_error *err);
DP_MUST_USE
enum dp_status dp_restore_check_end(struct dp_restore_check *check, struct dp_error *err);
void dp_restore_check_free(struct dp_restore_check **check); /* accepts NULL inside, leaves NULL */

#endif
