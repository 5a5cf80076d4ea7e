/* Directory: makes a directory and its parents, and syncs their names, so that they outlast a power cut.
 * Thread    Any.
 * Failure   DP_IO, DP_FULL, DP_ARGUMENT (an empty name), naming the path. */
#ifndef DP_ENV_DIRECTORY_H
#define DP_ENV_DIRECTORY_H

#include "common/base/status.h"

/* What is there already stays. Each name that is made is synced in the directory above it. */
DP_MUST_USE
enum dp_status dp_directory_make(const char *path, struct dp_error *err);

#endif
