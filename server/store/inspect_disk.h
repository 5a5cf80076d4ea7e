/* Inspect disk: env/disk.h on a real directory, for reading only: whatever would change it is DP_UNSUPPORTED, and the
 * directory is not made.
 * Failure   DP_NOT_FOUND: no such directory. */
#ifndef DP_STORE_INSPECT_DISK_H
#define DP_STORE_INSPECT_DISK_H

#include "common/env/disk.h"

DP_MUST_USE
enum dp_status dp_inspect_disk_open(const char *directory, struct dp_disk *out, struct dp_error *err);
void dp_inspect_disk_close(struct dp_disk *disk);

#endif
