/* File bytes: a small file, read completely.
 * Memory    *bytes is on the heap, the caller's; after a failure too.
 * Failure   DP_IO naming the file. */
#ifndef DP_ENV_FILE_BYTES_H
#define DP_ENV_FILE_BYTES_H

#include "common/base/status.h"

#include <stddef.h>

enum dp_status dp_file_bytes_read(const char *path, char **bytes, size_t *size, struct dp_error *err);

#endif
