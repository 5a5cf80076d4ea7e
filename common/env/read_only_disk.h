/* Read-only disk: the real disk (disk.c), for reading only: an operation that would change it is DP_UNSUPPORTED,
 * and the directory is not made. dp_disk_close closes it.
 * Failure   DP_NOT_FOUND: no such directory. */
#ifndef DP_ENV_READ_ONLY_DISK_H
#define DP_ENV_READ_ONLY_DISK_H

#include "common/env/disk.h"

enum dp_status dp_read_only_disk_open(const char *directory, struct dp_disk *out, struct dp_error *err);

/* Opens a file for reading into *out. What is no file (a pipe, which would make its reader wait for ever, a device, a
 * directory) is DP_CORRUPT. directory: a descriptor, or AT_FDCWD. The text is the cause alone. */
enum dp_status dp_read_only_disk_file(int directory, const char *name, int *out, struct dp_error *err);

#endif
