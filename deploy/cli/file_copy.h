/* Copy: a file's bytes into a stream that is open: how a complete file goes to a pipe or a device.
 * Failure   DP_IO naming the file, or `name`, the stream's destination ("standard output"). */
#ifndef DP_CLI_FILE_COPY_H
#define DP_CLI_FILE_COPY_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdio.h>

/* Flushed at the end. removed: the file loses its name as soon as it is open, since a closed pipe may end this process. */
enum dp_status dp_file_copy(const char *path, bool removed, FILE *to, const char *name, struct dp_error *err);

#endif
