/* File bytes: a small file, read whole.
 * Memory    *bytes is on the heap, the caller's; after a failure too.
 * Failure   DP_IO naming the file. */
#ifndef DP_CHECKPOINT_FILE_BYTES_H
#define DP_CHECKPOINT_FILE_BYTES_H

#include "common/base/status.h"

#include <stddef.h>

DP_MUST_USE
enum dp_status dp_file_bytes_read(const char *path, char **bytes, size_t *size, struct dp_error *err);

#endif
