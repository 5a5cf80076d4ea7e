/* Directory: makes a directory and its parents, and syncs their names, so that they outlast a power cut; removes one;
 * makes a name absolute.
 * Thread    Any.
 * Failure   DP_IO, DP_FULL, DP_ARGUMENT (an empty name), naming the path. */
#ifndef DP_ENV_DIRECTORY_H
#define DP_ENV_DIRECTORY_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is there already stays. Each name that is made is synced in the directory above it. */
enum dp_status dp_directory_make(const char *path, struct dp_error *err);
/* Removes what is in the directory and, with `itself`, the directory. One that is not there is no failure. Links are
 * not followed, nothing is synced. depth_max: more levels of directories are a failure; 0: any number. */
enum dp_status dp_directory_remove(const char *path, bool itself, uint32_t depth_max, struct dp_error *err);
/* An absolute form of a path, which need not exist yet. */
enum dp_status dp_directory_absolute(const char *path, char *out, size_t size, struct dp_error *err);

#endif
