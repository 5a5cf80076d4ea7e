/* Disk replace: a small file of a dp_disk that is read as one and replaced as one.
 *     replace: NAME.new -> sync -> rename -> sync the directory
 * Promise   After DP_OK the new content survives a loss of power. After a failure, a later read finds the old content or the new,
 *           complete. So damage that a read finds is never a torn write.
 * Why       A write may be retried after a failed sync: each one creates a new file that no failed sync has touched, and a new
 *           directory entry.
 * Thread    One at a time for each name.
 * Failure   As env/disk.h. A failed replace frees the blocks of NAME.new. */
#ifndef DP_ENV_DISK_REPLACE_H
#define DP_ENV_DISK_REPLACE_H

#include "common/env/disk.h"

enum dp_status dp_disk_replace(const struct dp_disk *disk, const char *name, const void *data, size_t bytes,
                               struct dp_error *err);
/* Reads the file into *data, which the caller frees, also after a failure. DP_NOT_FOUND: there is none. syncs: what is read is durable,
 * too; a process that died between rename and sync left content that could still be lost. */
enum dp_status dp_disk_read_all(const struct dp_disk *disk, const char *name, _Bool syncs, void **data,
                                size_t *bytes, struct dp_error *err);

#endif
